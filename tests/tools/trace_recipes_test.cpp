// `trace` with formats whose scales follow from the numbers.

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <vector>

#include "formats/files/array_file.hpp"
#include "formats/format_catalogue.hpp"
#include "formats/tensors/storage.hpp"
#include "tests/catch.hpp"
#include "tests/places.hpp"
#include "tests/tools/json.hpp"
#include "tests/tools/shell.hpp"
#include "tests/tools/tensors.hpp"

namespace {

using namespace guardbit;
using nlohmann::json;
using tests::CommandResult;
using tests::is_one_error_line;
using tests::json_of;
using tests::run_command;
using tests::TemporaryFolder;

const std::string golden = tests::in_source("tests/golden/traces/digits_mlp_grad_out.npz");

json without_exact(json recipes) {
  for (json& recipe : recipes) recipe.erase("exact_noise");
  return recipes;
}

std::vector<float> numbers(std::size_t count) {
  std::mt19937 random(7);
  std::normal_distribution<float> normal;
  std::vector<float> values(count);
  for (float& x : values) x = normal(random) * std::exp2(-normal(random) * 6);
  return values;
}

void write(const std::string& path, const std::vector<float>& values, std::size_t begin,
           std::size_t end, std::vector<std::int64_t> shape) {
  const std::vector<float> part(values.begin() + static_cast<std::ptrdiff_t>(begin),
                                values.begin() + static_cast<std::ptrdiff_t>(end));
  formats::write_tensors(path, {}, std::vector{tests::tensor_of("g.grad", std::move(shape), part)});
}

TEST_CASE("trace: formats with scales of their own fare as recipes do") {
  for (const char* layout : {"flat", "rows"}) {
    const json traced = json_of({"trace", golden, "--json", "--layout", layout, "--formats",
                                 "fp16,*_tensor,*x128,mxfp4,nvfp4*"});
    const json compared = json_of({"recipe", "compare", golden, "--json", "--layout", layout,
                                   "--recipes", "*_tensor,*x128,mxfp4_*,nvfp4*"});
    CHECK(traced["recipes"].size() == 10);
    CHECK(traced["layout"] == layout);
    REQUIRE(traced["tensors"].size() == compared["tensors"].size());
    for (std::size_t i = 0; i < traced["tensors"].size(); ++i) {
      CHECK(without_exact(traced["tensors"][i]["recipes"]) == compared["tensors"][i]["recipes"]);
    }
    CHECK(without_exact(traced["total"]["recipes"]) == compared["total"]["recipes"]);
    CHECK(traced["roles"]["grad_out"]["recipes"] == traced["total"]["recipes"]);
    CHECK(traced["total"]["recipe_input"]["sum_squares"] == traced["total"]["sum_squares"]);
  }
}

TEST_CASE("trace: names of formats with scales of their own") {
  const json modes = json_of({"trace", golden, "--json", "--formats", "bf16,mxfp4,NVFP4,nvfp4"});
  CHECK(modes["recipes"] ==
        json::array({"mxfp4_floor", "mxfp4_ceil", "mxfp4_even", "mxfp4_rceil", "nvfp4"}));
  CHECK(modes["formats"] == json::array({"bf16"}));
  // Alone they come with the usual formats.
  const json alone = json_of({"trace", golden, "--json", "--formats", "nvfp4"});
  CHECK(alone["formats"] == json::array({"fp16", "bf16", "e4m3", "e5m2"}));
  for (const char* name : {"mxfp5", "e4m3_delayed_max", "fp16@2^8", "x*"}) {
    const CommandResult result = run_command({"trace", golden, "--formats", name});
    CAPTURE(name, result.error);
    CHECK(is_one_error_line(result.error));
    CHECK(result.error.find("mxfp8_e4m3_rceil") != std::string::npos);
  }
  CHECK(is_one_error_line(run_command({"trace", golden, "--layout", "columns"}).error));
}

TEST_CASE("trace: a table, CSV and a page have the formats with scales of their own") {
  const TemporaryFolder folder;
  const std::string page = folder.path("page.html");
  const CommandResult table = run_command({"trace", golden, "--formats", "fp16,mxfp4,nvfp4"});
  CHECK(table.out.find("SQNR dB") != std::string::npos);
  CHECK(table.out.find("mxfp4_rceil") != std::string::npos);
  const CommandResult csv = run_command({"trace", golden, "--formats", "fp16,nvfp4", "--csv"});
  const std::string head = csv.out.substr(0, csv.out.find('\n'));
  CHECK(head.ends_with(",saturated,nonfinite,sqnr_db,bytes"));
  std::size_t rows = 0;
  for (std::size_t at = 0; (at = csv.out.find(",nvfp4,,", at)) != std::string::npos; ++at) {
    const std::string row = csv.out.substr(at, csv.out.find('\n', at) - at);
    CHECK(std::count(row.begin(), row.end(), ',') == 10);
    ++rows;
  }
  CHECK(rows == 16);
  REQUIRE(run_command({"trace", golden, "--formats", "fp16,nvfp4", "--report", page}).status == 0);
  CHECK(tests::read_text(page).find("Formats with scales of their own") != std::string::npos);
}

TEST_CASE("trace: parts of blocks merge, or are said not to") {
  const TemporaryFolder folder;
  const std::vector<float> values = numbers(640);
  const auto traced = [&](const std::string& name, std::size_t begin, std::size_t end,
                          std::vector<std::int64_t> shape, const char* layout) {
    const std::string file = folder.path(name + ".safetensors");
    const std::string out = folder.path(name + ".json");
    write(file, values, begin, end, std::move(shape));
    const CommandResult result =
        run_command({"trace", file, "--json", "--layout", layout, "--formats",
                     "fp16,mxfp6_e3m2,e4m3_1x128,e4m3_128x128,nvfp4,e5m2_tensor"});
    REQUIRE(result.status == 0);
    tests::write_text(out, result.out);
    return out;
  };
  const auto merged = [&](const std::vector<std::string>& parts) {
    std::vector<std::string> words = {"trace", "merge"};
    words.insert(words.end(), parts.begin(), parts.end());
    words.emplace_back("--json");
    return json_of(words);
  };
  const auto same = [](const json& a, const json& b, const char* recipe) {
    const json& mine = a["tensors"][0]["recipes"][recipe];
    return !mine.is_null() && mine == b["tensors"][0]["recipes"][recipe];
  };
  const json whole = json::parse(tests::read_text(traced("whole", 0, 640, {640}, "flat")));
  // A vector, cut at a multiple of 128 and at one of 32.
  const std::string a = traced("a", 0, 256, {256}, "flat");
  const std::string b = traced("b", 256, 640, {384}, "flat");
  const json even = merged({b, a});
  for (const char* recipe : {"mxfp6_e3m2_floor", "mxfp6_e3m2_rceil", "e4m3_1x128", "e4m3_128x128"})
    CHECK(same(even, whole, recipe));
  CHECK(even["tensors"][0]["recipes"]["nvfp4"].is_null());
  CHECK(even["tensors"][0]["recipes"]["e5m2_tensor"].is_null());
  CHECK(even["total"]["recipes"]["nvfp4"].is_null());
  CHECK(even["skipped"].size() == 2);
  CHECK(even["skipped"][0]["name"] == "g.grad: e5m2_tensor");
  CHECK(even["tensors"][0]["formats"] == whole["tensors"][0]["formats"]);
  const json odd = merged({traced("c", 0, 288, {288}, "flat"), traced("d", 288, 608, {320}, "flat"),
                           traced("e", 608, 640, {32}, "flat")});
  CHECK(same(odd, whole, "mxfp6_e3m2_floor"));
  CHECK(odd["tensors"][0]["recipes"]["e4m3_1x128"].is_null());
  // Merged results merge again: what is not known stays so.
  tests::write_text(folder.path("even.json"), even.dump());
  const json again = merged({folder.path("even.json"), traced("f", 0, 0, {0}, "flat")});
  CHECK(same(again, whole, "e4m3_1x128"));
  CHECK(again["tensors"][0]["recipes"]["nvfp4"].is_null());
  CHECK(run_command({"trace", "merge", folder.path("even.json")}).out.find("not of all") !=
        std::string::npos);
  // Rows of 20 elements, along which blocks lie.
  const json rows = json::parse(tests::read_text(traced("g", 0, 640, {32, 20}, "rows")));
  const json by_rows =
      merged({traced("h", 0, 100, {5, 20}, "rows"), traced("i", 100, 640, {27, 20}, "rows")});
  CHECK(same(by_rows, rows, "mxfp6_e3m2_floor"));
  CHECK(same(by_rows, rows, "e4m3_1x128"));
  CHECK(by_rows["tensors"][0]["recipes"]["e4m3_128x128"].is_null());
  // Parts that asked differently.
  const CommandResult mixed = run_command({"trace", "merge", a, folder.path("g.json")});
  CHECK(is_one_error_line(mixed.error));
}

}  // namespace
