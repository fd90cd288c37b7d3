#pragma once

// The summands of a fused block as the unit sees them: significands that are not normalised, and
// the exponents they are aligned by.

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "emulator/model/block.hpp"
#include "emulator/model/instruction.hpp"

namespace guardbit::emulator {

/// One summand of a fused block: (-1)^negative * significand * 2^(exponent - fraction_bits). The
/// exponent is the one the unit aligns by: a product's is the sum of its factors' exponents, its
/// significand is not normalised.
struct Term {
  bool negative = false;
  int exponent = 0;
  std::uint64_t significand = 0;
  int fraction_bits = 0;
};

/// The exponent of a code as the unit sees it, given its decoded value.
constexpr int aligned_exponent(const Value& v, const Format& f) {
  return v.exponent + f.fraction_bits;
}

constexpr Term addend_term(const Value& c, const Format& f, const AccumulatorSpec& spec) {
  if (c.kind == Kind::zero) return {c.negative, spec.min_exponent, 0, f.fraction_bits};
  return {c.negative, aligned_exponent(c, f), c.significand, f.fraction_bits};
}

constexpr Term product_term(const Value& a, const Format& fa, const Value& b, const Format& fb,
                            const AccumulatorSpec& spec) {
  const bool negative = a.negative != b.negative;
  const int fraction_bits = fa.fraction_bits + fb.fraction_bits;
  if (a.kind == Kind::zero || b.kind == Kind::zero)
    return {negative, spec.min_exponent, 0, fraction_bits};
  return {negative, aligned_exponent(a, fa) + aligned_exponent(b, fb),
          a.significand * b.significand, fraction_bits};
}

/// A group of scaled products, summed exactly before it is aligned: the significand takes the
/// products of the elements and of the scales' significands, the exponent is that of the scales
/// alone (NUMERICS 1.6).
constexpr Term group_term(const Block& block, std::size_t begin, std::size_t end) {
  const Format& fs = block.scale_format;
  const int grid = formats::min_exponent(block.a_format) - block.a_format.fraction_bits +
                   formats::min_exponent(block.b_format) - block.b_format.fraction_bits;
  std::int64_t sum = 0;
  bool all_zero = true;
  for (std::size_t i = begin; i < end; ++i) {
    const Unrounded product = formats::multiply(block.a[i], block.b[i]);
    if (product.kind == Kind::zero) continue;
    all_zero = false;
    const auto magnitude =
        static_cast<std::int64_t>(product.significand << (product.exponent - grid));
    sum += product.negative ? -magnitude : magnitude;
  }
  const Value& sa = block.a_scale[begin];
  const Value& sb = block.b_scale[begin];
  const int fraction_bits = 2 * fs.fraction_bits - grid;
  if (all_zero || sa.kind == Kind::zero || sb.kind == Kind::zero) {
    return {false, block.spec.min_exponent, 0, fraction_bits};
  }
  const auto magnitude = static_cast<std::uint64_t>(sum < 0 ? -sum : sum);
  return {sum < 0, aligned_exponent(sa, fs) + aligned_exponent(sb, fs),
          magnitude * sa.significand * sb.significand, fraction_bits};
}

/// Calls visit(term) for the summands of a fused block: products (or groups of them) first, the
/// addend last.
template <class Visit>
constexpr void for_each_term(const Block& block, Visit visit) {
  const AccumulatorSpec& spec = block.spec;
  const std::size_t count = block.a.size();
  const auto group = static_cast<std::size_t>(spec.exact_group);
  for (std::size_t i = 0; i < count; i += group) {
    if (group > 1) {
      visit(group_term(block, i, i + group < count ? i + group : count));
      continue;
    }
    Term t = product_term(block.a[i], block.a_format, block.b[i], block.b_format, spec);
    if (!block.a_scale.empty() && t.significand != 0) {  // E8M0: the significand is 1
      t.exponent += aligned_exponent(block.a_scale[i], block.scale_format) +
                    aligned_exponent(block.b_scale[i], block.scale_format);
    }
    visit(t);
  }
  visit(addend_term(block.addend, block.addend_format, spec));
}

/// E of a block, without a list.
constexpr int largest_exponent(const Block& block) {
  int largest = addend_term(block.addend, block.addend_format, block.spec).exponent;
  for_each_term(block,
                [&](const Term& t) { largest = t.exponent > largest ? t.exponent : largest; });
  return largest;
}

/// A list of summands.
struct Terms {
  std::array<Term, max_k + 1> list{};
  std::size_t count = 0;

  constexpr void push(const Term& t) { list[count++] = t; }
  constexpr std::span<const Term> view() const { return {list.data(), count}; }
};

constexpr Terms block_terms(const Block& block) {
  Terms terms;
  for_each_term(block, [&](const Term& t) { terms.push(t); });
  return terms;
}

constexpr int largest_exponent(std::span<const Term> terms) {
  int largest = terms.front().exponent;
  for (const Term& t : terms) largest = t.exponent > largest ? t.exponent : largest;
  return largest;
}

/// A term as a signed multiple of 2^grid, cut to it.
constexpr std::int64_t align(const Term& t, int grid, Rounding rounding) {
  const auto magnitude = static_cast<std::int64_t>(
      formats::shift_right_and_round(t.significand, grid - (t.exponent - t.fraction_bits), false,
                                     t.negative, rounding)
          .significand);
  return t.negative ? -magnitude : magnitude;
}

}  // namespace guardbit::emulator
