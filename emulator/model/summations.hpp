#pragma once

// The summations of other machines and other types: exact, pairwise and two-stage (AMD), chains of
// fused multiply-adds, integers. NVIDIA's fused block is in dot.hpp.

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

/// CDNA3: the products are fused among themselves with magnitude truncation (in one set, or even
/// and odd k apart), then that sum and the addend are floored below the larger exponent, added,
/// floored again and rounded (NUMERICS 4.1).
constexpr std::uint64_t two_stage_block(const Block& block) {
  const AccumulatorSpec& spec = block.spec;
  SpecialSum specials = special_sum(block);
  const std::size_t sets = spec.interleave == Interleave::even_odd && block.a.size() > 1 ? 2 : 1;
  const auto term = [&](std::size_t i) {
    Term t = product_term(block.a[i], block.a_format, block.b[i], block.b_format, spec);
    if (t.significand == 0) t.exponent = spec.zero_product_exponent;
    return t;
  };
  std::array<int, 2> largest_of{};
  for (std::size_t i = 0; i < block.a.size(); ++i) {
    const Term t = term(i);
    int& set_largest = largest_of[i % sets];
    set_largest = i < sets || t.exponent > set_largest ? t.exponent : set_largest;
    const int top = formats::leading_bit(t.significand) + t.exponent - t.fraction_bits;
    if (spec.product_overflow_exponent != 0 && t.significand != 0 &&
        top >= spec.product_overflow_exponent) {
      specials.include(formats::exactly(formats::infinity_value(t.negative)));
    }
  }
  if (specials.any()) return encode_result(spec, block.result_format, specials.value());

  const int kept = spec.kept_fraction_bits;
  const int products = sets == 2 && largest_of[1] > largest_of[0] ? largest_of[1] : largest_of[0];
  std::int64_t sum = 0;
  for (std::size_t set = 0; set < sets; ++set) {
    const int grid_of_set = largest_of[set] - kept;
    std::int64_t own = 0;
    for (std::size_t i = set; i < block.a.size(); i += sets)
      own += align(term(i), grid_of_set, spec.alignment);
    sum += floor_to(own, grid_of_set, products - kept);
  }

  const Term addend = addend_term(block.addend, block.addend_format, spec);
  const int largest = products > addend.exponent ? products : addend.exponent;
  const int grid = largest - spec.sum_kept_fraction_bits;
  const bool addend_lost =
      spec.addend_cutoff != 0 && addend.exponent < largest - spec.addend_cutoff;
  const std::int64_t c = addend_lost ? 0 : align(addend, largest - kept, Rounding::downward);
  const std::int64_t total =
      floor_to(sum, products - kept, grid) + floor_to(c, largest - kept, grid);

  const Unrounded exact = fixed_point(total, grid);
  const int excess = formats::leading_bit(exact.significand) - spec.total_kept_fraction_bits;
  if (excess <= 0) return encode_result(spec, block.result_format, exact);
  return encode_result(spec, block.result_format,
                       fixed_point(floor_to(total, grid, grid + excess), grid + excess));
}

/// The NaN of one fused multiply-add.
constexpr Unrounded fma_nan(NanPolicy policy, const Unrounded& nan, const Value& a, const Value& b,
                            const Value& c) {
  switch (policy) {
    case NanPolicy::operand_bca: return operand_nan({&b, &c, &a});
    case NanPolicy::operand_abc: return operand_nan({&a, &b, &c});
    case NanPolicy::all_ones:
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
