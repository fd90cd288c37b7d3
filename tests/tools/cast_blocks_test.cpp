#include <cmath>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "formats/block_format.hpp"
#include "formats/codec.hpp"
#include "formats/files/array_file.hpp"
#include "formats/format_catalogue.hpp"
#include "formats/tensors/storage.hpp"
#include "tests/catch.hpp"
#include "tests/places.hpp"
#include "tests/tools/shell.hpp"
#include "tests/tools/tensors.hpp"

namespace {

using namespace guardbit;
using formats::Packing;
using formats::Tensor;
using nlohmann::json;
using tests::CommandResult;
using tests::holds;
using tests::is_one_error_line;
using tests::run_command;
using tests::TemporaryFolder;
using tests::tensor_of;

json cast(const std::string& input, const std::string& output, std::vector<std::string> more) {
  more.insert(more.begin(), {"cast", input, "-o", output, "--json"});
  const CommandResult result = run_command(more);
  INFO(result.error);
  REQUIRE(result.status == 0);
  return json::parse(result.out)["tensors"];
}

std::vector<float> floats_of(const Tensor& tensor) {
  std::vector<float> values(tensor.bytes.size() / sizeof(float));
  if (!values.empty()) std::memcpy(values.data(), tensor.bytes.data(), tensor.bytes.size());
  return values;
}

/// 32 numbers of which each does something else in MXFP4, the rest zeros: the scale is 1.
std::vector<float> block_of_everything() {
  std::vector<float> block(32, 0.0F);
  const std::vector<float> first = {7.5F,    // out of range: 6
                                    0.25F,   // tie with zero
                                    0.375F,  // 0.5
                                    1.0F,
                                    -0.0F,
                                    std::numeric_limits<float>::infinity(),  // 6
                                    std::numeric_limits<float>::quiet_NaN(),
                                    -3.0F};
  std::copy(first.begin(), first.end(), block.begin());
  return block;
}

TEST_CASE("cast: the summary of a block in which everything happens, counted by hand") {
  const TemporaryFolder folder;
  const std::string input = folder.path("x.npz");
  const std::string output = folder.path("y.safetensors");
  const std::vector tensors = {tensor_of("x", block_of_everything())};
  formats::write_tensors(input, {}, tensors);
  json made = cast(input, output, {"--to", "mxfp4"}).at(0);
  const double signal = 7.5 * 7.5 + 0.0625 + 0.375 * 0.375 + 1 + 9;
  const double noise = 2.25 + 0.0625 + 0.015625;
  CHECK(made["snr_db"].get<double>() == Approx(10 * std::log10(signal / noise)));
  made.erase("snr_db");
  const json expected = {{"name", "x"},
                         {"shape", {32}},
                         {"from", "fp32"},
                         {"to", "mxfp4"},
                         {"axis", 0},
                         {"tensor_scale", nullptr},
                         {"blocks", 1},
                         {"elements", 32},
                         {"nans_in", 1},
                         {"infinities_in", 1},
                         {"zeros_made", 1},
                         {"zeros_under_zero_scale", 0},
                         {"infinities_made", 0},
                         {"nans_made", 0},
                         {"saturated", 2},
                         {"inexact", 4},
                         {"compared", 30},
                         {"measured", 30},
                         {"max_error", 1.5},
                         {"mean_error", 1.875 / 30},
                         {"signal", signal},
                         {"noise", noise}};
  CHECK(made == expected);
  const formats::TensorFile file = formats::read_tensors(output);
  REQUIRE(file.tensors.size() == 2);
  const Tensor& elements = *file.find("x");
  CHECK(elements.format == formats::e2m1);
  CHECK(elements.packing == Packing::dense);
  const std::vector<std::uint64_t> codes = formats::codes_of(elements);
  const std::vector<std::uint64_t> first(codes.begin(), codes.begin() + 8);
  CHECK(first == std::vector<std::uint64_t>{7, 0, 1, 2, 8, 7, 7, 13});
  CHECK(formats::codes_of(*file.find("x_scale")) == std::vector<std::uint64_t>{127});
  // A scale without overflow is 2, and 7.5 is 8 then.
  made = cast(input, output, {"--to", "mxfp4", "--scale-rule", "without_overflow"}).at(0);
  CHECK(made["saturated"] == 1);  // infinity
  CHECK(made["max_error"] == 0.25);
  // Without clamping E4M3 has NaN for infinity, and for 480 times the scale.
  made = cast(input, output, {"--to", "mxfp8", "--overflow", "ieee"}).at(0);
  CHECK(made["to"] == "mxfp8_e4m3");
  CHECK(made["nans_made"] == 2);
  CHECK(made["compared"] == 29);
}

TEST_CASE("cast: blocks too small for a scale of NVFP4 are lost, and the table says so") {
  const TemporaryFolder folder;
  const std::string input = folder.path("x.npy");
  const std::string output = folder.path("y.npz");
  std::vector<float> values(32, 0.0F);
  values[0] = 6;
  values[20] = 0.001F;  // a sixth of that is below half of 2^-9
  const std::vector tensors = {tensor_of("x", values)};
  formats::write_tensors(input, {}, tensors);
  const json lost = cast(input, output, {"--to", "nvfp4", "--tensor-scale", "1"}).at(0);
  CHECK(lost["zeros_made"] == 1);
  CHECK(lost["zeros_under_zero_scale"] == 1);
  CHECK(lost["compared"] == 32);
  CHECK(lost["measured"] == 16);
  CHECK(lost["max_error"] == 0);
  CHECK(lost["noise"].get<double>() == Approx(1e-6));
  CHECK(
      holds(run_command({"cast", input, "--to", "nvfp4", "--tensor-scale", "1", "-o", output}).out,
            "1 became zero because their block's scale did"));
  const json kept = cast(input, output, {"--to", "nvfp4"}).at(0);
  CHECK(kept["tensor_scale"].get<double>() == static_cast<double>(6.0F / 2688));
  CHECK(kept["zeros_made"] == 0);
}

TEST_CASE("cast: every block format there and back is what its blocks stand for") {
  const TemporaryFolder folder;
  const std::string golden = tests::in_source(
      "tests/golden/mma.sync/mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32.safetensors");
  std::size_t turn = 0;
  for (const formats::BlockFormatEntry& entry : formats::block_format_catalogue) {
    const std::string name(entry.name);
    INFO(name);
    const std::string blocks = folder.path(name + (++turn % 2 == 0 ? ".npz" : ".safetensors"));
    const std::string back = folder.path(name + ".back.npz");
    const json there =
        cast(golden, blocks, {"--to", name, "--tensor", "a", "--tensor", "b", "--axis", "1"});
    cast(blocks, back, {"--from", name, "--to", "fp32", "--axis=-2"});
    const formats::TensorFile source = formats::read_tensors(golden);
    const formats::TensorFile file = formats::read_tensors(back);
    REQUIRE(file.tensors.size() == 2);
    for (const std::size_t i : {0U, 1U}) {
      const Tensor& before = *source.find(i == 0 ? "a" : "b");
      const Tensor& after = *file.find(before.name);
      CHECK(after.shape == before.shape);
      const std::vector<float> numbers = floats_of(after);
      double noise = 0;
      std::uint64_t zeros = 0;
      std::uint64_t compared = 0;
      for (std::size_t k = 0; k < numbers.size(); ++k) {
        const auto code = static_cast<std::uint32_t>(
            formats::load_code(before.bytes, formats::bf16, before.packing, k));
        const double x = static_cast<double>(std::bit_cast<float>(code << 16));
        const double y = static_cast<double>(numbers[k]);
        zeros += y == 0 && x != 0 && std::isfinite(x) ? 1U : 0U;
        if (!std::isfinite(x) || !std::isfinite(y)) continue;
        ++compared;
        noise += (x - y) * (x - y);
      }
      CHECK(there.at(i)["zeros_made"] == zeros);
      CHECK(there.at(i)["compared"] == compared);
      CHECK(there.at(i)["noise"].get<double>() == Approx(noise));
    }
  }
}

TEST_CASE("cast: stochastic blocks repeat by their seed, whatever the threads") {
  const TemporaryFolder folder;
  const std::string input = folder.path("x.npy");
  std::vector<float> values(200000);
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] = 1.0F + static_cast<float>(i % 1000) / 1000;
  const std::vector tensors = {tensor_of("x", values)};
  formats::write_tensors(input, {}, tensors);
  const auto bytes = [&](const std::string& seed, const std::string& threads) {
    const std::string output = folder.path("y" + seed + threads + ".safetensors");
    cast(input, output,
         {"--to", "nvfp4", "--rounding", "stochastic", "--seed", seed, "--threads", threads});
    return tests::read_text(output);
  };
  const std::string one = bytes("7", "1");
  CHECK(one == bytes("7", "3"));
  CHECK(one != bytes("8", "1"));
}

