#pragma once

// The summations of other machines and other types: exact, pairwise, two-stage and on two grids
// (AMD), chains of fused multiply-adds, integers. NVIDIA's fused block is in dot.hpp.

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "emulator/model/block.hpp"
#include "emulator/model/terms.hpp"
#include "emulator/model/wide.hpp"

namespace guardbit::emulator {

/// CDNA1: nothing is lost before the one rounding. Products of BF16 reach from 2^-266 to 2^256.
constexpr std::uint64_t exact_block(const Block& block) {
  if (const SpecialSum specials = special_sum(block); specials.any()) {
    return encode_result(block.spec, block.result_format, specials.value());
  }
  WideSum<640, -320> sum;
  for (std::size_t i = 0; i < block.a.size(); ++i) {
    const Unrounded product = formats::multiply(block.a[i], block.b[i]);
    if (product.kind == Kind::finite)
      sum.add(product.negative, product.significand, product.exponent);
  }
  if (block.addend.kind == Kind::finite) {
    sum.add(block.addend.negative, block.addend.significand, block.addend.exponent);
  }
  return encode_result(block.spec, block.result_format, sum.total());
}

/// x + y of encoded intermediate results, rounded once.
constexpr std::uint64_t rounded_sum(const AccumulatorSpec& spec, const Format& f, std::uint64_t x,
                                    std::uint64_t y) {
  const bool down = spec.result == Rounding::downward;
  return encode_result(spec, f,
                       formats::add(formats::exactly(formats::decode(f, x)),
                                    formats::exactly(formats::decode(f, y)), down));
}

/// CDNA2: products rounded, added as a balanced tree, the addend last; every result is rounded (and
/// flushed).
constexpr std::uint64_t pairwise_block(const Block& block) {
  const AccumulatorSpec& spec = block.spec;
  const Format& f = block.result_format;
  std::array<std::uint64_t, max_k> sums;  // those of this block are set, the others not read
  std::size_t count = block.a.size();
  for (std::size_t i = 0; i < count; ++i) {
    sums[i] = encode_result(spec, f, formats::multiply(block.a[i], block.b[i]));
  }
  while (count > 1) {
    for (std::size_t i = 0; i < count / 2; ++i)
      sums[i] = rounded_sum(spec, f, sums[2 * i], sums[2 * i + 1]);
    if (count % 2 != 0) sums[count / 2] = sums[count - 1];
    count = (count + 1) / 2;
  }
  const std::uint64_t addend = formats::encode(f, block.addend);
  return rounded_sum(spec, f, addend, sums[0]);
}

/// Multiples of 2^grid cut toward minus infinity to multiples of 2^coarser.
constexpr std::int64_t floor_to(std::int64_t x, int grid, int coarser) {
  const int shift = coarser - grid;
  if (shift <= 0) return x << -shift;
  return shift >= 63 ? (x < 0 ? -1 : 0) : x >> shift;
}

/// A set of products that a two-stage block fuses: first, first + step, ..., before end.
struct ProductSet {
  std::size_t first = 0, end = 0, step = 1;
};

constexpr std::size_t count_of_sets(Interleave interleave, std::size_t products) {
  if (interleave == Interleave::pairs) return (products + 1) / 2;
  return interleave == Interleave::even_odd && products > 1 ? 2 : 1;
}

constexpr ProductSet product_set(Interleave interleave, std::size_t products, std::size_t set) {
  if (interleave == Interleave::even_odd) return {set, products, 2};
  if (interleave == Interleave::none) return {0, products, 1};
  return {2 * set, 2 * set + 2 < products ? 2 * set + 2 : products, 1};
}

/// CDNA3 and RDNA4: the products are fused among themselves (in one set, in two or in pairs), then
/// their sum and the addend are floored below the larger exponent, added, floored again and rounded
/// (NUMERICS 4.1, 4.2).
constexpr std::uint64_t two_stage_block(const Block& block) {
  const AccumulatorSpec& spec = block.spec;
  const std::size_t count = block.a.size();
  SpecialSum specials = special_sum(block);
  const auto term = [&](std::size_t i) {
    Term t = product_term(block.a[i], block.a_format, block.b[i], block.b_format, spec);
    if (t.significand == 0) t.exponent = spec.zero_product_exponent;
    return t;
  };
  int products = spec.zero_product_exponent;
  for (std::size_t i = 0; i < count; ++i) {
    const Term t = term(i);
    products = i == 0 || t.exponent > products ? t.exponent : products;
    const int top = formats::leading_bit(t.significand) + t.exponent - t.fraction_bits;
    if (spec.product_overflow_exponent != 0 && t.significand != 0 &&
        top >= spec.product_overflow_exponent) {
      specials.include(formats::exactly(formats::infinity_value(t.negative)));
    }
  }
  if (specials.any())
    return encode_result(spec, block.result_format, special_value(block, specials));

  const int kept = spec.kept_fraction_bits;
  const Term addend = addend_term(block.addend, block.addend_format, spec);
  const int largest = products > addend.exponent ? products : addend.exponent;
  const int grid = largest - spec.sum_kept_fraction_bits;
  // Sums of pairs are floored where the total will be, before they are joined.
  const int joined =
      spec.interleave == Interleave::pairs && grid > products - kept ? grid : products - kept;
  std::int64_t sum = 0;
  for (std::size_t i = 0; i < count_of_sets(spec.interleave, count); ++i) {
    const ProductSet set = product_set(spec.interleave, count, i);
    int set_largest = term(set.first).exponent;
    for (std::size_t k = set.first + set.step; k < set.end; k += set.step) {
      const int exponent = term(k).exponent;
      set_largest = exponent > set_largest ? exponent : set_largest;
    }
    std::int64_t own = 0;
    for (std::size_t k = set.first; k < set.end; k += set.step)
      own += align(term(k), set_largest - kept, spec.alignment);
    sum += floor_to(own, set_largest - kept, joined);
  }

  const bool addend_lost =
      spec.addend_cutoff != 0 && addend.exponent < largest - spec.addend_cutoff;
  const std::int64_t c = addend_lost ? 0 : align(addend, largest - kept, Rounding::downward);
  const std::int64_t total = floor_to(sum, joined, grid) + floor_to(c, largest - kept, grid);

  const Unrounded exact = fixed_point(total, grid);
  const int excess = formats::leading_bit(exact.significand) - spec.total_kept_fraction_bits;
  if (excess <= 0 || spec.total_kept_fraction_bits == 0)
    return encode_result(spec, block.result_format, exact);
  return encode_result(spec, block.result_format,
                       fixed_point(floor_to(total, grid, grid + excess), grid + excess));
}

/// A product of a block on two grids; a zero one asks for no grid.
constexpr Term lone_product(const Block& block, std::size_t i) {
  Term t = product_term(block.a[i], block.a_format, block.b[i], block.b_format, block.spec);
  if (t.significand == 0) t.exponent = block.spec.zero_product_exponent;
  return t;
}

/// The grids of a block on two grids: the largest exponent of its products, and the last place of
/// the coarser grid.
struct TwoGrids {
  int largest = 0;
  int last_place = 0;
};

constexpr TwoGrids two_grids_of(const Block& block) {
  const AccumulatorSpec& spec = block.spec;
  int largest = spec.zero_product_exponent;
  for (std::size_t i = 0; i < block.a.size(); ++i) {
    const int exponent = lone_product(block, i).exponent;
    largest = exponent > largest ? exponent : largest;
  }
  const Term addend = addend_term(block.addend, block.addend_format, spec);
  const int of_products = largest - spec.kept_fraction_bits;
  const int of_addend = addend.exponent - spec.addend_kept_fraction_bits;
  return {largest, of_products > of_addend ? of_products : of_addend};
}

/// What a term adds, in units of the grid.
constexpr std::int64_t units_on_grid(const Block& block, const Term& t, int last_place) {
  const std::int64_t units = align(t, last_place, block.spec.alignment);
  const bool inverted =
      block.spec.subtraction == Subtraction::ones_complement && t.negative != block.addend.negative;
  if (!inverted) return units;
  return t.negative ? units - 1 : units + 1;
}

/// RDNA3: the grid is the coarser of the products' and the addend's; a term whose sign is not the
/// addend's is subtracted by inverting its bits (NUMERICS 4.2).
constexpr std::uint64_t two_grids_block(const Block& block) {
  if (const SpecialSum specials = special_sum(block); specials.any())
    return encode_result(block.spec, block.result_format, special_value(block, specials));
  const int last_place = two_grids_of(block).last_place;
  const Term addend = addend_term(block.addend, block.addend_format, block.spec);
  std::int64_t sum = units_on_grid(block, addend, last_place);
  for (std::size_t i = 0; i < block.a.size(); ++i)
    sum += units_on_grid(block, lone_product(block, i), last_place);
  return encode_result(block.spec, block.result_format, fixed_point(sum, last_place));
}

/// The NaN of one fused multiply-add.
constexpr Unrounded fma_nan(NanPolicy policy, const Unrounded& nan, const Value& a, const Value& b,
                            const Value& c) {
  switch (policy) {
    case NanPolicy::operand_bca: return operand_nan({&b, &c, &a});
    case NanPolicy::operand_abc: return operand_nan({&a, &b, &c});
    case NanPolicy::all_ones:
    case NanPolicy::products_addend:
    case NanPolicy::products_alike:
    case NanPolicy::unspecified: break;
  }
  return nan;
}

/// One fused multiply-add per product, each rounded into the result format.
constexpr std::uint64_t fma_chain(const Block& block) {
  const bool down = block.spec.result == Rounding::downward;
  Value sum = block.addend;
  std::uint64_t code = formats::encode(block.result_format, sum);
  for (std::size_t i = 0; i < block.a.size(); ++i) {
    Unrounded next = formats::fused_multiply_add(block.a[i], block.b[i], sum, down);
    if (next.kind == Kind::nan) next = fma_nan(block.spec.nan, next, block.a[i], block.b[i], sum);
    code = encode_result(block.spec, block.result_format, next);
    sum = formats::decode(block.result_format, code);
  }
  return code;
}

constexpr std::int64_t signed_integer(const Value& v) {
  return v.negative ? -static_cast<std::int64_t>(v.significand)
                    : static_cast<std::int64_t>(v.significand);
}

constexpr std::int64_t integer_product(Product product, const Value& a, const Value& b) {
  switch (product) {
    case Product::multiply: return signed_integer(a) * signed_integer(b);
    case Product::bit_and: return signed_integer(a) & signed_integer(b);
    case Product::bit_xor: return signed_integer(a) ^ signed_integer(b);
  }
  return 0;
}

/// The exact total with the addend, wrapped or saturated once.
constexpr std::uint64_t integer_dot(const AccumulatorSpec& spec, std::span<const Value> a,
                                    std::span<const Value> b, const Value& addend,
                                    const Format& result) {
  std::int64_t total = signed_integer(addend);
  for (std::size_t i = 0; i < a.size(); ++i) total += integer_product(spec.product, a[i], b[i]);
  formats::Overflow overflow = formats::overflow_saturate;
  if (spec.integer_overflow == IntegerOverflow::wrap)
    overflow.finite = formats::Overflow::Finite::wrap;
  return formats::encode(result, fixed_point(total, 0), Rounding::toward_zero, overflow);
}

}  // namespace guardbit::emulator
