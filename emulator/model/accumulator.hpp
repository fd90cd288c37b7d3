#pragma once

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
  /// products fused among themselves, then that sum fused with the addend (CDNA3;
  /// NUMERICS 4.1)
  two_stage,
  /// exact total including the addend, then wrapped or saturated once (NUMERICS 3.1)
  integer,
};

/// What one pair of operands contributes.
enum class Product : std::uint8_t { multiply, bit_and, bit_xor };

/// Which products of a two-stage block are fused together.
enum class Interleave : std::uint8_t { none, even_odd };

enum class Subnormals : std::uint8_t {
  keep,
  /// operands count as +0; a result whose code is subnormal is the zero of its sign
  flush,
  /// x86's DAZ and FTZ: operands are zeros of their sign; a result is one when it is
  /// tiny after rounding (IEEE 754-2019 7.5), which some that round up to the smallest
  /// normal number are (NUMERICS 5.2)
  daz_ftz,
};

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
  /// some NaN: no source gives sign and payload, so NaNs are compared as NaN
  unspecified,
};

/// Sign of a nonzero sum that the final conversion turns into zero.
enum class ZeroSign : std::uint8_t { positive, of_sum };

enum class IntegerOverflow : std::uint8_t { wrap, saturate };

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
  /// fraction bits of the result when fewer than its format has (13 for E8M13); 0: all
  int result_fraction_bits = 0;
  Rounding result = Rounding::toward_zero;
  Subnormals input = Subnormals::keep;
  Subnormals output = Subnormals::keep;
  NanPolicy nan = NanPolicy::all_ones;
  ZeroSign underflowed_sum = ZeroSign::positive;
  IntegerOverflow integer_overflow = IntegerOverflow::wrap;

  // Two-stage accumulation only.
  Interleave interleave = Interleave::none;
  /// the exponent that a zero product contributes; a zero addend has min_exponent
  int zero_product_exponent = 0;
  /// bits of the product sum kept below the larger of its and the addend's exponent
  int sum_kept_fraction_bits = 0;
  /// bits of the total kept below its leading bit before the final rounding
  int total_kept_fraction_bits = 0;
  /// an addend whose exponent is this much below E counts as zero. 0: never
  int addend_cutoff = 0;
  /// a product of this exponent or more is an infinity at once. 0: never
  int product_overflow_exponent = 0;

  friend constexpr bool operator==(const AccumulatorSpec&, const AccumulatorSpec&) = default;
};

}  // namespace guardbit::emulator
