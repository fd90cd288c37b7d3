#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "formats/codec.hpp"
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
using tests::holds;
using tests::is_one_error_line;
using tests::run_command;
using tests::TemporaryFolder;
using tests::tensor_of;

const std::string golden = tests::in_source("tests/golden/traces/digits_mlp_grad_out.npz");

json compare(std::vector<std::string> words) {
  words.insert(words.begin(), {"recipe", "compare"});
  words.emplace_back("--json");
  return tests::json_of(words);
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
  document = compare(
      {golden, "--recipes", "e4m3_delayed*", "--amax-history", "1,16,1024", "--margin", "2"});
  CHECK(document["total"]["recipes"].size() == 4);
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

TEST_CASE("recipe compare: one bad tensor is named, left out of the totals, and advice follows") {
  const TemporaryFolder folder;
  const std::string file = folder.path("t.safetensors");
  std::vector<float> good(256), small(256), bad(256, 1.0F);
  for (std::size_t i = 0; i < 256; ++i) {
    good[i] = (static_cast<float>(i) - 127.5F) / 128;
    small[i] = std::ldexp(good[i], -30);
  }
  bad[7] = std::nanf("");
  formats::write_tensors(file, {{"loss_scale", "1024"}},
                         std::vector{tensor_of("step1.a.grad", {16, 16}, good),
                                     tensor_of("step1.b.grad", {16, 16}, small),
                                     tensor_of("step2.a.grad", {16, 16}, bad)});
  const json document = compare({file, "--recipes", "fp16,e4m3_tensor,mxfp8_e4m3_*"});
  REQUIRE(document["left_out"].size() == 1);
  CHECK(document["left_out"][0]["name"] == "step2.a.grad");
  CHECK(document["total"]["elements"] == 512);
  CHECK(document["total"]["recipes"]["fp16"]["sqnr_db"] > 60);
  const std::string recipe = document["recommendation"]["recipe"];
  CHECK(recipe.starts_with("mxfp8_e4m3"));
  const CommandResult text =
      run_command({"recipe", "compare", file, "--recipes", "fp16,e4m3_tensor"});
  CHECK_FALSE(holds(text.out, "not finite  "));
  CHECK(
      holds(text.out, "left out: step 2, step2.a.grad, of which 1 of 256 elements are not finite"));
  CHECK(holds(text.out, "recommendation"));
  CHECK(holds(text.out, "The recorded loss scale, 2^10,"));
  CHECK(holds(text.out, "step1.b.grad "));
}

TEST_CASE("recipe compare: ranks side by side") {
  const TemporaryFolder folder;
  const std::string file = folder.path("t.safetensors");
  std::vector<float> good(64), small(64);
  for (std::size_t i = 0; i < 64; ++i) {
    good[i] = (static_cast<float>(i) - 31.5F) / 32;
    small[i] = std::ldexp(good[i], -30);
  }
  formats::write_tensors(file, {},
                         std::vector{tensor_of("rank_0.a.grad", {8, 8}, good),
                                     tensor_of("rank_1.a.grad", {8, 8}, small),
                                     tensor_of("rank_1.b.grad", {8, 8}, good)});
  const json document = compare({file, "--recipes", "fp16"});
  REQUIRE(document["ranks"].size() == 2);
  CHECK(document["ranks"][0]["rank"] == 0);
  CHECK(document["ranks"][0]["recipes"]["fp16"]["underflow"] == 0);
  CHECK(document["ranks"][1]["elements"] == 128);
  CHECK(document["ranks"][1]["recipes"]["fp16"]["underflow"] == 64);
  const CommandResult text = run_command({"recipe", "compare", file, "--recipes", "fp16"});
  INFO(text.out);
  CHECK(holds(text.out, "rank with fp16  elements  SQNR dB  saturated %  underflow %\n"));
  CHECK(holds(text.out, "             1       128"));
  CHECK(holds(text.out, "3 tensors, 192 elements, "));
  // Of one rank there is nothing to compare.
  const CommandResult one = run_command({"recipe", "compare", golden, "--recipes", "fp16"});
  CHECK(one.status == 0);
  CHECK_FALSE(holds(one.out, "rank with"));
}

TEST_CASE("recipe compare: bad input is one line") {
  const TemporaryFolder folder;
  const std::vector<std::vector<std::string>> words = {{},
                                                       {golden, "--recipes", "fp17"},
                                                       {golden, "--recipes", ""},
                                                       {golden, "--amax-history", "0"},
                                                       {golden, "--margin", "much"},
                                                       {golden, "--layout", "diagonal"},
                                                       {golden, "--role", "gradient"},
                                                       {golden, "--role", "act"},
                                                       {golden, "--scales", "x"},
                                                       {golden, "--scales", "0,128"},
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

TEST_CASE("recipe identify: bytes of MX data, with and without what they came from") {
  const TemporaryFolder folder;
  // Blocks of 32 with amaxes 1 to 1.9: floor takes scale 2^-8, rceil 2^-8 up to 1.75 and 2^-7 past
  // it, where E4M3 elements of 1.9 * 128 = 243 stay below floor's 256.
  std::vector<float> source;
  std::vector<std::byte> codes, floor, rceil;
  for (int block = 0; block < 64; ++block) {
    const float amax = 1 + 0.9F * static_cast<float>(block) / 63;
    const bool is_past = amax > 1.75F;
    floor.push_back(std::byte{119});
    rceil.push_back(is_past ? std::byte{120} : std::byte{119});
    for (int i = 0; i < 32; ++i) source.push_back(i == 0 ? amax : 0);
    const std::uint32_t word = [&] {
      std::uint32_t bits = 0;
      const float y = amax * (is_past ? 128.0F : 256.0F);
      std::memcpy(&bits, &y, sizeof bits);
      return bits;
    }();
    for (int i = 0; i < 32; ++i)
      codes.push_back(i == 0 ? static_cast<std::byte>(convert(formats::fp32, word, formats::e4m3))
                             : std::byte{0});
  }
  const auto bytes = [](const std::string& name, const formats::Format& format,
                        std::vector<std::byte> content, std::vector<std::int64_t> shape) {
    return formats::owning_tensor(name, format, formats::Packing::container, std::move(shape),
                                  std::move(content));
  };
  formats::Tensor original = tensor_of("x", source);
  original.shape = {2, 1024};
  const std::string file = folder.path("w.safetensors");
  formats::write_tensors(file, {},
                         std::vector{bytes("w", formats::e4m3, codes, {2, 1024}),
                                     bytes("w_scale", formats::e8m0, rceil, {2, 32}), original});
  const auto identify = [&](std::vector<std::string> words) {
    words.insert(words.begin(), {"recipe", "identify"});
    words.emplace_back("--json");
    return tests::json_of(words);
  };
  json document = identify({file, "--source", "x"});
  CHECK(document["possible"] == json::array({"rceil"}));
  CHECK(document["blocks"] == 64);
  CHECK(document["elements"]["not_nearest_even"] == 0);
  document = identify({file});
  CHECK(document["possible"] == json::array({"rceil"}));
  CHECK(holds(run_command({"recipe", "identify", file}).out, "written by rceil"));

  // The same in plain bytes, with scales of another mode: the elements do not go with them.
  const std::string plain = folder.path("plain.safetensors");
  formats::write_tensors(plain, {},
                         std::vector{bytes("w", formats::uint8, codes, {2, 1024}),
                                     bytes("scales", formats::uint8, floor, {2, 32})});
  document = identify({plain, "--format", "mxfp8_e4m3", "--source-file", file, "--source", "x"});
  CHECK(document["modes"]["floor"]["contradicting_blocks"] == 0);
  CHECK(document["elements"]["not_nearest_even"] == 11);
  // Two FP4 codes in a byte.
  const std::string packed = folder.path("fp4.safetensors");
  formats::write_tensors(
      packed, {},
      std::vector{bytes("q", formats::uint8, std::vector(32, std::byte{0x07}), {2, 16}),
                  bytes("scale", formats::uint8, std::vector(2, std::byte{127}), {2, 1})});
  document = identify({packed, "--format", "e2m1"});
  CHECK(document["blocks"] == 2);
  CHECK(document["modes"]["ceil"]["contradicting_blocks"] == 2);

  const std::vector<std::vector<std::string>> bad = {
      {plain},
      {plain, "--format", "fp16"},
      {plain, "--format", "e2m1"},
      {file, "--scales", "x"},
      {file, "--elements", "y"},
      {file, "--source-file", plain, "--source", "scales"},
      {golden},
      {folder.path("none.safetensors")}};
  for (std::vector<std::string> words : bad) {
    words.insert(words.begin(), {"recipe", "identify"});
    const CommandResult result = run_command(words);
    CAPTURE(words, result.error);
    CHECK(result.status == 2);
    CHECK(is_one_error_line(result.error));
  }
}
