#include "experiments/traces/magnitude_counts.hpp"

#include <algorithm>
#include <array>
#include <cassert>
#include <cstring>
#include <mutex>

#include "experiments/traces/magnitude_block.hpp"
#include "formats/codec.hpp"
#include "formats/support/parallel.hpp"
#include "formats/tensors/storage.hpp"

namespace guardbit::experiments {

using formats::Format;
using formats::uint128;

namespace {

constexpr std::size_t grain = std::size_t{1} << 18;
constexpr std::size_t lanes = 8;  // neighbours that fall into one slot do not wait for each other
// A lane sees at most grain / lanes = 2^16 elements before it is emptied: 2^16 significands of 24
// bits stay below 2^40, 2^16 squares of them below 2^64.
static_assert(grain / lanes <= std::size_t{1} << 16 && grain % (block_length * lanes) == 0);

std::uint64_t significand_of(const Format& word, std::uint64_t magnitude) {
  const std::uint64_t fraction = magnitude & fraction_mask(word);
  return magnitude == fraction ? fraction : fraction | min_normal_code(word);
}

void add_one(const MagnitudeCells& cells, std::uint64_t magnitude, std::uint64_t times,
             MagnitudeCounts& counts) {
  const std::size_t cell = cells.cell_of(magnitude);
  const std::uint64_t significand = significand_of(cells.word(), magnitude);
  counts.elements += times;
  counts.count[cell] += times;
  if (cell >= cells.infinity()) return;
  counts.sum[cell].add(uint128{significand} * times);
  const uint128 square = uint128{significand} * significand;
  // (high * 2^64 + low) * times, each product below 2^128
  counts.squares[cell].add(uint128{static_cast<std::uint64_t>(square)} * times);
  const uint128 high = uint128{static_cast<std::uint64_t>(square >> 64)} * times;
  counts.squares[cell].add(high << 64);
  counts.squares[cell].high += static_cast<std::uint64_t>(high >> 64);
  counts.largest = std::max(counts.largest, magnitude);
  if (magnitude != 0) counts.least = std::min(counts.least, magnitude);
}

/// The cells of FP32 as slots of (exponent, rank of the fraction), where the cuts within the
/// binades of normal numbers have few fractions. They do when product and destination are normal:
/// scaling moves a cut by whole binades.
struct Slots {
  FractionCuts cuts;
  /// of each slot
  std::vector<std::size_t> cell;

  static std::optional<Slots> of(const MagnitudeCells& cells) {
    if (cells.word() != formats::fp32) return std::nullopt;
    std::vector<std::uint32_t> fractions;
    for (const std::uint64_t start : cells.starts()) {
      const std::uint64_t fraction = start & fraction_mask(formats::fp32);
      if (start >= min_normal_code(formats::fp32) && fraction != 0)
        fractions.push_back(static_cast<std::uint32_t>(fraction));
    }
    fractions.push_back(1);  // tells zero from subnormals, and infinity from NaN
    std::sort(fractions.begin(), fractions.end());
    fractions.erase(std::unique(fractions.begin(), fractions.end()), fractions.end());
    if (fractions.size() >= ranks) return std::nullopt;
    Slots made;
    made.cuts.fill(~std::uint32_t{0});
    std::copy(fractions.begin(), fractions.end(), made.cuts.begin());
    for (std::size_t slot = 0; slot < slots; ++slot) {
      const std::size_t rank = std::min(slot % ranks, fractions.size());
      const std::uint64_t fraction = rank == 0 ? 0 : fractions[rank - 1];
      made.cell.push_back(cells.cell_of(slot / ranks << 23 | fraction));
    }
    return made;
  }
};

/// What the elements of one range add to the slots, as (count << count_shift) + sum and squares.
struct SlotSums {
  std::vector<std::array<SlotTerm, lanes>> sums;
  SlotSums() : sums(slots) {}

  void add(const MagnitudeBlock& block) {
    for (std::size_t i = 0; i < block_length; i += lanes) {
      for (std::size_t lane = 0; lane < lanes; ++lane)
        sums[block.slots[i + lane]][lane] += block.terms[i + lane];
    }
  }

