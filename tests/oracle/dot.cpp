#include "tests/oracle/dot.hpp"

#include <algorithm>
#include <optional>
#include <stdexcept>

namespace guardbit::oracle {
namespace {

/// A number that takes part in a block's sum, and the exponent by which it is aligned.
struct Term {
  Number number;
  int exponent = 0;
};

/// The exact value of an integer number of units 2^exponent.
Number from_units(const Integer& units, int exponent) {
  return {Number::Kind::finite, units.sign() < 0, {abs(units), exponent}};
}

/// What specials among the terms decide (section 1.4): any NaN, or infinities of both signs, give
/// NaN.
std::optional<Number> special_sum(const std::vector<Term>& terms) {
  std::optional<Number> found;
  for (const Term& term : terms) {
    if (term.number.is_nan()) return nan();
    if (!term.number.is_infinity()) continue;
    if (found && found->negative != term.number.negative) return nan();
    found = term.number;
  }
  return found;
}

/// The final conversion of a block.
std::uint64_t convert(const FusedRule& rule, const Number& sum) {
  if (sum.is_nan()) return rule.nan;
  FormatParameters target = rule.result;
  const int dropped = target.fraction_bits - rule.result_fraction_bits;
  target.fraction_bits -= dropped;
  target.bits -= dropped;
  // Infinity at 2^(emax+1) and beyond, although the rounding is toward zero (section 1.4).
  const int first_overflow = minimum_exponent(target) + (1 << target.exponent_bits) - 2;
  const bool too_large =
      sum.is_finite() && !is_zero(sum.magnitude) && floor_log2(sum.magnitude) >= first_overflow;
  const Number limited = too_large ? infinity(sum.negative) : sum;
  const std::uint64_t code = encode(target, limited, rule.rounding);
  // An exact zero is +0 always; a sum that underflowed is +0 on the H200 (section 0.1).
  if (decode(target, code).is_zero() && (sum.is_zero() || !rule.underflow_keeps_sign)) return 0;
  return code << dropped;
}

/// Steps 4 and 5 of section 1.1: align to the largest exponent, cut toward zero, sum exactly,
/// convert.
std::uint64_t sum_block(const FusedRule& rule, const std::vector<Term>& terms) {
  if (const auto special = special_sum(terms)) return convert(rule, *special);
  int largest = terms.front().exponent;
  for (const Term& term : terms) largest = std::max(largest, term.exponent);
  const int unit = largest - rule.kept_bits;
  Integer sum = 0;
  for (const Term& term : terms) {
    const Integer units = floor_at(term.number.magnitude, unit).quotient;
    if (term.number.negative)
      sum -= units;
    else
      sum += units;
  }
  return convert(rule, from_units(sum, unit));
}

Term addend_term(const FusedRule& rule, const Scalar& c) {
  const Number number = decode(c.format, c.code);
  return {number, number.is_zero() ? rule.zero_exponent : stored_exponent(c.format, c.code)};
}

/// Product number i, not normalised: the exponents of its factors add up, subnormals count at emin.
Term product_term(const FusedRule& rule, const Vector& a, const Vector& b, std::size_t i) {
  const Number number = exact_product(decode(a.format, a.codes[i]), decode(b.format, b.codes[i]));
  const int exponent =
      stored_exponent(a.format, a.codes[i]) + stored_exponent(b.format, b.codes[i]);
  return {number, number.is_zero() ? rule.zero_exponent : exponent};
}

void require_equal_length(const Vector& a, const Vector& b) {
  if (a.codes.size() != b.codes.size()) throw std::invalid_argument("oracle: lengths differ");
}

/// Ascending blocks of at most rule.block terms; the result of one is the addend of the next.
template <class MakeTerm>
std::uint64_t chain_blocks(const FusedRule& rule, std::size_t terms_in_total, std::size_t length,
                           Scalar c, MakeTerm make_term) {
  for (std::size_t begin = 0; begin < terms_in_total; begin += length) {
    std::vector<Term> terms;
    for (std::size_t i = begin; i < std::min(begin + length, terms_in_total); ++i)
      terms.push_back(make_term(i));
    terms.push_back(addend_term(rule, c));
    c = {rule.result, sum_block(rule, terms)};
  }
  return c.code;
}

/// A scale's number; ue4m3 codes arrive in bytes whose top bit is ignored.
Number scale_of(const Vector& scales, std::size_t element, int scale_block) {
  return decode(scales.format, scales.codes[element / static_cast<std::size_t>(scale_block)]);
}

int scale_exponent(const Vector& scales, std::size_t element, int scale_block) {
  const std::uint64_t code = scales.codes[element / static_cast<std::size_t>(scale_block)];
  return scales.format == e8m0 ? decode(e8m0, code).magnitude.exponent
                               : stored_exponent(scales.format, code);
}

}  // namespace

std::uint64_t nvidia_fused(const FusedRule& rule, const Vector& a, const Vector& b,
                           const Scalar& c) {
  require_equal_length(a, b);
  return chain_blocks(rule, a.codes.size(), static_cast<std::size_t>(rule.block), c,
                      [&](std::size_t i) { return product_term(rule, a, b, i); });
}

std::uint64_t nvidia_scaled(const FusedRule& rule, const Vector& a, const Vector& b,
                            const Vector& a_scales, const Vector& b_scales, int scale_block,
                            const Scalar& c) {
  require_equal_length(a, b);
  return chain_blocks(
      rule, a.codes.size(), static_cast<std::size_t>(rule.block), c, [&](std::size_t i) {
        Term term = product_term(rule, a, b, i);
        const Number a_scale = scale_of(a_scales, i, scale_block);
        const Number b_scale = scale_of(b_scales, i, scale_block);
        if (a_scale.is_nan() || b_scale.is_nan()) return Term{nan(), 0};
        if (term.number.is_zero()) return term;
        term.number = exact_product(term.number, exact_product(a_scale, b_scale));
        term.exponent +=
            scale_exponent(a_scales, i, scale_block) + scale_exponent(b_scales, i, scale_block);
        return term;
      });
}

std::uint64_t nvidia_grouped(const FusedRule& rule, int group, const Vector& a, const Vector& b,
                             const Vector& a_scales, const Vector& b_scales, int scale_block,
                             const Scalar& c) {
  require_equal_length(a, b);
  const auto size = static_cast<std::size_t>(group);
  return chain_blocks(rule, a.codes.size() / size, static_cast<std::size_t>(rule.block) / size, c,
                      [&](std::size_t index) {
                        const std::size_t first = index * size;
                        Number sum = zero();
                        bool all_zero = true;
                        for (std::size_t i = first; i < first + size; ++i) {
                          const Number term = product_term(rule, a, b, i).number;
                          all_zero = all_zero && term.is_zero();
                          sum = exact_sum(sum, term);
                        }
                        const Number a_scale = scale_of(a_scales, first, scale_block);
                        const Number b_scale = scale_of(b_scales, first, scale_block);
                        const Number scale = exact_product(a_scale, b_scale);
                        if (scale.is_nan()) return Term{nan(), 0};
                        if (all_zero || scale.is_zero()) return Term{zero(), rule.zero_exponent};
                        return Term{exact_product(sum, scale),
                                    scale_exponent(a_scales, first, scale_block) +
                                        scale_exponent(b_scales, first, scale_block)};
                      });
}

std::uint64_t fma_chain(const FormatParameters& result, const Vector& a, const Vector& b,
                        const Scalar& c, const Rounding& rounding, bool flush_inputs,
                        bool flush_outputs) {
  require_equal_length(a, b);
  const auto is_subnormal = [](const FormatParameters& format, std::uint64_t code) {
    const Number number = decode(format, code);
    return number.is_finite() && !number.is_zero() &&
           floor_log2(number.magnitude) < minimum_exponent(format);
  };
  const auto operand = [&](const FormatParameters& format, std::uint64_t code) {
    return flush_inputs && is_subnormal(format, code) ? zero() : decode(format, code);
  };
  // With no products at all, c is only converted.
  Number sum = operand(c.format, c.code);
  std::uint64_t code = encode(result, sum, rounding);
  for (std::size_t k = 0; k < a.codes.size(); ++k) {
    code = fma(result, operand(a.format, a.codes[k]), operand(b.format, b.codes[k]), sum, rounding);
    sum = decode(result, code);
    if (flush_outputs && is_subnormal(result, code)) {
      sum = zero(sum.negative);
      code = encode(result, sum, rounding);
    }
  }
  return code;
}

namespace {

Integer signed_integer(const FormatParameters& format, std::uint64_t code) {
  const Number number = decode(format, code);
  return number.negative ? Integer(-number.magnitude.significand) : number.magnitude.significand;
}

std::uint64_t wrap_to_32_bits(const Integer& total) {
  const Integer modulus = Integer(1) << 32;
  Integer wrapped = total % modulus;
  if (wrapped.sign() < 0) wrapped += modulus;
  return static_cast<std::uint64_t>(wrapped);
}

}  // namespace

std::uint64_t integer_dot(const Vector& a, const Vector& b, const Scalar& c, bool satfinite) {
  require_equal_length(a, b);
  Integer total = signed_integer(c.format, c.code);
  for (std::size_t k = 0; k < a.codes.size(); ++k)
    total += signed_integer(a.format, a.codes[k]) * signed_integer(b.format, b.codes[k]);
  if (satfinite) return encode(int32, from_units(total, 0), toward_zero);
  return wrap_to_32_bits(total);
}

std::uint64_t bit_dot(BitOperation operation, const Vector& a, const Vector& b, const Scalar& c) {
  require_equal_length(a, b);
  Integer total = signed_integer(c.format, c.code);
  for (std::size_t k = 0; k < a.codes.size(); ++k) {
    const bool one = (a.codes[k] & 1) != 0;
    const bool other = (b.codes[k] & 1) != 0;
    if (operation == BitOperation::xor_popc ? one != other : one && other) total += 1;
  }
  return wrap_to_32_bits(total);
}

}  // namespace guardbit::oracle
