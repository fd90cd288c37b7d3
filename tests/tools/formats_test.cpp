#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "formats/block_format.hpp"
#include "formats/conversion/converters.hpp"
#include "formats/format_catalogue.hpp"
#include "tests/catch.hpp"
#include "tests/tools/shell.hpp"

namespace {

using namespace guardbit;
using nlohmann::json;
using tests::CommandResult;
using tests::holds;
using tests::run_command;

std::set<std::string> keys(const json& object) {
  std::set<std::string> names;
  for (const auto& [key, value] : object.items()) names.insert(key);
  return names;
}

TEST_CASE("formats: JSON holds every format under the same keys") {
  const json all = json::parse(run_command({"formats", "--json"}).out);
  CHECK(keys(all) == std::set<std::string>{"formats", "block_formats"});
  REQUIRE(all["formats"].size() == formats::format_catalogue.size());
  REQUIRE(all["block_formats"].size() == formats::block_format_catalogue.size());
  const std::set<std::string> format_keys = {"name",
                                             "aliases",
                                             "encoding",
                                             "bits",
                                             "layout",
                                             "precision",
                                             "bias",
                                             "exponents",
                                             "ulp_at_1",
                                             "smallest_subnormal",
                                             "smallest_normal",
                                             "largest",
                                             "lowest",
                                             "zero",
                                             "specials",
                                             "decimal_digits",
                                             "distinguishing_digits",
                                             "standard"};
  for (const json& format : all["formats"]) {
    INFO(format["name"]);
    CHECK(keys(format) == format_keys);
    CHECK(keys(format["largest"]) == std::set<std::string>{"code", "decimal", "hex_float"});
  }
  for (const json& format : all["block_formats"]) {
    INFO(format["name"]);
    CHECK(keys(format) == std::set<std::string>{"name", "element", "element_exponent", "scale",
                                                "block_size", "tensor_scale", "bits_per_element",
                                                "largest", "standard"});
  }
}

TEST_CASE("formats: the facts of known formats") {
  const json e4m3 = json::parse(run_command({"formats", "E4M3", "--json"}).out)["formats"][0];
  CHECK(e4m3["bits"] == 8);
  CHECK(e4m3["bias"] == 7);
  CHECK(e4m3["largest"]["decimal"] == "448");
  CHECK(e4m3["largest"]["code"] == "0x7e");
  CHECK(e4m3["smallest_subnormal"]["decimal"] == "0.001953125");
  CHECK(e4m3["smallest_normal"]["decimal"] == "0.015625");
  CHECK(e4m3["ulp_at_1"] == "0.125");
  CHECK(e4m3["specials"]["nan_codes"] == 2);
  CHECK(e4m3["specials"]["infinity"] == false);
  const json own =
      json::parse(run_command({"formats", "e5m6:bias=20", "--json"}).out)["formats"][0];
  CHECK(own["smallest_normal"]["hex_float"] == "0x1p-19");
  CHECK(own["standard"] == "user-defined");
  const std::string e5m2 = run_command({"formats", "e5m2"}).out;
  for (const char* part : {"57344", "2^-16 ≈ 1.52588e-5", "±inf, 6 NaN", "OCP 8-bit"}) {
    INFO(part << '\n' << e5m2);
    CHECK(holds(e5m2, part));
  }
  CHECK(holds(e5m2, "2^-14 = 6.103515625e-5"));
  CHECK(holds(run_command({"formats", "fp16"}).out, "2^-24 ≈ 5.96046e-8"));
}

TEST_CASE("formats: pages fit 100 columns, for every format and side by side") {
  CHECK(tests::longest_line(run_command({"formats"}).out) <= 100);
  std::vector<std::string> words = {"formats"};
  for (const formats::FormatEntry& entry : formats::format_catalogue)
    words.emplace_back(entry.name);
  for (const formats::BlockFormatEntry& entry : formats::block_format_catalogue)
    words.emplace_back(entry.name);
  const CommandResult all = run_command(words);
  CHECK(all.status == 0);
  CHECK(tests::longest_line(all.out) <= 100);
}

TEST_CASE("formats: unknown names and contradictions give one line") {
  for (const auto& [words, part] : std::vector<std::pair<std::vector<std::string>, std::string>>{
           {{"formats", "nvpf4"}, "did you mean nvfp4"},
           {{"formats", "fp61"}, "fp16"},
           {{"formats", "e9m99"}, "e<E>m<F>"},
           {{"formats", "e4m3:"}, "unknown format"},
           {{"formats", "e4m3:bias=x"}, "unknown format"},
           {{"formats", "--json", "--markdown"}, "--json"},
           {{"formats", "--converters", "--json"}, "--json"}}) {
    const CommandResult result = run_command(words);
    INFO(result.error);
    CHECK(result.status == 2);
    CHECK(tests::is_one_error_line(result.error));
    CHECK(holds(result.error, part));
  }
  const CommandResult table = run_command({"formats", "--converters"});
  for (const std::string_view name : formats::converter_names())
    CHECK(holds(table.out, "| " + std::string(name) + " |"));
}

}  // namespace
