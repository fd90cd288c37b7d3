#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "formats/files/array_file.hpp"
#include "formats/format_catalogue.hpp"
#include "formats/tensors/storage.hpp"
#include "tests/catch.hpp"
#include "tests/tools/command.hpp"
#include "tests/tools/json.hpp"
#include "tests/tools/shell.hpp"
#include "tests/tools/tensors.hpp"

namespace guardbit::tests {
namespace {

using nlohmann::json;

/// [8, 16] in which row r holds multiples of 2^r.
std::vector<float> rows_of_powers() {
  std::vector<float> values;
  for (int r = 0; r < 8; ++r)
    for (int i = 0; i < 16; ++i) values.push_back(std::ldexp(static_cast<float>(i * 17 - 127), r));
  return values;
}

json quantised(std::vector<std::string> words) {
  words.insert(words.begin(), "quantize");
  words.emplace_back("--json");
  return tests::json_of(words);
}

TEST_CASE("quantize and recipe compare end at once by Ctrl-C, and nothing is written") {
  const TemporaryFolder folder;
  std::vector<float> numbers(std::size_t{3} << 23);
  for (std::size_t i = 0; i < numbers.size(); ++i)
    numbers[i] = static_cast<float>(i * 2654435761U % 65521) - 32760;
  formats::write_tensors(
      folder.path("x.npy"), {},
      std::vector{
          tests::tensor_of("x", {static_cast<std::int64_t>(numbers.size() >> 12), 4096}, numbers)});
  constexpr int most = 250;
  const CommandResult quantised =
      run_until_interrupted(folder, "quantize x.npy -o q.npz --granularity channel", 0.5, most);
  CHECK(quantised.out == "status 130\nprompt\n");
  CHECK(quantised.error == "guardbit: interrupted: nothing written\n");
  CHECK(!std::filesystem::exists(folder.path("q.npz")));
  const CommandResult compared = run_until_interrupted(folder, "recipe compare x.npy", 0.5, most);
  CHECK(compared.out == "status 130\nprompt\n");
  CHECK(compared.error == "guardbit: interrupted\n");
}

TEST_CASE("quantize writes integers and scales, and says what they cost") {
  const TemporaryFolder folder;
  const std::string in = folder.path("w.safetensors"), out = folder.path("q.safetensors");
  const formats::Tensor steps = formats::tensor_of_codes(
      "steps", formats::int32, formats::Packing::container, {2}, std::vector<std::uint32_t>{1, 2});
  formats::write_tensors(in, {},
                         std::vector{tests::tensor_of("w", {8, 16}, rows_of_powers()), steps});
  const json j = quantised({in, "-o", out, "--granularity", "channel"});
  CHECK(j["tensors"].size() == 1);
  const json& w = j["tensors"][0];
  CHECK(w["name"] == "w");
  CHECK(w["scales"] == 8);
  CHECK(w["least_amax"] == 128);
  CHECK(w["largest_amax"] == 128 * 128);
  CHECK(w["clipped"] == 0);
  CHECK(w["max_error"].get<double>() <= 128.0 * 128 / 127 / 2);
  const auto file = formats::read_tensors(out);
  REQUIRE(file.tensors.size() == 3);  // the tensor of integers as it was
  CHECK(formats::codes_of(*file.find("steps")) == std::vector<std::uint64_t>{1, 2});
  CHECK(file.find("w")->format == formats::int8);
  CHECK(file.find("w.scale")->shape == std::vector<std::int64_t>{8});
  // -127 of amax 128, by hand: nearbyint(-127 * (127 / 128)) = -126.
  CHECK(formats::codes_of(*file.find("w"))[0] == (256 - 126));
  CHECK(file.metadata.at("quantisation") ==
        "max, modelopt, quirks left_edge,zero_bin,last_minimum,fp32_counts");
}

TEST_CASE("quantize writes INT4 with zero points") {
  const TemporaryFolder folder;
  const std::string in = folder.path("w.npy"), out = folder.path("q.safetensors");
  formats::write_tensors(in, {}, std::vector{tests::tensor_of("w", {2, 2}, {0, 5, 10, 15})});
  quantised({in, "-o", out, "--bits", "4", "--affine", "--unsigned"});
  const auto file = formats::read_tensors(out);
  const formats::Tensor& w = file.tensors.at(0);
  CHECK(w.format == formats::uint4);
  CHECK(formats::codes_of(w) == std::vector<std::uint64_t>{0, 5, 10, 15});
  CHECK(file.find(w.name + ".zero_point") == nullptr);  // all are 0
  quantised({in, "-o", out, "--bits", "4", "--affine"});
  const auto with_zero = formats::read_tensors(out);
  CHECK(formats::codes_of(*with_zero.find(w.name + ".zero_point")) ==
        std::vector<std::uint64_t>{0xFFFFFFF8U});
}

TEST_CASE("quantize multiplies pruned weights on the sparse instruction") {
  const TemporaryFolder folder;
  const std::string a = folder.path("a.npy"), b = folder.path("b.npy"), out = folder.path("d.npz");
  std::vector<float> x(64), identity(256);
  for (std::size_t i = 0; i < 64; ++i) x[i] = static_cast<float>(i % 13) - 6;
  for (std::size_t i = 0; i < 256; i += 17) identity[i] = 1;
  formats::write_tensors(a, {}, std::vector{tests::tensor_of("a", {4, 16}, x)});
  formats::write_tensors(b, {}, std::vector{tests::tensor_of("b", {16, 16}, identity)});
  const json j = quantised({a, "-o", out, "--prune", "--multiply", b});
  CHECK(j["product"]["instruction"] ==
        "mma.sp::ordered_metadata.sync.aligned.m16n8k64.row.col.s32.s8.s8.s32");
  CHECK(j["tensors"][0]["pruning"]["groups"] == 16);
  // What pruning loses counts: the input is much farther away than the pruned numbers are.
  CHECK(j["tensors"][0]["sqnr_db"] < 15);
  CHECK(j["tensors"][0]["pruned_sqnr_db"] > 30);
  CHECK(j["tensors"][0]["max_error"] > 1);
  CHECK(j["tensors"][0]["pruned_max_error"] < 0.1);
  CHECK(j["product"]["sqnr_db"] < 15);
  CHECK(j["product"]["pruned_sqnr_db"] > 30);
  CHECK_FALSE(j["tensors"][1].contains("pruned_sqnr_db"));
  const auto file = formats::read_tensors(out);
  // The identity's integer is 127 for 1.
  const auto codes = formats::codes_of(*file.find("a")),
             sums = formats::codes_of(*file.find("d.sums"));
  REQUIRE(sums.size() == 64);
  for (std::size_t i = 0; i < 64; ++i)
    CHECK(static_cast<std::int32_t>(sums[i]) == 127 * static_cast<std::int8_t>(codes[i]));
  CHECK(file.find("d")->format == formats::int8);
}

TEST_CASE("quantize takes a checkpoint's weights, and prunes along the channels") {
  const TemporaryFolder folder;
  write_text(folder.path("c.toml"),
             "[data]\ntraining = 32\ntest = 8\n[model]\nfilters = [16, 8]\nhidden = [8]\n"
             "[training]\nsteps = 1\nbatch = 16\n");
  REQUIRE(run_command({"train", folder.path("c.toml"), "-o", folder.path("run")}).status == 0);
  const std::string out = folder.path("q.safetensors");
  const json report = quantised({folder.path("run/fp32/checkpoint.safetensors"), "--granularity",
                                 "channel", "--prune", "-o", out});
  std::vector<std::string> names, pruned;
  for (const json& tensor : report["tensors"]) {
    names.push_back(tensor["name"]);
    if (tensor.contains("pruning")) pruned.push_back(tensor["name"]);
  }
  CHECK(names ==
        std::vector<std::string>{"conv1.weight", "conv2.weight", "fc1.weight", "fc2.weight"});
  CHECK(pruned == std::vector<std::string>{"conv2.weight"});  // 200 and 8 inputs are no 16s
  const formats::TensorFile file = formats::read_tensors(out);
  CHECK(file.find("conv1.bias") != nullptr);
  CHECK(file.find("first.conv1.weight") == nullptr);
  const formats::Tensor* const weights = file.find("conv2.weight");
  REQUIRE(weights != nullptr);
  for (std::size_t i = 0; i < weights->bytes.size(); i += 4) {
    int zeros = 0;  // in four channels of one place of a window
    for (std::size_t k = 0; k < 4; ++k) zeros += weights->bytes[i + k] == std::byte{0} ? 1 : 0;
    REQUIRE(zeros >= 2);
  }
}

TEST_CASE("quantize refuses what it cannot do, and writes nothing then") {
  const TemporaryFolder folder;
  const std::string in = folder.path("w.npz"), out = folder.path("q.npz");
  formats::write_tensors(in, {},
                         std::vector{tests::tensor_of("w", {1, 2}, {1, 2}),
                                     tests::tensor_of("bad", {2}, {1, INFINITY})});
  const auto refused = [&](std::vector<std::string> words, const std::string& what) {
    words.insert(words.begin(), {"quantize", in});
    const CommandResult result = run_command(words);
    INFO(result.error);
    CHECK(result.status == 2);
    CHECK(is_one_error_line(result.error));
    CHECK(holds(result.error, what));
    CHECK_FALSE(std::filesystem::exists(out));
  };
  refused({"-o", out}, "tensor 'bad': holds an infinity or a NaN");
  refused({"-o", out, "--tensor", "v"}, "valid: w, bad");
  refused({"-o", folder.path("q.npy")}, ".safetensors, .npz");
  refused({"-o", out, "--calibrator", "entrpy"}, "did you mean entropy?");
  refused({"-o", out, "--quirks", "left"}, "did you mean left_edge?");
  refused({"-o", out, "--tensor", "w", "--affine", "--arithmetic", "modelopt"}, "zero point");
  refused({"-o", out, "--tensor", "w", "--prune"}, "not a multiple of 4");
  refused({"-o", out, "--tensor", "w", "--granularity", "channel", "--axis", "2"}, "no axis 2");
}

}  // namespace
}  // namespace guardbit::tests