  void empty_into(const MagnitudeCells& cells, const Slots& places, MagnitudeCounts& counts) const {
    for (std::size_t slot = 0; slot < slots; ++slot) {
      const std::size_t cell = places.cell[slot];
      for (std::size_t lane = 0; lane < lanes; ++lane) {
        const std::uint64_t packed = sums[slot][lane][0];
        if (packed == 0) continue;
        counts.count[cell] += packed >> count_shift;
        if (cell < cells.first_nonzero() || cell >= cells.infinity()) continue;
        counts.sum[cell].add(packed & formats::low_bits(count_shift));
        counts.squares[cell].add(sums[slot][lane][1]);
      }
    }
  }
};

void note_nonfinite(const MagnitudeBlock& block, std::size_t begin, MagnitudeCounts& counts) {
  if (!block.has_nonfinite || counts.first_nonfinite) return;
  const auto at = std::find_if(block.magnitudes.begin(), block.magnitudes.end(),
                               [](std::uint32_t m) { return m >= 0x7F800000U; });
  counts.first_nonfinite = begin + static_cast<std::size_t>(at - block.magnitudes.begin());
}

void count_fp32(const MagnitudeCells& cells, const Slots& places, const std::byte* words,
                std::size_t begin, std::size_t end, MagnitudeCounts& counts) {
  SlotSums sums;
  MagnitudeBlock block;
  std::size_t at = begin;
  const auto fill = block_functions().front().fill[number_of_cuts(places.cuts)];
  for (; at + block_length <= end; at += block_length) {
    fill(block, words + at * 4, places.cuts);
    note_nonfinite(block, at, counts);
    if (block.has_subnormal || block.has_nonfinite) {
      for (const std::uint32_t magnitude : block.magnitudes) add_one(cells, magnitude, 1, counts);
      continue;
    }
    sums.add(block);
    counts.elements += block_length;
    counts.largest = std::max<std::uint64_t>(counts.largest, block.largest);
    if (block.least_less_one != ~std::uint32_t{0})
      counts.least = std::min<std::uint64_t>(counts.least, block.least_less_one + 1U);
  }
  sums.empty_into(cells, places, counts);
  for (; at < end; ++at) {
    const std::uint32_t magnitude = formats::load_word<std::uint32_t>(words + at * 4) & 0x7FFFFFFFU;
    if (magnitude >= 0x7F800000U && !counts.first_nonfinite) counts.first_nonfinite = at;
    add_one(cells, magnitude, 1, counts);
  }
}

/// Whether each biased exponent's normal numbers, and zero, are one cell.
bool are_binades(const MagnitudeCells& cells) {
  if (cells.word() != formats::fp32) return false;
  const std::uint64_t normal = min_normal_code(formats::fp32);
  return std::all_of(cells.starts().begin(), cells.starts().end(), [&](std::uint64_t start) {
    return start < normal || start % normal == 0 || start > infinity_code(formats::fp32);
  });
}

void add_counts(const MagnitudeCells& cells, const ExponentCounts& found, MagnitudeCounts& counts) {
  for (std::uint64_t exponent = 0; exponent < 256; ++exponent) {
    std::uint64_t times = 0;
    for (const auto& lane : found.lanes) times += lane[exponent];
    counts.count[cells.cell_of(exponent << 23)] += times;
    counts.elements += times;
  }
  counts.largest = std::max<std::uint64_t>(counts.largest, found.largest);
  if (found.least_less_one != ~std::uint32_t{0})
    counts.least = std::min<std::uint64_t>(counts.least, found.least_less_one + 1U);
}

/// Without sums, where the cells are binades.
void count_binades(const MagnitudeCells& cells, const std::byte* words, std::size_t begin,
                   std::size_t end, MagnitudeCounts& counts) {
  ExponentCounts found;
  const auto count_block = block_functions().front().count;
  for (std::size_t at = begin; at < end; at += block_length) {
    if (at + block_length <= end && count_block(found, words + at * 4)) continue;
    for (std::size_t i = at; i < std::min(end, at + block_length); ++i) {
      const std::uint32_t magnitude =
          formats::load_word<std::uint32_t>(words + i * 4) & 0x7FFFFFFFU;
      if (magnitude >= 0x7F800000U && !counts.first_nonfinite) counts.first_nonfinite = i;
      add_one(cells, magnitude, 1, counts);
    }
  }
  add_counts(cells, found, counts);
}

std::uint64_t magnitude_of(const MagnitudeCells& cells, std::uint64_t code) {
  const formats::Value x = formats::decode(cells.from(), code);
  return encode(cells.word(), x) & magnitude_mask(cells.word());
}

void count_one_by_one(const MagnitudeCells& cells, const formats::Tensor& tensor, std::size_t begin,
                      std::size_t end, MagnitudeCounts& counts) {
  for (std::size_t i = begin; i < end; ++i) {
    const std::uint64_t code = formats::load_code(tensor.bytes, tensor.format, tensor.packing, i);
    const std::uint64_t magnitude = cells.from() == cells.word()
                                        ? code & magnitude_mask(cells.word())
                                        : magnitude_of(cells, code);
    if (magnitude >= infinity_code(cells.word()) && !counts.first_nonfinite)
      counts.first_nonfinite = i;
    add_one(cells, magnitude, 1, counts);
  }
}

/// Formats of few codes: how often each one occurs says all.
void count_codes(const MagnitudeCells& cells, const formats::Tensor& tensor, std::size_t begin,
                 std::size_t end, MagnitudeCounts& counts) {
  std::vector<std::uint32_t> times(std::size_t{1} << bits(cells.from()));
  for (std::size_t i = begin; i < end; ++i)
    ++times[formats::load_code(tensor.bytes, tensor.format, tensor.packing, i)];
  bool nonfinite = false;
  for (std::size_t code = 0; code < times.size(); ++code) {
    if (times[code] == 0) continue;
    const std::uint64_t magnitude = magnitude_of(cells, code);
    nonfinite = nonfinite || magnitude >= infinity_code(cells.word());
    add_one(cells, magnitude, times[code], counts);
  }
  for (std::size_t i = begin; nonfinite && !counts.first_nonfinite; ++i) {
    const std::uint64_t code = formats::load_code(tensor.bytes, tensor.format, tensor.packing, i);
    if (magnitude_of(cells, code) >= infinity_code(cells.word())) counts.first_nonfinite = i;
  }
}

}  // namespace

void MagnitudeCounts::add(const MagnitudeCounts& other) {
  assert(count.size() == other.count.size());
  elements += other.elements;
  for (std::size_t i = 0; i < count.size(); ++i) {
    if (other.count[i] == 0) continue;
    count[i] += other.count[i];
    sum[i].add(other.sum[i]);
    squares[i].add(other.squares[i]);
  }
  largest = std::max(largest, other.largest);
  least = std::min(least, other.least);
  if (other.first_nonfinite && (!first_nonfinite || *other.first_nonfinite < *first_nonfinite))
    first_nonfinite = other.first_nonfinite;
}

std::uint64_t MagnitudeCounts::between(std::size_t first, std::size_t last) const {
  std::uint64_t total = 0;
  for (std::size_t i = first; i < last; ++i) total += count[i];
  return total;
}

MagnitudeCounts count_magnitudes(const MagnitudeCells& cells, const formats::Tensor& tensor,
                                 int threads, const std::function<void(std::size_t done)>& progress,
                                 Sums sums) {
  assert(tensor.format == cells.from());
  const std::optional<Slots> places =
      tensor.format == formats::fp32 ? Slots::of(cells) : std::nullopt;
  const auto count = static_cast<std::size_t>(formats::element_count(tensor.shape));
  MagnitudeCounts all(cells.size());
  std::mutex mutex;
  formats::parallel_for(count, grain, threads, [&](std::size_t begin, std::size_t end) {
    MagnitudeCounts part(cells.size());
    if (sums == Sums::none && tensor.format == formats::fp32 && are_binades(cells)) {
      count_binades(cells, tensor.bytes.data(), begin, end, part);
    } else if (places) {
      count_fp32(cells, *places, tensor.bytes.data(), begin, end, part);
    } else if (bits(tensor.format) <= 16 && end - begin > std::size_t{1} << 12) {
      count_codes(cells, tensor, begin, end, part);
    } else {
      count_one_by_one(cells, tensor, begin, end, part);
    }
    if (sums == Sums::none) {
      std::fill(part.sum.begin(), part.sum.end(), Sum192());
      std::fill(part.squares.begin(), part.squares.end(), Sum192());
    }
    const std::lock_guard lock(mutex);
    all.add(part);
    if (progress) progress(static_cast<std::size_t>(all.elements));
  });
  return all;
}

MagnitudeCounts count_magnitudes_one_by_one(const MagnitudeCells& cells,
                                            const formats::Tensor& tensor) {
  MagnitudeCounts counts(cells.size());
  count_one_by_one(cells, tensor, 0, static_cast<std::size_t>(formats::element_count(tensor.shape)),
                   counts);
  return counts;
}

}  // namespace guardbit::experiments
