#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "formats/codec.hpp"
#include "formats/files/array_file.hpp"
#include "formats/format_catalogue.hpp"
#include "formats/tensors/storage.hpp"
#include "tests/catch.hpp"
#include "tests/tools/shell.hpp"

namespace {

using namespace guardbit;
using nlohmann::json;
using tests::CommandResult;
using tests::holds;
using tests::is_one_error_line;
using tests::run_command;
using tests::run_shell;
using tests::TemporaryFolder;

formats::Tensor tensor_of(const std::vector<float>& values, std::vector<std::int64_t> shape) {
  std::vector<std::byte> bytes(values.size() * sizeof(float));
  if (!values.empty()) std::memcpy(bytes.data(), values.data(), bytes.size());
  return formats::owning_tensor("x", formats::fp32, formats::Packing::container, std::move(shape),
                                std::move(bytes));
}

void write_floats(const std::string& path, const std::vector<float>& values) {
  const std::vector tensors = {tensor_of(values, {static_cast<std::int64_t>(values.size())})};
  formats::write_tensors(path, {}, tensors);
}

std::vector<std::uint64_t> codes_in(const std::string& path, const formats::Format& format) {
  formats::FormatOverrides overrides;
  overrides.any = format;
  const formats::TensorFile file = formats::read_tensors(path, overrides);
  const formats::Tensor& tensor = file.tensors.at(0);
  std::vector<std::uint64_t> codes;
  for (std::int64_t i = 0; i < formats::element_count(tensor.shape); ++i) {
    codes.push_back(
        formats::load_code(tensor.bytes, format, tensor.packing, static_cast<std::size_t>(i)));
  }
  return codes;
}

/// Casts and gives the first tensor's summary.
json cast(const std::string& input, const std::string& output, std::vector<std::string> more) {
  more.insert(more.begin(), {"cast", input, "-o", output, "--json"});
  const CommandResult result = run_command(more);
  INFO(result.error);
  REQUIRE(result.status == 0);
  return json::parse(result.out)["tensors"][0];
}

CommandResult refused_cast(std::vector<std::string> words) {
  words.insert(words.begin(), "cast");
  CommandResult result = run_command(words);
  INFO(result.error);
  CHECK(result.status == 2);
  CHECK(result.out.empty());
  CHECK(is_one_error_line(result.error));
  return result;
}

TEST_CASE("cast: the summary of a vector in which everything happens once, counted by hand") {
  const TemporaryFolder folder;
  const std::string input = folder.path("x.npy");
  const std::string output = folder.path("y.npy");
  const float inf = std::numeric_limits<float>::infinity();
  // E4M3 has numbers 2^-9 apart at zero, 1/8 apart from 1, 32 apart up to 448; 480 would be next.
  write_floats(input, {0.0F, -0.0F,
                       0x1p-10F,    // tie with zero: zero, 1/2 ulp
                       0x1p-11F,    // zero, 1/4 ulp
                       -0x1.8p-9F,  // tie of subnormals 1 and 2: 2, 1/2 ulp
                       1.0F,
                       1.0625F,  // tie of 1 and 1.125: 1, 1/2 ulp
                       464.0F,   // tie of 448 and 480: 448, 1/2 ulp
                       465.0F,   // past the tie: out of range
                       1e9F, inf, std::numeric_limits<float>::quiet_NaN()});
  const json ieee = cast(input, output, {"--to", "e4m3"});
  const json expected = {{"name", "x"},     {"shape", {12}},        {"from", "fp32"},
                         {"to", "e4m3"},    {"elements", 12},       {"nans_in", 1},
                         {"zeros_made", 2}, {"infinities_made", 0}, {"nans_made", 3},
                         {"saturated", 0},  {"subnormals_made", 1}, {"inexact", 8},
                         {"compared", 8},   {"max_ulp_error", 0.5}, {"mean_ulp_error", 2.25 / 8}};
  CHECK(ieee == expected);
  CHECK(codes_in(output, formats::e4m3) ==
        std::vector<std::uint64_t>{0, 0x80, 0, 0, 0x82, 0x38, 0x38, 0x7e, 0x7f, 0x7f, 0x7f, 0x7f});
  json saturating = expected;
  saturating["nans_made"] = 0;
  saturating["saturated"] = 3;
  CHECK(cast(input, output, {"--to", "e4m3", "--overflow", "saturate"}) == saturating);
  // E5M2's largest is 57344; 1e9 becomes infinity, which the infinite input was already.
  const json e5m2 = cast(input, output, {"--to", "e5m2"});
  CHECK(e5m2["infinities_made"] == 1);
  CHECK(e5m2["nans_made"] == 0);
  CHECK(e5m2["saturated"] == 0);
}

TEST_CASE("cast: what a scale makes is exact where the product is a number of the format") {
  const TemporaryFolder folder;
  const std::string input = folder.path("x.npy");
  const std::string output = folder.path("y.npy");
  write_floats(input, {1, 2, 3, 4});
  for (const std::string scale : {"-2", "0.5", "3", "0x1p-3", "-0x1p60", "0x1p-60"}) {
    const json summary = cast(input, output, {"--to", "fp32", "--scale", scale});
    INFO(scale);
    CHECK(summary["inexact"] == 0);
    CHECK(summary["max_ulp_error"] == 0);
  }
  CHECK(cast(input, output, {"--to", "fp32", "--scale", "0.1"})["inexact"] == 4);
  CHECK(cast(input, output, {"--to", "e4m3", "--scale", "-2"})["inexact"] == 0);
  CHECK(codes_in(output, formats::e4m3) == std::vector<std::uint64_t>{0xc0, 0xc8, 0xcc, 0xd0});
  for (const std::string scale : {"nan", "inf", "-inf", "0", "-0", "1e-400", "1e400", "two", ""})
    refused_cast({input, "--to", "e4m3", "--scale", scale, "-o", output});
}

TEST_CASE("cast: every code of a narrow format survives FP32 and back, in every kind of file") {
  const TemporaryFolder folder;
  std::size_t turn = 0;
  for (const formats::FormatEntry& entry : formats::format_catalogue) {
    if (formats::bits(entry.format) > 8) continue;
    const std::string name(entry.name);
    const std::vector<std::string> extensions = {".safetensors", ".npz", ".npy"};
    const std::string first = folder.path(name + extensions[turn % 3]);
    const std::string wide = folder.path(name + ".wide" + extensions[(turn + 1) % 3]);
    const std::string back = folder.path(name + ".back" + extensions[(turn + turn / 3) % 3]);
    ++turn;
    const auto count = std::size_t{1} << formats::bits(entry.format);
    std::vector<std::byte> bytes(count);
    for (std::size_t code = 0; code < count; ++code) bytes[code] = static_cast<std::byte>(code);
    const std::vector tensors = {formats::owning_tensor(
        "x", entry.format, formats::Packing::container, {static_cast<std::int64_t>(count)}, bytes)};
    formats::write_tensors(first, {}, tensors);
    cast(first, wide, {"--from", name, "--to", "fp32"});
    cast(wide, back, {"--to", name});
    const std::vector<std::uint64_t> codes = codes_in(back, entry.format);
    REQUIRE(codes.size() == count);
    for (std::uint64_t code = 0; code < count; ++code) {
      if (formats::decode(entry.format, code).kind == formats::Kind::nan) continue;
      INFO(name << ' ' << code);
      CHECK(codes[code] == code);
    }
  }
}

TEST_CASE("cast: empty arrays and scalars keep their shape") {
  const TemporaryFolder folder;
  const std::string input = folder.path("x.safetensors");
  formats::Tensor scalar = tensor_of({1.5F}, {});
  scalar.name = "scalar";
  const std::vector tensors = {tensor_of({}, {0, 3}), scalar};
  formats::write_tensors(input, {{"key", "value"}}, tensors);
  for (const std::string to : {"e2m1", "e4m3", "fp64", "b1"}) {
    for (const std::string extension : {".npz", ".safetensors"}) {
      const std::string output = folder.path(to + extension);
      const CommandResult result = run_command({"cast", input, "--to", to, "-o", output});
      INFO(result.error);
      CHECK(result.status == 0);
      CHECK(holds(result.out, "scalar  scalar"));
      const formats::TensorFile file = formats::read_tensors(output);
      REQUIRE(file.find("x") != nullptr);
      REQUIRE(file.find("scalar") != nullptr);
      CHECK(file.find("x")->shape == std::vector<std::int64_t>{0, 3});
      CHECK(file.find("scalar")->shape.empty());
    }
  }
  CHECK(formats::read_tensors(folder.path("e4m3.safetensors")).metadata.at("key") == "value");
  const CommandResult several =
      refused_cast({input, "--to", "e4m3", "-o", folder.path("several.npy")});
  CHECK(holds(several.error, "one tensor, not 2"));
  CHECK(run_command(
            {"cast", input, "--to", "e4m3", "--tensor", "scalar", "-o", folder.path("several.npy")})
            .status == 0);
}

TEST_CASE("cast: a file may be replaced by its own conversion") {
  const TemporaryFolder folder;
  const std::string both = folder.path("x.npy");
  std::vector<float> values(5000);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i) / 7;
  write_floats(both, values);
  const std::string other = folder.path("y.npy");
  cast(both, other, {"--to", "fp16"});
  cast(both, both, {"--to", "fp16"});
  CHECK(tests::read_text(both) == tests::read_text(other));
}

