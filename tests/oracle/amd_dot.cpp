#include "tests/oracle/amd_dot.hpp"

#include <algorithm>
#include <stdexcept>

namespace guardbit::oracle {
namespace {

/// Below every exponent that occurs: what a zero product contributes (section 4.1).
constexpr int zero_product_exponent = -999;

struct AlignedSum {
  Number number;
  int exponent = zero_product_exponent;
};

Number product_of(const Vector& a, const Vector& b, std::size_t k) {
  return exact_product(decode(a.format, a.codes[k]), decode(b.format, b.codes[k]));
}

std::uint64_t to_fp32(const Number& number) {
  return encode(fp32, number.is_zero() ? zero() : number, nearest_even);
}

/// The largest multiple of 2^exponent that is not above the number (which must be finite).
Number floored(const Number& number, int exponent) {
  const Floor floor = floor_at(number.magnitude, exponent);
  const bool away = number.negative && !floor.exact;
  return {Number::Kind::finite, number.negative, {floor.quotient + (away ? 1 : 0), exponent}};
}

Number truncated(const Number& number, int exponent) {
  return {Number::Kind::finite,
          number.negative,
          {floor_at(number.magnitude, exponent).quotient, exponent}};
}

Number flushed(const FormatParameters& format, const Number& number, bool keeps_sign) {
  if (!number.is_finite() || number.is_zero()) return number;
  if (floor_log2(number.magnitude) >= minimum_exponent(format)) return number;
  return zero(keeps_sign && number.negative);
}

/// One flushing fp32 operation, given its exact result.
Number flushing_operation(const Number& exact) {
  return flushed(fp32, decode(fp32, encode(fp32, exact, nearest_even)), true);
}

/// The products k of a block with k % step == start, aligned to their own largest exponent; factors
/// are not normalised and a product of magnitude 2^128 or more is an infinity at once.
AlignedSum sum_products(const Cdna3Rule& rule, const Vector& a, const Vector& b, std::size_t begin,
                        std::size_t end, std::size_t step) {
  std::vector<Number> products;
  AlignedSum result;
  for (std::size_t k = begin; k < end; k += step) {
    Number term = product_of(a, b, k);
    if (term.is_finite() && !term.is_zero()) {
      if (floor_log2(term.magnitude) >= 128) term = infinity(term.negative);
      result.exponent = std::max(result.exponent, stored_exponent(a.format, a.codes[k]) +
                                                      stored_exponent(b.format, b.codes[k]));
    }
    products.push_back(term);
  }
  for (const Number& term : products)
    result.number =
        exact_sum(result.number,
                  term.is_finite() ? truncated(term, result.exponent - rule.product_bits) : term);
  return result;
}

/// Two sums at the larger of their exponents, each floored there.
AlignedSum combined(const Cdna3Rule& rule, const AlignedSum& even, const AlignedSum& odd) {
  const int exponent = std::max(even.exponent, odd.exponent);
  const int unit = exponent - rule.product_bits;
  const auto part = [&](const AlignedSum& sum) {
    return sum.number.is_finite() ? floored(sum.number, unit) : sum.number;
  };
  return {exact_sum(part(even), part(odd)), exponent};
}

/// Steps (3) to (5) of section 4.1.
std::uint64_t add_addend(const Cdna3Rule& rule, const AlignedSum& products, const Scalar& c) {
  const Number addend = decode(c.format, c.code);
  if (!products.number.is_finite() || !addend.is_finite())
    return to_fp32(exact_sum(products.number, addend));
  // A zero c has the exponent of a subnormal one, -126.
  const int addend_exponent = stored_exponent(c.format, c.code);
  const int exponent = std::max(products.exponent, addend_exponent);
  const Number sum = floored(products.number, exponent - rule.sum_bits);
  // The FP8 unit drops a c that lies entirely below the kept bits, where flooring a negative one
  // would subtract a whole unit.
  const bool drops_addend = rule.even_and_odd && addend_exponent < exponent - 25;
  const Number kept = drops_addend ? zero() : floored(addend, exponent - rule.addend_bits);
  const Number total = exact_sum(sum, kept);
  if (total.is_zero()) return to_fp32(total);
  return to_fp32(floored(total, floor_log2(total.magnitude) - rule.result_bits));
}

void require_whole_blocks(int block, const Vector& a, const Vector& b) {
  if (a.codes.size() != b.codes.size() || a.codes.size() % static_cast<std::size_t>(block) != 0)
    throw std::invalid_argument("oracle: not a whole number of blocks");
}

}  // namespace

std::uint64_t cdna1_exact(int block, const Vector& a, const Vector& b, const Scalar& c) {
  require_whole_blocks(block, a, b);
  std::uint64_t code = encode(fp32, decode(c.format, c.code), nearest_even);
  const auto size = static_cast<std::size_t>(block);
  for (std::size_t begin = 0; begin < a.codes.size(); begin += size) {
    Number sum = decode(fp32, code);
    for (std::size_t k = begin; k < begin + size; ++k) sum = exact_sum(sum, product_of(a, b, k));
    code = to_fp32(sum);
  }
  return code;
}

std::uint64_t cdna2_pairwise(int block, const Vector& a, const Vector& b, const Scalar& c) {
  require_whole_blocks(block, a, b);
  if (block != 2 && block != 4) throw std::invalid_argument("oracle: blocks of 2 or 4");
  const auto multiplied = [&](std::size_t k) {
    return flushing_operation(
        exact_product(flushed(a.format, decode(a.format, a.codes[k]), false),
                      flushed(b.format, decode(b.format, b.codes[k]), false)));
  };
  const auto pair = [&](std::size_t k) {
    return flushing_operation(exact_sum(multiplied(k), multiplied(k + 1)));
  };
  Number sum = flushed(c.format, decode(c.format, c.code), false);
  const auto size = static_cast<std::size_t>(block);
  for (std::size_t begin = 0; begin < a.codes.size(); begin += size) {
    const Number products =
        block == 2 ? pair(begin) : flushing_operation(exact_sum(pair(begin), pair(begin + 2)));
    sum = flushing_operation(exact_sum(sum, products));
  }
  return encode(fp32, sum, nearest_even);
}

std::uint64_t cdna3_truncated(const Cdna3Rule& rule, const Vector& a, const Vector& b,
                              const Scalar& c) {
  require_whole_blocks(rule.block, a, b);
  const auto size = static_cast<std::size_t>(rule.block);
  Scalar sum = c;
  for (std::size_t begin = 0; begin < a.codes.size(); begin += size) {
    const std::size_t end = begin + size;
    const AlignedSum products = rule.even_and_odd
                                    ? combined(rule, sum_products(rule, a, b, begin, end, 2),
                                               sum_products(rule, a, b, begin + 1, end, 2))
                                    : sum_products(rule, a, b, begin, end, 1);
    sum = {fp32, add_addend(rule, products, sum)};
  }
  return sum.code;
}

}  // namespace guardbit::oracle
