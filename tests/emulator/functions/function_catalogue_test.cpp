#include "emulator/functions/function_catalogue.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <fstream>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "emulator/functions/argument_pairs.hpp"
#include "emulator/functions/drawn_operands.hpp"
#include "emulator/functions/function_digest.hpp"
#include "emulator/functions/function_errors.hpp"
#include "emulator/inputs/input_draw.hpp"
#include "formats/support/error.hpp"
#include "formats/support/parallel.hpp"
#include "tests/catch.hpp"
#include "tests/places.hpp"

/// Digests are the hardware's (tests/golden/functions).
namespace guardbit::tests {
namespace {

using emulator::Basis;
using emulator::Function;
using emulator::function_catalogue;

struct Digests {
  std::uint64_t whole = 0, quick = 0;
};

std::uint64_t parsed_hex(const std::string& text) {
  std::uint64_t word = 0;
  REQUIRE(std::from_chars(text.data(), text.data() + text.size(), word, 16).ptr ==
          text.data() + text.size());
  return word;
}

/// Instructions of PTX and CUDA's functions by default.
const std::map<std::string, Digests>& recorded_digests() {
  static const std::map<std::string, Digests> all = [] {
    std::ifstream file(in_source("tests/golden/functions/sm_90.json"));
    std::map<std::string, Digests> digests;
    const nlohmann::json recording = nlohmann::json::parse(file);
    for (const nlohmann::json& row : recording.at("digests")) {
      if (row.at("list") != "ptx" && row.at("list") != "default") continue;
      digests[row.at("function")] = {parsed_hex(row.at("digest")),
                                     parsed_hex(row.at("quick_digest"))};
    }
    return digests;
  }();
  return all;
}

/// Of every `stride`th of 2^32 pairs.
std::uint64_t digest_of_pairs(const Function& function, std::uint64_t stride) {
  const std::uint64_t count = ((std::uint64_t{1} << 32) + stride - 1) / stride;
  std::mutex mutex;
  std::uint64_t total = 0;
  formats::parallel_for(count, 1 << 12, 0, [&](std::size_t begin, std::size_t end) {
    std::vector<std::uint32_t> x, y, results(end - begin);
    for (std::size_t i = begin; i < end; ++i) {
      const emulator::ArgumentPair pair = emulator::argument_pair(i * stride);
      x.push_back(pair.x);
      y.push_back(pair.y);
    }
    function.run({{x, y}, {results}});
    std::uint64_t sum = 0;
    for (std::size_t i = begin; i < end; ++i)
      sum += emulator::function_digest_share(i * stride, results[i - begin]);
    const std::lock_guard lock(mutex);
    total += sum;
  });
  return total;
}

std::uint64_t digest_of(const Function& function, std::uint64_t stride) {
  return function.operands == 1 ? emulator::function_digest(function, stride)
                                : digest_of_pairs(function, stride);
}

bool has_digest(const Function& function) {
  return recorded_digests().contains(std::string(function.name));
}

TEST_CASE("functions give the hardware's results, in part") {
  std::size_t compared = 0;
  for (const Function& function : function_catalogue()) {
    INFO(function.name);
    const bool is_of_one = function.operands == 1;
    // What has one operand was recorded, but for packed forms and what is rounded once.
    if (!has_digest(function)) {
      CHECK(function.evidence.basis != Basis::measured);
      continue;
    }
    ++compared;
    const bool is_short = emulator::input_bits(function) == 16;
    const Digests& recorded = recorded_digests().at(std::string(function.name));
    CHECK(digest_of(function, is_of_one && is_short ? 1 : emulator::quick_digest_stride) ==
          (is_of_one && is_short ? recorded.whole : recorded.quick));
  }
  CHECK(compared >= 124);
}

TEST_CASE("functions give the hardware's results for all inputs", "[sweep]") {
  for (const Function& function : function_catalogue()) {
    INFO(function.name);
    if (has_digest(function))
      CHECK(digest_of(function, 1) == recorded_digests().at(std::string(function.name)).whole);
  }
}

/// Arguments of a binade whose results are those of the exact function, rounded.
std::uint32_t correctly_rounded(const char* name, std::uint32_t first) {
  const Function& function = emulator::require_function("sm_90", name, "test");
  std::vector<std::uint32_t> x(1 << 23), results(x.size());
  for (std::uint32_t i = 0; i < x.size(); ++i) x[i] = first + i;
  function.run({{x}, {results}});
  std::uint32_t count = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double exact = function.in_doubles({std::bit_cast<float>(x[i])})[0];
    count += std::bit_cast<std::uint32_t>(static_cast<float>(exact)) == results[i] ? 1U : 0U;
  }
  return count;
}

TEST_CASE("counts of correctly rounded results are those published of GPUs since 2006", "[sweep]") {
  CHECK(correctly_rounded("rcp.approx.ftz.f32", 0x3f800000) == 7280086);
  CHECK(correctly_rounded("rsqrt.approx.ftz.f32", 0x3f800000) == 6505163);
  CHECK(correctly_rounded("rsqrt.approx.ftz.f32", 0x40000000) == 6637923);
}

/// Arguments of every kind in an operand's format: specials, neighbours of powers of two, any
/// codes.
std::vector<std::uint64_t> arguments(const formats::Format& format, std::size_t count,
                                     std::uint64_t seed) {
  std::vector<std::uint64_t> codes;
  for (std::uint64_t i = 0; i < emulator::special_code_count; ++i)
    codes.push_back(emulator::special_code(format, i + seed));
  const std::uint64_t exponents = std::uint64_t{1} << format.exponent_bits;
  for (std::uint64_t exponent = 0; exponent < exponents; exponent += 1 + exponents / 85)
    for (const std::uint64_t fraction : {0, 1, 2, 3})
      codes.push_back(exponent << format.fraction_bits |
                      fraction * formats::fraction_mask(format) / 3 |
                      (exponent % 2 != 0 ? formats::sign_mask(format) : 0));
  emulator::inputs::Random random(seed);
  while (codes.size() < count) codes.push_back(random.bits() & formats::code_mask(format));
  codes.resize(count);
  for (std::size_t i = 0; i < count; ++i) std::swap(codes[i], codes[i * (30 * seed + 1) % count]);
  return codes;
}

TEST_CASE("arrays and single numbers give the same results") {
  constexpr std::size_t count = 600;
  for (const Function& function : function_catalogue()) {
    std::vector<std::vector<std::uint64_t>> operands;
    for (std::size_t i = 0; i < function.operands; ++i)
      operands.push_back(arguments(function.formats.operands.at(i), count, i));
    const auto results = emulator::function_results(function, operands, 1);
    REQUIRE(results.size() == function.results);
    for (std::size_t i = 0; i < count; ++i) {
      emulator::OperandCodes codes{};
      for (std::size_t k = 0; k < operands.size(); ++k) codes.at(k) = operands[k][i];
      INFO(function.name << " of " << std::hex << codes[0] << ", " << codes[1] << ", " << codes[2]);
      for (std::size_t k = 0; k < results.size(); ++k)
        REQUIRE(function.reference(codes).at(k) == results[k][i]);
    }
  }
}

TEST_CASE("functions compute what the catalogue says") {
  for (const Function& function : function_catalogue()) {
    const bool is_limited = function.name.find(".sat") != std::string_view::npos ||
                            function.name.find(".relu") != std::string_view::npos;
    for (const double x : {0.3, 0.75, 1.25, 2.5, -0.6, -2.25}) {
      for (const double y : {1.5, -3.0}) {
        emulator::OperandCodes codes{};
        std::array<double, emulator::most_operands> numbers{};
        for (std::size_t i = 0; i < function.operands; ++i) {
          const formats::Format& format = function.formats.operands.at(i);
          const double number = i == 0 ? x : i == 1 ? y : 0.5;
          codes.at(i) =
              formats::convert(formats::fp64, std::bit_cast<std::uint64_t>(number), format);
          numbers.at(i) = emulator::double_of(format, codes.at(i));
        }
        const formats::Format& format = function.formats.results[0];
        double wanted = function.in_doubles(numbers)[0];
        if (is_limited) wanted = std::max(wanted, 0.0);
        if (function.name.find(".sat") != std::string_view::npos) wanted = std::min(wanted, 1.0);
        const double result = emulator::double_of(format, function.reference(codes)[0]);
        INFO(function.name << " of " << x << ", " << y);
        CHECK(std::isnan(wanted) == std::isnan(result));
        // Two units in the last place, and FP32's error where that is more.
        const double unit = std::max(std::ldexp(2.0, -format.fraction_bits), 1e-5);
        if (!std::isnan(wanted)) CHECK(std::abs(result - wanted) < unit * (1 + std::abs(wanted)));
      }
    }
  }
}

TEST_CASE("digests do not depend on the number of threads, and can be given up") {
  const Function& function = emulator::require_function("sm_90a", "expf", "test");
  const std::uint64_t stride = 1 << 14;
  CHECK(emulator::function_digest(function, stride, 1) ==
        emulator::function_digest(function, stride, 3));
  CHECK_THROWS_AS(emulator::function_digest(function, stride, 2,
                                            [](std::uint64_t) { throw formats::Error("enough"); }),
                  formats::Error);
}

TEST_CASE("an unknown function is refused with the nearest names") {
  using Catch::Matchers::Contains;
  CHECK_THROWS_WITH(emulator::require_function("sm_90", "epxf", "function"),
                    Contains("unknown function 'epxf'") && Contains("expf"));
  CHECK_THROWS_WITH(emulator::require_function("cdna3", "expf", "function"),
                    Contains("--arch") && Contains("sm_90"));
}

}  // namespace
}  // namespace guardbit::tests
