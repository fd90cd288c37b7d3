#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "formats/conversion/kernels/conversion_kernels.hpp"
#include "formats/conversion/kernels/conversion_loops.hpp"
#include "formats/conversion/kernels/conversion_plan.hpp"

// Kernels over blocks that share a scale. A vector lies within one block: blocks have 16 elements
// or more.
namespace guardbit::formats::kernels {

template <class Lanes>
void block_maxima(const std::byte* words, int block_shift, std::uint32_t* maxima,
                  std::size_t count) {
  const std::size_t block_size = std::size_t{1} << block_shift;
  for (std::size_t i = 0; i < count; i += block_size) {
    auto largest = Lanes::set(0);
    for (std::size_t j = 0; j < block_size; j += Lanes::count) {
      const auto word = Lanes::load(words + (i + j) * sizeof(std::uint32_t));
      largest = Lanes::larger(largest, word & Lanes::set(0x7FFFFFFF));
    }
    maxima[i >> block_shift] = Lanes::largest(largest);
  }
}

template <class Lanes, Alignment alignment, RoundingClass rounding, Signs signs>
void narrow_blocks_loop(const Narrowing& plan, const std::uint32_t* lowest, int block_shift,
                        const std::byte* words, const std::uint32_t* random, std::byte* codes,
                        std::size_t count) {
  using Word = typename Lanes::Word;
  Narrower<Lanes, alignment, rounding, signs> narrower(plan);
  constexpr std::size_t step = 4 * Lanes::count;
  for (std::size_t i = 0; i < count; i += step) {
    std::array<Word, 4> word;
    std::array<Word, 4> code;
    for (std::size_t part = 0; part < 4; ++part) {
      const std::size_t at = i + part * Lanes::count;
      word[part] = Lanes::load(words + at * sizeof(std::uint32_t));
      narrower.set_lowest(Lanes::set(lowest[at >> block_shift]));
      Word bits{};
      if constexpr (rounding == RoundingClass::stochastic)
        std::memcpy(&bits, random + at, sizeof bits);
      code[part] = narrower.magnitude_code(word[part], bits);
    }
    settle<Lanes>(narrower, word, code);
    Lanes::store8(codes + i, code[0], code[1], code[2], code[3], false);
  }
}

using NarrowBlocksFunction = decltype(Kernels::narrow_blocks);

template <class Lanes, Alignment alignment, Signs signs>
NarrowBlocksFunction narrow_blocks_for_rounding(const Narrowing& plan) {
  if (plan.rounding == RoundingClass::nearest_even)
    return narrow_blocks_loop<Lanes, alignment, RoundingClass::nearest_even, signs>;
  if (plan.rounding == RoundingClass::toward_zero)
    return narrow_blocks_loop<Lanes, alignment, RoundingClass::toward_zero, signs>;
  if (plan.rounding == RoundingClass::stochastic)
    return narrow_blocks_loop<Lanes, alignment, RoundingClass::stochastic, signs>;
  return narrow_blocks_loop<Lanes, Alignment::any, RoundingClass::directed, signs>;
}

template <class Lanes, Alignment alignment>
NarrowBlocksFunction narrow_blocks_for_signs(const Narrowing& plan) {
  if (plan.signs == Signs::complement)
    return narrow_blocks_for_rounding<Lanes, alignment, Signs::complement>(plan);
  return narrow_blocks_for_rounding<Lanes, alignment, Signs::bit>(plan);
}

template <class Lanes>
void narrow_blocks(const Narrowing& plan, const std::uint32_t* lowest, int block_shift,
                   const std::byte* words, const std::uint32_t* random, std::byte* codes,
                   std::size_t count) {
  const NarrowBlocksFunction function =
      plan.alignment == Alignment::tiny_vanish
          ? narrow_blocks_for_signs<Lanes, Alignment::tiny_vanish>(plan)
          : narrow_blocks_for_signs<Lanes, Alignment::any>(plan);
  function(plan, lowest, block_shift, words, random, codes, count);
}

/// How many thresholds a magnitude reaches.
template <class Lanes>
[[gnu::always_inline]] inline typename Lanes::Word thresholds_reached(
    const Thresholds<8>& row, typename Lanes::Word magnitude) {
  const auto one = Lanes::set(1);
  auto reached = Lanes::set(0);
  for (std::size_t k = 0; k + 1 < row.size(); ++k) {
    reached = Lanes::select(Lanes::at_least(magnitude, Lanes::set(row[k])), reached + one, reached);
  }
  return reached;
}

/// Codes of `width` bits: the sign, and below it what `magnitude_code` makes of a magnitude at a
/// place, of which block's row `index` is.
template <class Lanes, class MagnitudeCode>
[[gnu::always_inline]] inline void code_blocks(const std::byte* row_of_block, int block_shift,
                                               int width, const std::byte* words, std::byte* codes,
                                               std::size_t count,
                                               const MagnitudeCode& magnitude_code) {
  using Word = typename Lanes::Word;
  const Word sign_shift = Lanes::set(static_cast<std::uint32_t>(32 - width));
  const Word sign_mask = Lanes::set(1U << (width - 1));
  constexpr std::size_t step = 4 * Lanes::count;
  for (std::size_t i = 0; i < count; i += step) {
    std::array<Word, 4> code;
    for (std::size_t part = 0; part < 4; ++part) {
      const std::size_t at = i + part * Lanes::count;
      const auto index = std::to_integer<std::size_t>(row_of_block[at >> block_shift]);
      const Word word = Lanes::load(words + at * sizeof(std::uint32_t));
      const Word sign = Lanes::shift_right(word, sign_shift) & sign_mask;
      code[part] = magnitude_code(word & Lanes::set(0x7FFFFFFF), index, at) | sign;
    }
    Lanes::store8(codes + i, code[0], code[1], code[2], code[3], false);
  }
}

template <class Lanes>
void compare_blocks(const Thresholds<8>* rows, const std::byte* row_of_block, int block_shift,
                    int width, const std::byte* words, std::byte* codes, std::size_t count) {
  using Word = typename Lanes::Word;
  code_blocks<Lanes>(
      row_of_block, block_shift, width, words, codes,
      count, [=](Word magnitude, std::size_t index, std::size_t) __attribute__((always_inline)) {
        return thresholds_reached<Lanes>(rows[index], magnitude);
      });
}

template <class Lanes>
void carry_blocks(const Thresholds<8>* rows, const BlockCarries* carries,
                  const std::byte* row_of_block, int block_shift, int width, const std::byte* words,
                  const std::uint32_t* random, std::uint32_t random_mask, std::byte* codes,
                  std::size_t count) {
  using Word = typename Lanes::Word;
  const Word one = Lanes::set(1);
  const auto magnitude_code = [=](Word magnitude, std::size_t index, std::size_t at)
      __attribute__((always_inline)) {
    const BlockCarries& carry = carries[index];
    const Word reached = thresholds_reached<Lanes>(rows[index], magnitude);
    Word bits;
    std::memcpy(&bits, random + at, sizeof bits);
    bits = bits & Lanes::set(random_mask);
    const Word field = magnitude >> Lanes::set(23);
    const Word fraction = magnitude & Lanes::set(0x7FFFFF);
    const Word significand = Lanes::select(Lanes::equal(field, Lanes::set(0)), fraction,
                                           fraction | Lanes::set(0x800000));
    const Word shift = Lanes::larger(field, one) + Lanes::set(carry.offset);
    const Word sum =
        Lanes::upper_of_sum(significand, shift, Lanes::pick(carry.weight.data(), reached), bits);
    const auto carries_over = Lanes::at_least(sum, Lanes::pick(carry.next.data(), reached));
    return Lanes::select(carries_over, reached + one, reached);
  };
  code_blocks<Lanes>(row_of_block, block_shift, width, words, codes, count, magnitude_code);
}

}  // namespace guardbit::formats::kernels
