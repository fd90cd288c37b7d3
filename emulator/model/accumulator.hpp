#pragma once

#include <array>
#include <cstdint>

#include "formats/rounding.hpp"

// The arithmetic of one accumulation as data: every way in which machines differ is a field of
// AccumulatorSpec.
namespace guardbit::emulator {

using formats::Rounding;

/// How the products of one dot product and the addend become one number.
enum class Summation : std::uint8_t {
  /// aligned to the largest exponent, cut there, added exactly, converted once (NVIDIA;
  /// NUMERICS 1.1)
  fused,
  /// added without any loss, rounded once (CDNA1; NUMERICS 4.1)
  exact,
  /// one fused multiply-add per product, k ascending
  fma_chain,
  /// products and partial sums rounded in a balanced tree, the addend last (CDNA2;
  /// NUMERICS 4.1)
  pairwise,
  /// products fused among themselves, then that sum fused with the addend (CDNA3, RDNA4;
  /// NUMERICS 4.1, 4.2)
  two_stage,
  /// products and addend aligned to the coarser of two grids, the products' and the addend's, added
  /// exactly, converted once (RDNA3; NUMERICS 4.2)
  two_grids,
  /// exact total including the addend, then wrapped or saturated once (NUMERICS 3.1)
  integer,
};
constexpr auto words(Summation) {
  return std::array{"fused", "exact", "fma_chain", "pairwise", "two_stage", "two_grids", "integer"};
}

/// What one pair of operands contributes.
enum class Product : std::uint8_t { multiply, bit_and, bit_xor };
constexpr auto words(Product) { return std::array{"multiply", "bit_and", "bit_xor"}; }

/// Which products of a two-stage block are fused together.
enum class Interleave : std::uint8_t {
  /// all of them
  none,
  /// those of even and of odd k, whose two sums are joined before they meet the addend
  even_odd,
  /// neighbours, two by two, whose sums meet the addend one by one (RDNA4)
  pairs,
};
constexpr auto words(Interleave) { return std::array{"none", "even_odd", "pairs"}; }

/// How a term whose sign is not the addend's is subtracted from it.
enum class Subtraction : std::uint8_t {
  /// m becomes -m
  twos_complement,
  /// m becomes -m - 1: its bits are inverted, and nothing adds the one (RDNA3). Zeros have signs
  /// and are subtracted too.
  ones_complement,
};
constexpr auto words(Subtraction) { return std::array{"twos_complement", "ones_complement"}; }

enum class Subnormals : std::uint8_t {
  keep,
  /// operands count as +0; a result whose code is subnormal is the zero of its sign
  flush,
  /// x86's DAZ and FTZ: operands are zeros of their sign; a result is one when it is
  /// tiny after rounding (IEEE 754-2019 7.5), which some that round up to the smallest
  /// normal number are (NUMERICS 5.2)
  daz_ftz,
};
constexpr auto words(Subnormals) { return std::array{"keep", "flush", "daz_ftz"}; }

enum class NanPolicy : std::uint8_t {
  /// 7FFFFFFF or 7FFF: sign and payload dropped
  all_ones,
  /// of each FMA: a quieted copy of B, else of C, else of A; an invalid operation
  /// gives the negative quiet NaN (DMMA, measured on an H200)
  operand_bca,
  /// of each FMA: a quieted copy of A, else of B, else of C; of each addition: of
  /// the first operand, else of the second; an invalid operation gives the negative
  /// quiet NaN (x86, NUMERICS 5.3)
  operand_abc,
  /// of a NaN factor, the negative quiet NaN whose payload ends in the bits of a3d; else of an
  /// invalid product or infinite products of both signs, the negative quiet NaN; else a quieted
  /// copy of the addend; an infinite addend against an infinite product gives the negative quiet
  /// NaN (RDNA)
  products_addend,
  /// the same, but every invalid operation gives what a NaN factor does (RDNA4's FP8)
  products_alike,
  /// some NaN: no source gives sign and payload, so NaNs are compared as NaN
  unspecified,
};
constexpr auto words(NanPolicy) {
  return std::array{"all_ones",        "operand_bca",    "operand_abc",
                    "products_addend", "products_alike", "unspecified"};
}

/// Sign of a nonzero sum that the final conversion turns into zero.
enum class ZeroSign : std::uint8_t { positive, of_sum };
constexpr auto words(ZeroSign) { return std::array{"positive", "of_sum"}; }

enum class IntegerOverflow : std::uint8_t { wrap, saturate };
constexpr auto words(IntegerOverflow) { return std::array{"wrap", "saturate"}; }

/// The arithmetic of one accumulation, as data. `dot.hpp` interprets it. Exponents are unbiased; E
/// is the largest exponent among the terms of a block, and a block is summed on the grid of
/// multiples of 2^(E - kept_fraction_bits).
struct AccumulatorSpec {
  Summation summation = Summation::fused;
  Product product = Product::multiply;
  /// products accumulated together (L); longer dot products are chained blocks. 0: all
  int terms = 0;
  /// products summed exactly before alignment (16 in the FP4 block-scaled kinds)
  int exact_group = 1;
  /// F: bits kept below 2^E
  int kept_fraction_bits = 0;
  /// how a term is cut to the grid
  Rounding alignment = Rounding::toward_zero;
  /// e0: the exponent that a zero product and a zero addend contribute to E
  int min_exponent = 0;
  /// fraction bits to which a result is rounded; 0: those of its format. Fewer than it has leave
  /// zeros below (13 for E8M13); more are cut off after the rounding, by two stages and two grids
  /// alone (23 for BF16: a code of FP32 of which the upper half is kept)
  int result_fraction_bits = 0;
  Rounding result = Rounding::toward_zero;
  Subnormals input = Subnormals::keep;
  Subnormals output = Subnormals::keep;
  NanPolicy nan = NanPolicy::all_ones;
  ZeroSign underflowed_sum = ZeroSign::positive;
  IntegerOverflow integer_overflow = IntegerOverflow::wrap;

  // Two stages only, where nothing else is said.
  Interleave interleave = Interleave::none;
  /// the exponent that a zero product contributes; a zero addend has min_exponent (two grids too)
  int zero_product_exponent = 0;
  /// bits of the product sum kept below the larger of its and the addend's exponent
  int sum_kept_fraction_bits = 0;
  /// bits of the total kept below its leading bit before the final rounding. 0: all
  int total_kept_fraction_bits = 0;
  /// an addend whose exponent is this much below E counts as zero. 0: never
  int addend_cutoff = 0;
  /// a product of this exponent or more is an infinity at once. 0: never
  int product_overflow_exponent = 0;

  // Two grids only. That of the products is 2^(their E - kept_fraction_bits).
  /// the addend's grid is 2^(its exponent - addend_kept_fraction_bits)
  int addend_kept_fraction_bits = 0;
  Subtraction subtraction = Subtraction::twos_complement;

  friend constexpr bool operator==(const AccumulatorSpec&, const AccumulatorSpec&) = default;
};

}  // namespace guardbit::emulator