TEST_CASE("cast: what is wrong with blocks is said in a line, and nothing is left behind") {
  const TemporaryFolder folder;
  const std::string input = folder.path("x.npz");
  const std::string output = folder.path("y.npz");
  const std::vector<Tensor> tensors = {
      tensor_of("w", {2, 32}, std::vector<float>(64, 1.0F)),
      tensor_of("w_scale", {2, 2}, std::vector<float>(4, 1.0F)), tensor_of("scalar", {}, {1.0F}),
      formats::tensor_of_codes("d", formats::fp64, Packing::container, {1},
                               std::vector<std::uint64_t>{0})};
  formats::write_tensors(input, {}, tensors);
  const std::string blocks = folder.path("blocks.safetensors");
  REQUIRE(run_command({"cast", input, "--tensor", "w", "--to", "nvfp4", "-o", blocks}).status == 0);
  const auto refused = [&](std::vector<std::string> words, const std::string& part) {
    words.insert(words.begin(), "cast");
    words.insert(words.end(), {"-o", output});
    const CommandResult result = run_command(words);
    INFO(result.error);
    CHECK(result.status == 2);
    CHECK(result.out.empty());
    CHECK(is_one_error_line(result.error));
    CHECK(holds(result.error, part));
    CHECK_FALSE(std::filesystem::exists(output));
  };
  const std::vector<std::string> w = {input, "--to", "nvfp4", "--tensor", "w"};
  const auto with = [](std::vector<std::string> words, const std::vector<std::string>& more) {
    words.insert(words.end(), more.begin(), more.end());
    return words;
  };
  refused(with(w, {"--tensor", "w_scale"}), "tensor 'w': its part 'w_scale' would have the name");
  refused(with(w, {"--tensor", "d"}), "tensor 'd': blocks are made of numbers that FP32 holds");
  refused(with(w, {"--tensor", "scalar"}), "tensor 'scalar': a scalar has no axis");
  refused(with(w, {"--axis", "2"}), "tensor 'w': no axis 2 (valid: -2 to 1)");
  refused(with(w, {"--scale-rule", "nearset"}), "did you mean nearest?");
  refused(with(w, {"--tensor-scale", "0"}), "no finite number above zero of fp32");
  refused(with(w, {"--tensor-scale", "-1"}), "no finite number above zero of fp32");
  refused(with(w, {"--scale", "2"}), "--scale: blocks choose their scales");
  refused(with(w, {"--overflow", "pytorch"}), "(valid: saturate, ieee)");
  refused({input, "--to", "mxfp4", "--tensor", "w", "--tensor-scale", "1"}, "has no tensor scale");
  refused({input, "--to", "e4m3", "--scale-rule", "nearest"},
          "--scale-rule: only for block formats");
  refused({input, "--to", "e4m3", "--axis", "0"}, "--axis: only for block formats");
  refused({blocks, "--from", "nvfp4", "--to", "mxfp4"}, "cast --to fp32 first");
  refused({blocks, "--from", "nvfp4", "--to", "fp32", "--scale-rule", "nearest"}, "--scale-rule");
  refused({blocks, "--from", "mxfp4", "--to", "fp32"},
          "tensor 'w_scale': the shape 2x2 is not 2x1, a scale for every 32 of 2x32 elements");
  refused({blocks, "--from", "mxfp8", "--to", "fp32"}, "tensor 'w': e2m1 cannot be read as e4m3");
  refused({input, "--from", "mxfp8", "--tensor", "d", "--to", "fp32"}, "no scales 'd_scale'");
  refused({input, "--from", "nvfp4", "--tensor", "w", "--to", "fp32"},
          "fp32 cannot be read as e2m1");
  // A byte that is no code of the format.
  std::vector<Tensor> bytes = {
      formats::tensor_of_codes("x", formats::uint8, Packing::container, {16},
                               std::vector<std::uint64_t>(16, 0x17)),
      formats::tensor_of_codes("x_scale", formats::uint8, Packing::container, {1},
                               std::vector<std::uint64_t>{0x38})};
  const std::string raw = folder.path("raw.npz");
  formats::write_tensors(raw, {}, bytes);
  refused({raw, "--from", "nvfp4", "--to", "fp32"}, "tensor 'x': byte 0 is no code of e2m1");
  bytes[0] = formats::tensor_of_codes("x", formats::uint8, Packing::container, {16},
                                      std::vector<std::uint64_t>(16, 7));
  formats::write_tensors(raw, {}, bytes);
  cast(raw, output, {"--from", "nvfp4", "--to", "fp32"});
  CHECK(floats_of(formats::read_tensors(output).tensors.at(0)) == std::vector<float>(16, 6.0F));
}

}  // namespace
