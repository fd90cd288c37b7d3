#include "experiments/traces/magnitude_block.hpp"

#include <algorithm>
#include <cstring>
#include <random>
#include <vector>

#include "tests/catch.hpp"
#include "tests/instruction_sets_here.hpp"

namespace guardbit::experiments {
namespace {

using tests::Avx2;
using tests::Avx512;
using tests::Neon;
using tests::Portable;

/// Blocks of few and of many exponents, with zeros, at the ends of the ranges and past them.
std::vector<std::vector<std::uint32_t>> blocks() {
  std::mt19937_64 random(3);
  std::vector<std::vector<std::uint32_t>> all;
  for (const auto& [first, count] : {std::pair(1U, 1U),
                                     {120U, 10U},
                                     {100U, 24U},
                                     {100U, 25U},
                                     {1U, 254U},
                                     {0U, 255U},
                                     {230U, 26U}}) {
    for (const unsigned zeros : {0U, 2U, 1U}) {
      std::vector<std::uint32_t> words(block_length);
      for (std::uint32_t& word : words) {
        word = static_cast<std::uint32_t>((random() & 0x807FFFFFU) | (first + random() % count)
                                                                         << 23U);
        if (zeros != 0 && random() % zeros == 0) word &= 0x80000000U;
      }
      all.push_back(words);
    }
  }
  return all;
}

TEMPLATE_TEST_CASE("trace: blocks are filled and counted alike by every instruction set", "[cpu]",
                   Avx512, Avx2, Neon, Portable) {
  if (!tests::can_test(TestType::sets)) return;
  const auto all = block_functions();
  const auto found = std::find_if(all.begin(), all.end(), [](const BlockFunctions& functions) {
    return functions.instruction_set == TestType::name;
  });
  REQUIRE(found != all.end());
  const BlockFunctions& functions = *found;
  FractionCuts cuts;
  cuts.fill(~std::uint32_t{0});
  for (std::size_t used = 0; used < ranks; ++used) {
    if (used > 0) cuts[used - 1] = static_cast<std::uint32_t>(used * used * 0x1C0000U / 8 + 1);
    REQUIRE(number_of_cuts(cuts) == used);
    for (const std::vector<std::uint32_t>& words : blocks()) {
      const auto* const bytes = reinterpret_cast<const std::byte*>(words.data());
      CAPTURE(used, words.front());
      MagnitudeBlock block;
      functions.fill[used](block, bytes, cuts);
      std::size_t wrong = 0;
      std::uint32_t largest = 0, least = ~std::uint32_t{0};
      for (std::size_t i = 0; i < block_length; ++i) {
        const std::uint32_t magnitude = words[i] & 0x7FFFFFFFU;
        const std::uint32_t fraction = magnitude & 0x7FFFFFU;
        std::uint32_t slot = (magnitude >> 23U) * static_cast<std::uint32_t>(ranks);
        for (std::size_t k = 0; k < used; ++k) slot += fraction >= cuts[k] ? 1U : 0U;
        const std::uint64_t significand = fraction | 0x800000U;
        wrong += block.magnitudes[i] != magnitude || block.slots[i] != slot ||
                         block.terms[i][0] != (std::uint64_t{1} << count_shift) + significand ||
                         block.terms[i][1] != significand * significand
                     ? 1U
                     : 0U;
        largest = std::max(largest, magnitude);
        if (magnitude != 0) least = std::min(least, magnitude);
      }
      CHECK(wrong == 0);
      CHECK(block.largest == largest);
      CHECK(block.least_less_one == least - (least == ~std::uint32_t{0} ? 0 : 1));
      CHECK(block.has_nonfinite == (largest >= 0x7F800000U));
      CHECK(block.has_subnormal == (least < 0x800000U));

      ExponentCounts counts;
      const bool counted = functions.count(counts, bytes);
      CHECK(counted == (largest < 0x7F800000U && least >= 0x800000U));
      std::vector<std::uint64_t> expected(256), counted_words(256);
      for (const std::uint32_t word : words) expected[word >> 23U & 0xFFU] += counted ? 1 : 0;
      for (const auto& lane : counts.lanes) {
        for (std::size_t e = 0; e < 256; ++e) counted_words[e] += lane[e];
      }
      CHECK(counted_words == expected);
      CHECK(counts.largest == (counted ? largest : 0));
      CHECK(counts.least_less_one == (counted ? block.least_less_one : ~std::uint32_t{0}));
    }
  }
}

}  // namespace
}  // namespace guardbit::experiments
