#include "experiments/magnitude_block.hpp"

#include <algorithm>
#include <cstring>

#include "formats/first_word.hpp"

namespace guardbit::experiments {

namespace {

constexpr std::uint32_t fraction_mask = 0x7FFFFF;

/// One text for every instruction set: it is compiled into each function below. Plain loops over
/// arrays that are known not to overlap, which compilers turn into vectors.
[[gnu::always_inline]] inline void fill(MagnitudeBlock& block, const std::byte* words,
                                        const FractionCuts& all_cuts) {
  std::uint32_t* const __restrict magnitudes = block.magnitudes.data();
  std::uint32_t* const __restrict places = block.slots.data();
  const FractionCuts cuts = all_cuts;
  std::uint32_t largest = 0;
  std::uint32_t least = ~std::uint32_t{0};
  std::memcpy(magnitudes, words, sizeof block.magnitudes);
  for (std::size_t i = 0; i < block_length; ++i) {
    const std::uint32_t magnitude = magnitudes[i] & 0x7FFFFFFFU;
    magnitudes[i] = magnitude;
    largest = std::max(largest, magnitude);
    least = std::min(least, magnitude - 1);  // zero wraps to the largest
  }
  for (std::size_t i = 0; i < block_length; ++i) {
    const std::uint32_t fraction = magnitudes[i] & fraction_mask;
    std::uint32_t slot = (magnitudes[i] >> 23) * static_cast<std::uint32_t>(ranks);
    for (std::size_t k = 0; k < cuts.size(); ++k) slot += fraction >= cuts[k] ? 1U : 0U;
    places[i] = slot;
  }
  block.largest = largest;
  block.least_less_one = least;
  block.has_subnormal = least < fraction_mask;
  block.has_nonfinite = largest >= formats::fp32_infinity;
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
