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
#include <string_view>
#include <vector>

#include "emulator/functions/argument_pairs.hpp"
#include "emulator/functions/drawn_operands.hpp"
#include "emulator/functions/function_digest.hpp"
#include "emulator/functions/function_errors.hpp"
#include "emulator/functions/rounded_instruction.hpp"
#include "emulator/inputs/input_draw.hpp"
#include "formats/support/error.hpp"
#include "formats/support/parallel.hpp"
#include "formats/support/words.hpp"
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

/// By the record's list, which is a compile mode or "ptx", and the function's name in it.
using RecordKey = std::pair<std::string, std::string>;
const std::map<RecordKey, Digests>& recorded_digests() {
  static const std::map<RecordKey, Digests> all = [] {
    std::ifstream file(in_source("tests/golden/functions/sm_90.json"));
    std::map<RecordKey, Digests> digests;
    const nlohmann::json recording = nlohmann::json::parse(file);
    for (const nlohmann::json& row : recording.at("digests"))
      digests[{row.at("list"), row.at("function")}] = {parsed_hex(row.at("digest")),
                                                       parsed_hex(row.at("quick_digest"))};
    return digests;
  }();
  return all;
}
/// Of the function's result of that number; nothing if it was not recorded.
const Digests* recorded_digests(const Function& function, std::size_t result) {
  const std::string name = std::string(function.name) + (result == 0 ? "" : " d1");
  for (const std::string_view list :
       {std::string_view("ptx"), formats::word_of(function.compile)}) {
    const auto found = recorded_digests().find({std::string(list), name});
    if (found != recorded_digests().end()) return &found->second;
  }
  return nullptr;
}

/// Every function in every compile mode.
std::vector<Function> all_functions() {
  std::vector<Function> all;
  for (const emulator::CompileMode mode : formats::enumerators_of<emulator::CompileMode>) {
    const std::vector<Function>& list = function_catalogue(mode);
    all.insert(all.end(), list.begin(), list.end());
  }
  return all;
}
std::string text_of(const Function& function) {
  return std::string(function.name) + ", " + std::string(formats::word_of(function.compile));
}

/// The operands of that number's input. Functions of more than one have argument_tuple's; integers
/// are drawn from their codes.
std::array<std::uint32_t, 4> drawn_codes(const Function& function, std::uint64_t number) {
  if (function.operands == 1) return {static_cast<std::uint32_t>(number)};
  const emulator::ArgumentTuple t = emulator::argument_tuple(number);
  const auto is_integer = [&](std::size_t i) {
    return function.formats.operands.at(i) == formats::int32;
  };
  return {is_integer(0) ? emulator::small_integer_argument(t.x) : t.x,
          is_integer(1) ? emulator::integer_argument(t.y) : t.y, t.z, t.w};
}

/// Of each result, over every `stride`th of 2^32 inputs.
std::array<std::uint64_t, 2> digests_of(const Function& function, std::uint64_t stride) {
  if (function.operands == 1 && function.results == 1)
    return {emulator::function_digest(function, stride), 0};
  const std::uint64_t count = ((std::uint64_t{1} << 32) + stride - 1) / stride;
  std::mutex mutex;
  std::array<std::uint64_t, 2> totals{};
  formats::parallel_for(count, 1 << 12, 0, [&](std::size_t begin, std::size_t end) {
    std::vector<std::vector<std::uint64_t>> operands(function.operands);
    for (std::size_t i = begin; i < end; ++i) {
      const std::array<std::uint32_t, 4> codes = drawn_codes(function, i * stride);
      for (std::size_t k = 0; k < operands.size(); ++k) operands[k].push_back(codes.at(k));
    }
    const auto results = emulator::function_results(function, operands, 1);
    std::array<std::uint64_t, 2> sums{};
    for (std::size_t k = 0; k < results.size(); ++k) {
      for (std::size_t i = begin; i < end; ++i)
        sums.at(k) += emulator::function_digest_share(
            i * stride, static_cast<std::uint32_t>(results[k][i - begin]));
    }
    const std::lock_guard lock(mutex);
    for (std::size_t k = 0; k < sums.size(); ++k) totals.at(k) += sums.at(k);
  });
  return totals;
}

bool rounds_once(std::string_view name) {
  return std::ranges::any_of(emulator::rounded_instructions(),
                             [&](const auto& named) { return named.name == name; });
}

TEST_CASE("functions give the hardware's results, in part") {
  std::size_t compared = 0;
  for (const Function& function : all_functions()) {
    INFO(text_of(function));
    if (recorded_digests(function, 0) == nullptr) {
      // rounded_instruction_test.cpp has the digests of what is rounded once.
      CHECK((function.evidence.basis != Basis::measured || rounds_once(function.name)));
      continue;
    }
    ++compared;
    const bool is_short = function.operands == 1 && emulator::input_bits(function) == 16;
    const auto digests = digests_of(function, is_short ? 1 : emulator::quick_digest_stride);
    for (std::size_t k = 0; k < function.results; ++k) {
      const Digests* const recorded = recorded_digests(function, k);
      REQUIRE(recorded != nullptr);
      CHECK(digests.at(k) == (is_short ? recorded->whole : recorded->quick));
    }
  }
  CHECK(compared >= 149 + 2 * 118);
}

