#include "experiments/magnitude_block.hpp"

#include <algorithm>
#include <cstring>

#include "formats/first_word.hpp"

namespace guardbit::experiments {

namespace {

/// One text for every instruction set: it is compiled into each function below.
[[gnu::always_inline]] inline void fill(MagnitudeBlock& block, const std::byte* words,
                                        const FractionCuts& cuts) {
  constexpr std::uint32_t fraction_mask = 0x7FFFFF;
  std::memcpy(block.magnitudes.data(), words, sizeof block.magnitudes);
  std::uint32_t largest = 0;
  std::uint32_t least = ~std::uint32_t{0};
  std::uint32_t subnormals = 0;
  std::uint32_t nonfinite = 0;
  for (std::size_t i = 0; i < block_length; ++i) {
    const std::uint32_t magnitude = block.magnitudes[i] & 0x7FFFFFFFU;
    const std::uint32_t fraction = magnitude & fraction_mask;
    std::uint32_t rank = 0;
    for (const std::uint32_t cut : cuts) rank += fraction >= cut ? 1U : 0U;
    block.magnitudes[i] = magnitude;
    block.slots[i] = (magnitude >> 23) * static_cast<std::uint32_t>(ranks) + rank;
    const bool finite = magnitude < formats::fp32_infinity;
    largest = std::max(largest, finite ? magnitude : 0U);
    least = std::min(least, finite ? magnitude - 1 : ~0U);  // zero wraps to the largest
    subnormals |= magnitude - 1 < fraction_mask ? 1U : 0U;
    nonfinite |= finite ? 0U : 1U;
  }
  block.largest_finite = largest;
  block.least_less_one = least;
  block.has_subnormal = subnormals != 0;
  block.has_nonfinite = nonfinite != 0;
}

using Fill = void(MagnitudeBlock&, const std::byte*, const FractionCuts&);

void fill_portable(MagnitudeBlock& block, const std::byte* words, const FractionCuts& cuts) {
  fill(block, words, cuts);
}

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
__attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,prefer-vector-width=512"))) void
fill_avx512(MagnitudeBlock& block, const std::byte* words, const FractionCuts& cuts) {
  fill(block, words, cuts);
}
__attribute__((target("avx2"))) void fill_avx2(MagnitudeBlock& block, const std::byte* words,
                                               const FractionCuts& cuts) {
  fill(block, words, cuts);
}

Fill* widest() {
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl"))
    return fill_avx512;
  return __builtin_cpu_supports("avx2") ? fill_avx2 : fill_portable;
}
#else
Fill* widest() { return fill_portable; }
#endif

}  // namespace

void fill_block(MagnitudeBlock& block, const std::byte* words, const FractionCuts& cuts) {
  static Fill* const chosen = widest();
  chosen(block, words, cuts);
}

}  // namespace guardbit::experiments
