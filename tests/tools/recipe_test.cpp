#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "formats/catalogue.hpp"
#include "formats/files/array_file.hpp"
#include "formats/storage.hpp"
#include "tests/catch.hpp"
#include "tests/tools/shell.hpp"

namespace {

using namespace guardbit;
using nlohmann::json;
using tests::CommandResult;
using tests::holds;
using tests::is_one_error_line;
using tests::run_command;
using tests::TemporaryFolder;

const std::string golden = GUARDBIT_SOURCE_DIR "/tests/golden/traces/digits_mlp_grad_out.npz";

json compare(std::vector<std::string> words) {
  words.insert(words.begin(), {"recipe", "compare"});
  words.emplace_back("--json");
  const CommandResult result = run_command(words);
  INFO(result.error);
  REQUIRE(result.status == 0);
  return json::parse(result.out);
}

formats::Tensor tensor_of(const std::string& name, const std::vector<float>& values) {
  std::vector<std::byte> bytes(values.size() * sizeof(float));
  if (!values.empty()) std::memcpy(bytes.data(), values.data(), bytes.size());
  return formats::owning_tensor(name, formats::fp32, formats::Packing::container,
                                {static_cast<std::int64_t>(values.size())}, std::move(bytes));
}

}  // namespace

TEST_CASE("recipe compare: underflow of a recorded run, as it was measured with NumPy") {
  // EXPERIMENTS 2.4, in hundredths of a percent of the numbers other than zero, steps 200 and 599.
  struct Row {
    std::string recipe;
    long step200, step599;
  };
  const std::vector<Row> rows = {{"fp16", 3756, 8773},     {"fp16@2^8", 1164, 6466},
                                 {"fp16@2^16", 149, 2759}, {"fp16@2^24", 3, 520},
                                 {"bf16", 0, 0},           {"e4m3_tensor", 2075, 6115},
                                 {"e5m2_tensor", 18, 915}, {"mxfp8_e4m3_rceil", 16, 20},
                                 {"e4m3_1x128", 35, 33},   {"e4m3_1x128_floor1e-4", 1469, 6880}};
  const json document = compare({"--trace", golden, "--role", "grad_out"});
  REQUIRE(document["steps"].size() == 2);
  CHECK(document["steps"][0]["nonzero"] == 46570);
  CHECK(document["steps"][1]["nonzero"] == 47267);
  for (const Row& row : rows) {
    const auto hundredths = [&](const json& step) {
      return std::lround(10000.0 * step["recipes"][row.recipe]["underflow"].get<double>() /
                         step["nonzero"].get<double>());
    };
    CAPTURE(row.recipe);
    CHECK(hundredths(document["steps"][0]) == row.step200);
    CHECK(hundredths(document["steps"][1]) == row.step599);
  }
  REQUIRE(document["tensors"].size() == 16);
  for (const json& tensor : document["tensors"]) {
    for (const char* recipe : {"fp16", "e4m3_tensor", "mxfp8_e4m3_rceil", "nvfp4"}) {
      for (const char* key : {"underflow", "saturated", "nonfinite", "sqnr_db", "bytes"})
        CHECK(tensor["recipes"][recipe].contains(key));
    }
  }
}

TEST_CASE("recipe compare: recipes by name or pattern, and a table to read") {
  json document = compare({golden, "--recipes", "mxfp8_e4m3_*,nvfp4", "--layout", "rows"});
  CHECK(document["layout"] == "rows");
  CHECK(document["total"]["recipes"].size() == 5);
  document = compare({golden, "--recipes", "fp16*", "--scales", "3,5"});
  CHECK(document["total"]["recipes"].contains("fp16@2^3"));
  CHECK(document["total"]["recipes"].size() == 2);
  const CommandResult text = run_command({"recipe", "compare", golden, "--recipes", "e4m3_1x128*"});
  CHECK(holds(text.out, "68.80"));
  CHECK(holds(text.out, "step 599"));
}

TEST_CASE("recipe compare: the same whatever the number of threads") {
  CHECK(compare({golden, "--threads", "1"}) == compare({golden, "--threads", "3"}));
}

TEST_CASE("recipe compare: delayed scaling follows steps across files") {
  const TemporaryFolder folder;
  formats::write_tensors(folder.path("step1.safetensors"), {},
                         std::vector{tensor_of("fc.wgrad", {1e-4F, 2e-4F})});
  formats::write_tensors(folder.path("step0.safetensors"), {},
                         std::vector{tensor_of("fc.wgrad", {1e-4F, 2e-4F})});
  const json document = compare({folder.path("step1.safetensors"), folder.path("step0.safetensors"),
                                 "--recipes", "e4m3_delayed_max"});
  REQUIRE(document["tensors"].size() == 2);
  CHECK(document["tensors"][0]["step"] == 0);
  CHECK(document["tensors"][0]["recipes"]["e4m3_delayed_max"]["underflow"] == 2);
  CHECK(document["tensors"][1]["recipes"]["e4m3_delayed_max"]["underflow"] == 0);
  CHECK(document["remarks"].empty());
}

TEST_CASE("recipe compare: empty, infinite and NaN tensors") {
  const TemporaryFolder folder;
  formats::write_tensors(
      folder.path("t.safetensors"), {},
      std::vector{tensor_of("a", {}), tensor_of("b", {NAN, NAN}), tensor_of("c", {INFINITY, 1})});
  const json document = compare({folder.path("t.safetensors")});
  CHECK(document["tensors"][0]["recipes"]["fp16"]["sqnr_db"].is_null());
  CHECK(document["tensors"][1]["finite"] == 0);
  CHECK(document["tensors"][2]["finite"] == 1);
  CHECK(run_command({"recipe", "compare", folder.path("t.safetensors")}).status == 0);
}

TEST_CASE("recipe compare: bad input is one line") {
  const TemporaryFolder folder;
  const std::vector<std::vector<std::string>> words = {{},
                                                       {golden, "--recipes", "fp17"},
                                                       {golden, "--recipes", ""},
                                                       {golden, "--layout", "diagonal"},
                                                       {golden, "--role", "gradient"},
                                                       {golden, "--role", "act"},
                                                       {golden, "--scales", "x"},
                                                       {folder.path("none.npz")}};
  for (std::vector<std::string> more : words) {
    more.insert(more.begin(), {"recipe", "compare"});
    const CommandResult result = run_command(more);
    CAPTURE(more, result.error);
    CHECK(result.status == 2);
    CHECK(result.out.empty());
    CHECK(is_one_error_line(result.error));
  }
}
