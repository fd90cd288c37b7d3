#include "emulator/functions/function_catalogue.hpp"

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
#include "formats/support/error.hpp"
#include "formats/support/parallel.hpp"
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

TEST_CASE("functions give the hardware's results, in part") {
  for (const Function& function : function_catalogue()) {
    INFO(function.name);
    REQUIRE(recorded_digests().contains(std::string(function.name)));
    CHECK(digest_of(function, emulator::quick_digest_stride) ==
          recorded_digests().at(std::string(function.name)).quick);
  }
}

TEST_CASE("functions give the hardware's results for all inputs", "[sweep]") {
  for (const Function& function : function_catalogue()) {
    INFO(function.name);
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
  std::vector<std::uint32_t> y = arguments(600), results(x.size());
  for (std::size_t i = 0; i < y.size(); ++i) std::swap(y[i], y[i * 31 % y.size()]);
  for (const Function& function : function_catalogue()) {
    function.run({{x, y}, {results}});
    for (std::size_t i = 0; i < x.size(); ++i) {
      INFO(function.name << " of " << std::hex << x[i] << ", " << y[i]);
      REQUIRE(function.reference({x[i], y[i]})[0] == results[i]);
    }
  }
}

TEST_CASE("functions compute what the catalogue says") {
  const auto number = [](std::uint32_t code) { return double{std::bit_cast<float>(code)}; };
  for (const Function& function : function_catalogue()) {
    for (const float x : {0.3F, 0.75F, 1.25F, 2.5F, -0.6F, -2.25F}) {
      for (const float y : {1.5F, -3.0F}) {
        const double wanted = function.in_doubles({x, y})[0];
        const auto code = static_cast<std::uint32_t>(function.reference(
            {std::bit_cast<std::uint32_t>(x), std::bit_cast<std::uint32_t>(y)})[0]);
        INFO(function.name << " of " << x << ", " << y);
        CHECK(std::isnan(wanted) == std::isnan(number(code)));
        if (!std::isnan(wanted))
          CHECK(std::abs(number(code) - wanted) < 1e-5 * (1 + std::abs(wanted)));
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
