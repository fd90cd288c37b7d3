#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "formats/format_catalogue.hpp"
#include "tests/catch.hpp"
#include "tests/tools/shell.hpp"

namespace {

using namespace guardbit;
using nlohmann::json;
using tests::CommandResult;
using tests::holds;
using tests::is_one_error_line;
using tests::run_command;

std::set<std::string> keys(const json& object) {
  std::set<std::string> names;
  for (const auto& [key, value] : object.items()) names.insert(key);
  return names;
}

/// One value in one format.
json shown(const std::string& value, const std::string& format,
           const std::vector<std::string>& more = {}) {
  std::vector<std::string> words = {"show", "--json", "--format", format};
  words.insert(words.end(), more.begin(), more.end());
  words.insert(words.end(), {"--", value});
  const CommandResult result = run_command(words);
  INFO(value << ' ' << format << ' ' << result.error);
  REQUIRE(result.status == 0);
  return json::parse(result.out)["values"][0]["formats"][0];
}

TEST_CASE("show: negative numbers and specials need no '--', in their order") {
  const CommandResult result = run_command(
      {"show", "-inf", "1", "-NaN", "-0", "-.5", "-0x1p3", "-Infinity", "--json", "-f", "fp16"});
  INFO(result.error);
  REQUIRE(result.status == 0);
  const json values = json::parse(result.out)["values"];
  REQUIRE(values.size() == 7);
  const std::vector<std::pair<std::string, std::string>> expected = {
      {"-inf", "0xfc00"}, {"1", "0x3c00"},      {"-NaN", "0xfe00"},     {"-0", "0x8000"},
      {"-.5", "0xb800"},  {"-0x1p3", "0xc800"}, {"-Infinity", "0xfc00"}};
  for (std::size_t i = 0; i < expected.size(); ++i) {
    CHECK(values[i]["value"] == expected[i].first);
    CHECK(values[i]["formats"][0]["code"] == expected[i].second);
  }
  CHECK(run_command({"show", "-f", "fp16", "--", "-inf"}).out ==
        run_command({"show", "-inf", "-f", "fp16"}).out);
}

TEST_CASE("show: codes, and numbers far outside of every format") {
  CHECK(shown("0x8000:fp16", "fp16")["decimal"] == "-0");
  CHECK(shown("0X3C00:FP16", "fp16")["code"] == "0x3c00");
  CHECK(shown("0b0111:e2m1", "e2m1")["decimal"] == "6");
  // The 13 low bits of a TF32 register are not part of the number.
  CHECK(shown("0x3f801fff:tf32", "tf32")["code"] == "0x3f800000");
  CHECK(shown("0x3f801fff:tf32", "fp32")["decimal"] == "1");
  // A signalling NaN stays as it was written.
  CHECK(shown("0x7c01:fp16", "fp16")["code"] == "0x7c01");
  for (const char* large : {"1e5000", "1e400", "1e99999999999999999999", "0x1p99999999999999999"}) {
    CHECK(shown(large, "fp64")["decimal"] == "inf");
    CHECK(shown(large, "fp64", {"--rounding", "toward_zero"})["hex_float"] ==
          "0x1.fffffffffffffp+1023");
  }
  for (const char* small : {"1e-5000", "0.1e-400", "1e-99999999999999999999"}) {
    CHECK(shown(small, "fp64")["decimal"] == "0");
    CHECK(shown(small, "fp64", {"--rounding", "upward"})["hex_float"] == "0x1p-1074");
  }
  CHECK(shown("5e-324", "fp64")["code"] == "0x0000000000000001");
  CHECK(shown("2.4703282292062327208e-324", "fp64")["code"] == "0x0000000000000000");
  CHECK(shown("2.4703282292062327209e-324", "fp64")["code"] == "0x0000000000000001");
}

TEST_CASE("show: rounding, error and neighbours of a worked example") {
  // 465 in e4m3: the numbers around it are 448 and, but for the range, 480.
  const json e4m3 = shown("465", "e4m3", {"--rounding", "toward_zero"});
  CHECK(e4m3["code"] == "0x7e");
  CHECK(e4m3["fields"] == json{{"sign", "0"}, {"exponent", "1111"}, {"fraction", "110"}});
  CHECK(e4m3["error"] == "-17");
  CHECK(e4m3["error_ulp"] == "-0.53125");
  CHECK(e4m3["below"]["decimal"] == "416");
  const json overflow = shown("465", "e4m3");
  CHECK(overflow["decimal"] == "nan");
  CHECK(overflow["error"].is_null());
  REQUIRE(overflow["converters"].size() == 2);
  CHECK(overflow["converters"][0]["decimal"] == "448");
  CHECK(overflow["converters"][1]["decimal"] == "nan");
  const json third = shown("0.1", "fp16", {"--rounding", "upward"});
  CHECK(third["decimal"] == "0.10003662109375");
  CHECK(third["shortest"] == "0.10004");
  CHECK(third["hex_float"] == "0x1.99cp-4");
}

TEST_CASE("show: JSON has the promised keys and stays JSON for NaN and infinity") {
  for (const char* value : {"0.1", "nan", "-inf", "0", "1e5000"}) {
    const CommandResult result = run_command({"show", "--json", "--", value});
    const json document = json::parse(result.out);
    CHECK(keys(document) == std::set<std::string>{"values"});
    const json& entry = document["values"][0];
    CHECK(keys(entry) == std::set<std::string>{"value", "rounding", "formats"});
    CHECK(entry["formats"].size() == formats::format_catalogue.size());
    for (const json& format : entry["formats"]) {
      CHECK(keys(format) == std::set<std::string>{"format", "code", "fields", "decimal", "shortest",
                                                  "hex_float", "error", "error_ulp", "below",
                                                  "above", "converters"});
      CHECK(keys(format["fields"]) == std::set<std::string>{"sign", "exponent", "fraction"});
      for (const json& converter : format["converters"])
        CHECK(keys(converter) == std::set<std::string>{"code", "decimal", "names"});
    }
  }
}

TEST_CASE("show: every format by name, within 100 columns") {
  std::vector<std::string> words = {"show", "0.1", "-3", "nan", "1e9"};
  for (const formats::FormatEntry& entry : formats::format_catalogue)
    words.insert(words.end(), {"-f", std::string(entry.name)});
  const CommandResult full = run_command(words);
  CHECK(full.status == 0);
  CHECK(tests::longest_line(full.out) <= 100);
  const CommandResult overview =
      run_command({"show", "0.1", "-3", "nan", "-inf", "1e9", "5e-324", "0x1.23456789abcdefp-500"});
  CHECK(overview.status == 0);
  CHECK(tests::longest_line(overview.out) <= 100);
  CHECK(holds(overview.out, "the format has no negative numbers"));
  CHECK(holds(run_command({"show", "1", "-f", "e5m10:bias=14"}).out, "e5m10:bias=14  0x3800"));
}

TEST_CASE("show: malformed values and names give one line with what is valid") {
  for (const std::string value : {"1..2",      "0x",      ":fp16",    "0x1ffff:fp16", "0x10:e2m1",
                                  "-0x1:fp16", "0x:fp16", "0b2:e2m1", "1e",           "1e+",
                                  ".",         "+",       "-",        "--",           "0x.p1",
                                  "0x1p",      "0x1.8",   "1_000",    "1,5",          "1 2",
                                  " ",         "١",       "\xff\xfe", "nan:fp16",     "0x3c00:fp61",
                                  "0x3c00:",   "inf0"}) {
    const CommandResult result = run_command({"show", "--", value});
    INFO(value << '\n' << result.error);
    CHECK(result.status == 2);
    CHECK(result.out.empty());
    CHECK(is_one_error_line(result.error));
  }
  for (const auto& [words, part] : std::vector<std::pair<std::vector<std::string>, std::string>>{
           {{"--format", "e9m99"}, "unknown format 'e9m99' (valid: fp64"},
           {{"--format", "fp61"}, "did you mean fp64, fp16"},
           {{"--format", "mxfp4"}, "is a block format"},
           {{"--rounding", "nearst_even"}, "did you mean nearest_even?"},
           {{"--rounding", "stochastic"}, "guardbit cast"}}) {
    std::vector<std::string> line = {"show", "1"};
    line.insert(line.end(), words.begin(), words.end());
    const CommandResult result = run_command(line);
    INFO(result.error);
    CHECK(result.status == 2);
    CHECK(is_one_error_line(result.error));
    CHECK(holds(result.error, part));
  }
}

TEST_CASE("colours on a terminal only, and not where they are unwanted") {
  const std::vector<std::string> words = {"show", "1", "-f", "fp16"};
  const std::string coloured = tests::run_on_terminal(words);
  // Sign, exponent and fraction in three colours.
  CHECK(holds(coloured, "\033[31m0\033[0m \033[32m01111\033[0m \033[36m0000000000\033[0m"));
  CHECK_FALSE(holds(tests::run_on_terminal(words, {"NO_COLOR=1"}), "\033"));
  CHECK_FALSE(holds(tests::run_on_terminal(words, {"TERM=dumb"}), "\033"));
  CHECK(holds(tests::run_on_terminal(words, {"NO_COLOR="}), "\033"));
  CHECK_FALSE(holds(run_command(words).out, "\033"));
}

}  // namespace