TEST_CASE("functions give the hardware's results for all inputs", "[sweep]") {
  for (const Function& function : all_functions()) {
    INFO(text_of(function));
    if (recorded_digests(function, 0) == nullptr) continue;
    const auto digests = digests_of(function, 1);
    for (std::size_t k = 0; k < function.results; ++k)
      CHECK(digests.at(k) == recorded_digests(function, k)->whole);
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
    for (std::uint64_t fraction = 0; fraction < 4; ++fraction)
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
  // Orders of Bessel functions take as many steps.
  std::vector<std::uint64_t> small_integers;
  for (std::uint32_t i = 0; i < count; ++i) small_integers.push_back(std::uint32_t{i % 16 - 2});
  for (const Function& function : all_functions()) {
    std::vector<std::vector<std::uint64_t>> operands;
    for (std::size_t i = 0; i < function.operands; ++i) {
      const formats::Format& format = function.formats.operands.at(i);
      operands.push_back(format == formats::int32 ? small_integers : arguments(format, count, i));
    }
    const auto results = emulator::function_results(function, operands, 1);
    REQUIRE(results.size() == function.results);
    for (std::size_t i = 0; i < count; ++i) {
      emulator::OperandCodes codes{};
      for (std::size_t k = 0; k < operands.size(); ++k) codes.at(k) = operands[k][i];
      INFO(text_of(function) << " of " << std::hex << codes[0] << ", " << codes[1] << ", "
                             << codes[2] << ", " << codes[3]);
      for (std::size_t k = 0; k < results.size(); ++k)
        REQUIRE(function.reference(codes).at(k) == results[k][i]);
    }
  }
}

/// Codes at the edge of the normal range and far from 1, whose products and quotients end there.
std::vector<std::uint64_t> arguments_at_the_edge(std::size_t count, std::uint64_t seed) {
  emulator::inputs::Random random(seed);
  std::vector<std::uint64_t> codes;
  while (codes.size() < count) {
    const std::uint64_t bits = random.bits() & 0xffffffff, signed_fraction = bits & 0x807fffff;
    codes.push_back(signed_fraction);                                     // subnormal
    codes.push_back((bits & 0x80000000) | (0x007fff00 + bits % 512));     // around 2^-126
    codes.push_back(signed_fraction | (0x3f + random.bits() % 3) << 23);  // around 2^-63
    codes.push_back(signed_fraction | (0xbd + random.bits() % 3) << 23);  // around 2^63
    codes.push_back(signed_fraction | (0xfc + random.bits() % 3) << 23);  // around 2^126
    codes.push_back(signed_fraction | (0x7e + random.bits() % 9) << 23);  // around 1 and 100
  }
  for (std::size_t i = 0; i < count; ++i) std::swap(codes[i], codes[random.bits() % count]);
  codes.resize(count);
  return codes;
}

// The CPU flushes there, and integers do in the reference.
TEST_CASE("what nvcc compiles to flush does so at the edge of the normal range") {
  constexpr std::size_t count = 600;
  for (const Function& function : all_functions()) {
    const bool takes_integers = std::ranges::any_of(
        function.formats.operands, [](const formats::Format& f) { return f != formats::fp32; });
    if (function.compile == emulator::CompileMode::standard || takes_integers) continue;
    std::vector<std::vector<std::uint64_t>> operands;
    for (std::size_t i = 0; i < function.operands; ++i)
      operands.push_back(arguments_at_the_edge(count, i + 1));
    const auto results = emulator::function_results(function, operands, 1);
    for (std::size_t i = 0; i < count; ++i) {
      emulator::OperandCodes codes{};
      for (std::size_t k = 0; k < operands.size(); ++k) codes.at(k) = operands[k][i];
      INFO(text_of(function) << " of " << std::hex << codes[0] << ", " << codes[1]);
      for (std::size_t k = 0; k < results.size(); ++k)
        REQUIRE(function.reference(codes).at(k) == results[k][i]);
    }
  }
}

TEST_CASE("functions compute what the catalogue says") {
  for (const Function& function : all_functions()) {
    for (const double x : {0.3, 0.75, 1.25, 2.5, -0.6, -2.25}) {
      // which -use_fast_math computes by a logarithm
      if (x < 0 && function.name == "powf" && function.compile == emulator::CompileMode::fast)
        continue;
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
        const double wanted = function.in_doubles(numbers)[0];
        const emulator::ResultCodes results = function.reference(codes);
        const double result = emulator::double_of(format, results[0]);
        if (function.results > 1) {
          const double second = emulator::double_of(function.formats.results[1], results[1]);
          CHECK(std::abs(second - function.in_doubles(numbers)[1]) < 1e-5);
        }
        INFO(text_of(function) << " of " << x << ", " << y);
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

TEST_CASE("instructions are refused in other compile modes") {
  CHECK_THROWS_WITH(
      emulator::require_function("sm_90", "rcp.rn.f32", "function", emulator::CompileMode::ftz),
      contains_text("function: compile: ") && contains_text("instruction"));
}

TEST_CASE("an unknown function is refused with the nearest names") {
  CHECK_THROWS_WITH(emulator::require_function("sm_90", "epxf", "function"),
                    contains_text("unknown function 'epxf'") && contains_text("expf"));
  CHECK_THROWS_WITH(emulator::require_function("cdna3", "expf", "function"),
                    contains_text("function: arch: ") && contains_text("sm_90"));
}

}  // namespace
}  // namespace guardbit::tests