TEST_CASE("cast: stochastic rounding repeats by its seed and is right on average") {
  const TemporaryFolder folder;
  const std::string input = folder.path("x.npy");
  // A quarter of the way from 1 to 1.125, and more than the elements that one thread takes at once.
  constexpr std::size_t count = 200000;
  write_floats(input, std::vector<float>(count, 1.03125F));
  const auto codes = [&](const std::string& seed, const std::string& threads) {
    const std::string output = folder.path("y" + seed + threads + ".safetensors");
    cast(input, output,
         {"--to", "e4m3", "--rounding", "stochastic", "--seed", seed, "--threads", threads});
    return codes_in(output, formats::e4m3);
  };
  const std::vector<std::uint64_t> one = codes("7", "1");
  CHECK(one == codes("7", "2"));
  CHECK(one != codes("8", "2"));
  std::size_t up = 0;
  for (const std::uint64_t code : one) {
    REQUIRE((code == 0x38 || code == 0x39));
    up += code == 0x39 ? 1 : 0;
  }
  const double sigma = std::sqrt(count * 0.25 * 0.75);
  CHECK(std::abs(static_cast<double>(up) - count * 0.25) < 5 * sigma);
  for (const std::string seed : {"-1", "18446744073709551616", "0x10", "1.5", "x", ""})
    refused_cast({input, "--to", "e4m3", "--seed", seed, "-o", folder.path("z.npy")});
}

