#include "experiments/traces/magnitude_block.hpp"

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "emulator/engine/cpu.hpp"
#include "formats/support/first_code.hpp"
#include "formats/tensors/storage.hpp"

namespace guardbit::experiments {

namespace {

constexpr std::size_t block_bytes = 4 * block_length;
constexpr std::uint32_t fp32_fraction_mask = 0x7FFFFF;

/// A block is a page of memory, where a processor's own prefetching ends.
[[gnu::always_inline]] inline void prefetch_next(const std::byte* words) {
  for (std::size_t at = 0; at < block_bytes; at += 64)
    __builtin_prefetch(words + block_bytes + at, 0, 3);
}

/// One text for every instruction set: it is compiled into each function below. Plain loops over
/// arrays that are known not to overlap, which compilers turn into vectors. `used` cuts are there.
template <std::size_t used>
[[gnu::always_inline]] inline void fill(MagnitudeBlock& block, const std::byte* words,
                                        const FractionCuts& all_cuts) {
  std::uint32_t* const __restrict magnitudes = block.magnitudes.data();
  std::uint32_t* const __restrict places = block.slots.data();
  std::uint64_t* const __restrict terms = reinterpret_cast<std::uint64_t*>(block.terms.data());
  const FractionCuts cuts = all_cuts;
  std::uint32_t largest = 0;
  std::uint32_t least = ~std::uint32_t{0};
  for (std::size_t i = 0; i < block_length; ++i) {
    const std::uint32_t magnitude = formats::load_word<std::uint32_t>(words + 4 * i) & 0x7FFFFFFFU;
    magnitudes[i] = magnitude;
    largest = std::max(largest, magnitude);
    least = std::min(least, magnitude - 1);  // zero wraps to the largest
  }
  for (std::size_t i = 0; i < block_length; ++i) {
    const std::uint32_t fraction = magnitudes[i] & fp32_fraction_mask;
    std::uint32_t slot = (magnitudes[i] >> 23) * static_cast<std::uint32_t>(ranks);
    for (std::size_t k = 0; k < used; ++k) slot += fraction >= cuts[k] ? 1U : 0U;
    places[i] = slot;
  }
  for (std::size_t i = 0; i < block_length; ++i) {
    const std::uint64_t significand =
        (magnitudes[i] & fp32_fraction_mask) | (fp32_fraction_mask + 1);
    terms[2 * i] = significand + (std::uint64_t{1} << count_shift);
    terms[2 * i + 1] = significand * significand;
  }
  prefetch_next(words);
  block.largest = largest;
  block.least_less_one = least;
  block.has_subnormal = least < fp32_fraction_mask;
  block.has_nonfinite = largest >= formats::fp32_infinity;
}

/// Counts a block whose numbers have few exponents by comparing all bytes with each exponent, a
/// Vector at a time; else one element after the other.
template <class Vector>
[[gnu::always_inline]] inline bool count(ExponentCounts& counts, const std::byte* words) {
  using Bytes = typename Vector::Bytes;
  constexpr std::size_t width = sizeof(Bytes);
  alignas(64) std::array<std::uint8_t, block_length> bytes;
  std::uint8_t* const __restrict exponents = bytes.data();
  std::uint32_t largest = 0;
  std::uint32_t least = ~std::uint32_t{0};
  for (std::size_t i = 0; i < block_length; ++i) {
    const std::uint32_t magnitude = formats::load_word<std::uint32_t>(words + 4 * i) & 0x7FFFFFFFU;
    largest = std::max(largest, magnitude);
    least = std::min(least, magnitude - 1);
    exponents[i] = static_cast<std::uint8_t>(magnitude >> 23);
  }
  if (largest >= formats::fp32_infinity || least < fp32_fraction_mask) return false;
  counts.largest = std::max(counts.largest, largest);
  counts.least_less_one = std::min(counts.least_less_one, least);

  prefetch_next(words);
  const std::uint32_t last = largest >> 23;
  const std::uint32_t first = least == ~std::uint32_t{0} ? 1 : (least + 1) >> 23;
  constexpr std::uint32_t few = 24;
  if (last >= first + few) {
    for (std::size_t i = 0; i < block_length; ++i) ++counts.lanes[i % lanes_of_counts][bytes[i]];
    return true;
  }
  auto zeros = static_cast<std::uint32_t>(block_length);
  for (std::uint32_t exponent = first; exponent <= last; ++exponent) {
    const Bytes wanted = Bytes{} + static_cast<std::uint8_t>(exponent);
    Bytes equal = {};  // at most block_length / width = 64 each
    for (std::size_t i = 0; i < block_length; i += width) {
      Bytes some;
      std::memcpy(&some, exponents + i, width);
      equal -= reinterpret_cast<Bytes>(some == wanted);
    }
    std::uint32_t sum = 0;
    for (std::size_t i = 0; i < width; ++i) sum += equal[i];
    counts.lanes[0][exponent] += sum;
    zeros -= sum;
  }
  counts.lanes[0][0] += zeros;
  return true;
}

struct Vector16 {
  using Bytes [[gnu::vector_size(16)]] = std::uint8_t;
};
struct Vector32 {
  using Bytes [[gnu::vector_size(32)]] = std::uint8_t;
};
struct Vector64 {
  using Bytes [[gnu::vector_size(64)]] = std::uint8_t;
};

template <std::size_t used>
void fill_portable(MagnitudeBlock& block, const std::byte* words, const FractionCuts& cuts) {
  fill<used>(block, words, cuts);
}
bool count_portable(ExponentCounts& counts, const std::byte* words) {
  return count<Vector16>(counts, words);
}

template <std::size_t... used>
BlockFunctions portable(std::index_sequence<used...>) {
  return {"portable", {fill_portable<used>...}, count_portable};
}

#if defined(__x86_64__)
#if defined(__clang__)
#define GUARDBIT_AVX512 target("avx512f,avx512bw,avx512dq,avx512vl"), min_vector_width(512)
#else
#define GUARDBIT_AVX512 target("avx512f,avx512bw,avx512dq,avx512vl,prefer-vector-width=512")
#endif

template <std::size_t used>
__attribute__((GUARDBIT_AVX512)) void fill_avx512(MagnitudeBlock& block, const std::byte* words,
                                                  const FractionCuts& cuts) {
  fill<used>(block, words, cuts);
}
__attribute__((GUARDBIT_AVX512)) bool count_avx512(ExponentCounts& counts, const std::byte* words) {
  return count<Vector64>(counts, words);
}
template <std::size_t used>
__attribute__((target("avx2"))) void fill_avx2(MagnitudeBlock& block, const std::byte* words,
                                               const FractionCuts& cuts) {
  fill<used>(block, words, cuts);
}
__attribute__((target("avx2"))) bool count_avx2(ExponentCounts& counts, const std::byte* words) {
  return count<Vector32>(counts, words);
}

template <std::size_t... used>
std::vector<BlockFunctions> available(std::index_sequence<used...> all) {
  std::vector<BlockFunctions> found;
  const emulator::cpu::Features& cpu = emulator::cpu::features();
  if (cpu.avx512_kernels) found.push_back({"avx512", {fill_avx512<used>...}, count_avx512});
  if (cpu.avx2_kernels) found.push_back({"avx2", {fill_avx2<used>...}, count_avx2});
  found.push_back(portable(all));
  return found;
}
#undef GUARDBIT_AVX512
#else
template <std::size_t... used>
std::vector<BlockFunctions> available(std::index_sequence<used...> all) {
  return {portable(all)};
}
#endif

}  // namespace

std::span<const BlockFunctions> block_functions() {
  static const std::vector<BlockFunctions> found = available(std::make_index_sequence<ranks>());
  return found;
}

std::size_t number_of_cuts(const FractionCuts& cuts) {
  return static_cast<std::size_t>(std::find(cuts.begin(), cuts.end(), ~std::uint32_t{0}) -
                                  cuts.begin());
}

}  // namespace guardbit::experiments
