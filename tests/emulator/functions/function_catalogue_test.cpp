#include "emulator/functions/function_catalogue.hpp"

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
#include "emulator/functions/function_digest.hpp"
#include "emulator/inputs/input_draw.hpp"
#include "formats/format_catalogue.hpp"
#include "formats/support/error.hpp"
#include "formats/support/parallel.hpp"
#include "formats/support/words.hpp"
#include "tests/catch.hpp"
#include "tests/places.hpp"

/// Digests are the hardware's (tests/golden/functions).
namespace guardbit::tests {
namespace {

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

/// By the record's list and the function's name in it.
using RecordKey = std::pair<std::string, std::string>;
const std::map<RecordKey, Digests>& recorded_digests() {
  static const std::map<RecordKey, Digests> all = [] {
    std::ifstream file(in_source("tests/golden/functions/sm_90.json"));
    std::map<RecordKey, Digests> digests;
    const nlohmann::json recording = nlohmann::json::parse(file);
    for (const nlohmann::json& row : recording.at("digests")) {
      digests[{row.at("list"), row.at("function")}] = {parsed_hex(row.at("digest")),
                                                       parsed_hex(row.at("quick_digest"))};
    }
    return digests;
  }();
  return all;
}
const Digests& recorded_digests(const Function& function, std::size_t result) {
  const std::string name = std::string(function.name) + (result == 0 ? "" : " d1");
  const RecordKey instruction = {"ptx", name};
  if (recorded_digests().contains(instruction)) return recorded_digests().at(instruction);
  const RecordKey of_cuda = {std::string(formats::word_of(function.compile)), name};
  REQUIRE(recorded_digests().contains(of_cuda));
  return recorded_digests().at(of_cuda);
}

/// What one input adds to the digests of a function's results. Functions of more than one number
/// have inputs by argument_tuple; integers are drawn from their codes.
std::vector<std::uint32_t> drawn_codes(const Function& function, std::uint64_t number) {
  if (function.operands == 1) return {static_cast<std::uint32_t>(number)};
  const emulator::ArgumentTuple t = emulator::argument_tuple(number);
  std::vector<std::uint32_t> codes = {t.x, t.y, t.z, t.w};
  codes.resize(function.operands);
  if (function.formats.operands[0] == formats::int32)
    codes[0] = emulator::small_integer_argument(codes[0]);
  if (function.formats.operands[1] == formats::int32)
    codes[1] = emulator::integer_argument(codes[1]);
  return codes;
}

/// Of each result, over every `stride`th of 2^32 inputs.
std::array<std::uint64_t, 2> digests_of(const Function& function, std::uint64_t stride) {
  const std::uint64_t count = ((std::uint64_t{1} << 32) + stride - 1) / stride;
  std::mutex mutex;
  std::array<std::uint64_t, 2> totals{};
  formats::parallel_for(count, 1 << 12, 0, [&](std::size_t begin, std::size_t end) {
    std::vector<std::vector<std::uint32_t>> operands(function.operands), results(function.results);
    for (std::size_t i = begin; i < end; ++i) {
      const std::vector<std::uint32_t> codes = drawn_codes(function, i * stride);
      for (std::size_t k = 0; k < codes.size(); ++k) operands[k].push_back(codes[k]);
    }
    emulator::CodeArrays<std::uint32_t> arrays;
    for (std::size_t k = 0; k < operands.size(); ++k) arrays.operands.at(k) = operands[k];
    for (std::size_t k = 0; k < results.size(); ++k) {
      results[k].resize(end - begin);
      arrays.results.at(k) = results[k];
    }
    function.run(arrays);
    std::array<std::uint64_t, 2> sums{};
    for (std::size_t k = 0; k < results.size(); ++k)
      for (std::size_t i = begin; i < end; ++i)
        sums.at(k) += emulator::function_digest_share(i * stride, results[k][i - begin]);
    const std::lock_guard lock(mutex);
    for (std::size_t k = 0; k < sums.size(); ++k) totals.at(k) += sums.at(k);
  });
  return totals;
}

/// Every function in every mode.
std::vector<Function> all_functions() {
  std::vector<Function> all;
  for (const emulator::CompileMode mode : formats::enumerators_of<emulator::CompileMode>) {
    const std::vector<Function>& list = function_catalogue(mode);
    all.insert(all.end(), list.begin(), list.end());
  }
  return all;
}

TEST_CASE("functions give the hardware's results, in part") {
  for (const Function& function : all_functions()) {
    INFO(function.name << ", " << formats::word_of(function.compile));
    const auto digests = digests_of(function, emulator::quick_digest_stride);
    for (std::size_t k = 0; k < function.results; ++k)
      CHECK(digests.at(k) == recorded_digests(function, k).quick);
  }
}

TEST_CASE("functions give the hardware's results for all inputs", "[sweep]") {
  for (const Function& function : all_functions()) {
    INFO(function.name << ", " << formats::word_of(function.compile));
    const auto digests = digests_of(function, 1);
    for (std::size_t k = 0; k < function.results; ++k)
      CHECK(digests.at(k) == recorded_digests(function, k).whole);
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

/// Arguments of every kind: specials, neighbours of powers of two, any codes.
std::vector<std::uint32_t> arguments(std::size_t count) {
  std::vector<std::uint32_t> codes;
  for (std::uint32_t i = 0; i < emulator::special_argument_count; ++i)
    codes.push_back(emulator::special_argument(i));
  for (std::uint32_t exponent = 0; exponent < 256; exponent += 3)
    for (const std::uint32_t fraction : {0U, 1U, 0x400000U, 0x7fffffU})
      codes.push_back((exponent << 23 | fraction) ^ (exponent % 2) << 31);
  emulator::inputs::Random random(7);
  while (codes.size() < count) codes.push_back(static_cast<std::uint32_t>(random.bits()));
  return codes;
}

TEST_CASE("the host's units and integers compute the same functions") {
  const std::vector<std::uint32_t> x = arguments(600);
  // Other orders of the same codes, for the other operands.
  const auto shuffled = [&](std::size_t factor) {
    std::vector<std::uint32_t> y = x;
    for (std::size_t i = 0; i < y.size(); ++i) std::swap(y[i], y[i * factor % y.size()]);
    return y;
  };
  std::vector<std::uint32_t> small(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) small[i] = static_cast<std::uint32_t>(i % 16) - 2;
  const std::array numbers = {x, shuffled(31), shuffled(17), shuffled(7)};
  std::array<std::vector<std::uint32_t>, 2> results;
  for (std::vector<std::uint32_t>& codes : results) codes.resize(x.size());
  for (const Function& function : all_functions()) {
    emulator::CodeArrays<std::uint32_t> arrays;
    for (std::size_t k = 0; k < function.operands; ++k) {
      arrays.operands.at(k) =
          function.formats.operands.at(k) == formats::int32 ? small : numbers.at(k);
    }
    for (std::size_t k = 0; k < function.results; ++k) arrays.results.at(k) = results.at(k);
    function.run(arrays);
    for (std::size_t i = 0; i < x.size(); ++i) {
      emulator::OperandCodes codes{};
      for (std::size_t k = 0; k < function.operands; ++k) codes.at(k) = arrays.operands.at(k)[i];
      INFO(function.name << ", " << formats::word_of(function.compile) << " of " << std::hex
                         << codes[0] << ", " << codes[1] << ", " << codes[2] << ", " << codes[3]);
      const emulator::ResultCodes wanted = function.reference(codes);
      for (std::size_t k = 0; k < function.results; ++k)
        REQUIRE(wanted.at(k) == arrays.results.at(k)[i]);
    }
  }
}

/// A result as a number, and an operand of that number.
double value_of(const formats::Format& format, std::uint64_t code) {
  const auto word = static_cast<std::uint32_t>(code);
  return format == formats::int32 ? static_cast<double>(static_cast<std::int32_t>(word))
                                  : double{std::bit_cast<float>(word)};
}
std::uint64_t code_of(const formats::Format& format, double x) {
  return format == formats::int32 ? static_cast<std::uint32_t>(static_cast<std::int32_t>(x))
                                  : std::bit_cast<std::uint32_t>(static_cast<float>(x));
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
        for (std::size_t k = 0; k < function.operands; ++k) {
          const formats::Format& format = function.formats.operands.at(k);
          codes.at(k) = code_of(format, std::array{x, y, -x * 0.5, y + 1}.at(k));
          numbers.at(k) = value_of(format, codes.at(k));
        }
        const auto wanted = function.in_doubles(numbers);
        const emulator::ResultCodes results = function.reference(codes);
        for (std::size_t k = 0; k < function.results; ++k) {
          const double number = value_of(function.formats.results.at(k), results.at(k));
          INFO(function.name << ", " << formats::word_of(function.compile) << " of " << x << ", "
                             << y);
          CHECK(std::isnan(wanted.at(k)) == std::isnan(number));
          if (!std::isnan(wanted.at(k)))
            CHECK(std::abs(number - wanted.at(k)) < 1e-5 * (1 + std::abs(wanted.at(k))));
        }
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
      Catch::Matchers::Contains("--compile") && Catch::Matchers::Contains("instruction"));
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