TEST_CASE("cast: what is wrong is said before any work and nothing is left behind") {
  const TemporaryFolder folder;
  const std::string input = folder.path("x.npy");
  const std::string output = folder.path("y.npy");
  write_floats(input, {1, 2, 3});
  const auto refused = [&](std::vector<std::string> words, const std::string& part) {
    const CommandResult result = refused_cast(std::move(words));
    INFO(result.error);
    CHECK(holds(result.error, part));
  };
  refused({input, "--to", "e4m3", "-o", folder.path("y.txt")}, ".safetensors, .npy, .npz");
  refused({input, "--to", "e4m3", "-o", folder.path("")}, "unknown extension");
  refused({input, "--to", "e4m3", "-o", folder.path("none/y.npy")}, "cannot be written");
  refused({input, "--to", "e4m3", "-o", "/proc/y.npy"}, "cannot be written");
  refused({folder.path("none.npy"), "--to", "e4m3", "-o", output}, "No such file");
  refused({folder.path(""), "--to", "e4m3", "-o", output}, "directory");
  refused({"/dev/null", "--to", "e4m3", "-o", output}, "not a regular file");
  refused({input, "--to", "fp61", "-o", output}, "did you mean");
  refused({input, "--to", "nvfp4", "-o", output}, "one tensor, not 3");
  refused({input, "--to", "e4m3", "--from", "e2m1", "-o", output}, "x.npy");
  refused({input, "--to", "e4m3", "--from", "fp64", "-o", output}, "x.npy");
  refused({input, "--to", "e4m3", "--overflow", "pytroch", "-o", output}, "did you mean pytorch?");
  refused({input, "--to", "e4m3", "--overflow", "cvt.rna", "-o", output},
          "does not convert to e4m3");
  refused({input, "--to", "e4m3", "--overflow", "pytorch", "--rounding", "upward", "-o", output},
          "rounds nearest_even");
  refused({input, "--to", "e4m3", "--tensor", "w", "-o", output}, "unknown tensor 'w'");
  refused({input, "--to", "e4m3", "--threads", "1025", "-o", output}, "--threads");
  tests::write_text(folder.path("raw.npy"), "\x93NUMPY");
  refused({folder.path("raw.npy"), "--to", "e4m3", "-o", output}, "raw.npy");
  std::size_t files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder.path("."))) {
    INFO(entry.path());
    ++files;
  }
  CHECK(files == 2);  // x.npy and raw.npy
}

TEST_CASE("cast: an interruption leaves the output as it was") {
  const TemporaryFolder folder;
  // A sparse file of 2^30 zeros takes one thread seconds; what is written stands in a file beside.
  const CommandResult result = run_shell(folder, R"(
    cd "$folder"
    header="{'descr': '<f4', 'fortran_order': False, 'shape': (1073741824,), }"
    { printf '\x93NUMPY\x01\x00v\x00'; printf '%-117s\n' "$header"; } > big.npy
    truncate -s $((128 + 4 * 1073741824)) big.npy
    echo old > y.npy
    set -m  # or background jobs would ignore Ctrl-C
    "$command" cast big.npy --to e4m3 --threads 1 -o y.npy &
    until test $(ls -A | wc -l) -gt 3; do sleep 0.01; done
    kill -INT $!
    wait $!
    echo "status $?"
    cat y.npy
    ls -A)");
  INFO(result.error);
  CHECK(holds(result.out, "status 130\nold\nbig.npy\nscript.error\n"));
}

TEST_CASE("cast: progress is shown on a terminal and wiped there") {
  const TemporaryFolder folder;
  const std::string input = folder.path("x.npy");
  write_floats(input, std::vector<float>(300000, 1.5F));
  const std::vector<std::string> words = {"cast", input, "--to",
                                          "e4m3", "-o",  folder.path("y.npy")};
  const std::string shown = tests::run_on_terminal(words);
  CHECK(holds(shown, "%\033[K"));
  CHECK(holds(shown, "\r\033[K"));
  CHECK(run_command(words).error.empty());
}

}  // namespace
