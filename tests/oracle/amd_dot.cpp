#include "tests/oracle/amd_dot.hpp"

#include <algorithm>
#include <optional>
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

// ---- RDNA --------------------------------------------------------------------------------------

/// A product or c, with the place that it asks the sum to be cut at.
struct Place {
  Number number;
  int place = zero_product_exponent;
};

Number rdna_operand(const RdnaRule& rule, const FormatParameters& format, std::uint64_t code) {
  const Number number = decode(format, code);
  // RDNA3 takes subnormal BF16 and FP32 numbers as zeros of their sign, those of F16 as they are.
  return rule.rdna3 && format.exponent_bits == 8 ? flushed(format, number, true) : number;
}

/// What infinities and NaNs decide, if they do.
std::optional<std::uint64_t> rdna_special(const RdnaRule& rule, const std::vector<Number>& a,
                                          const std::vector<Number>& b, const Scalar& c) {
  const bool half = rule.result == fp16, brain = rule.result == bf16;
  const std::uint64_t factor = half ? 0xfe3d : brain ? 0xfffd : 0xffc00a3d;
  const std::uint64_t plain = half ? 0xfe00 : brain ? 0xffc0 : 0xffc00000;
  const std::uint64_t invalid = rule.group == 4 ? factor : plain;
  const std::uint64_t quiet = half ? 0x0200 : brain ? 0x0040 : 0x00400000;
  Number sum = zero();
  for (std::size_t i = 0; i < a.size(); ++i)
    if (a[i].is_nan() || b[i].is_nan()) return factor;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const Number product = exact_product(a[i], b[i]);
    if (!product.is_finite()) sum = exact_sum(sum, product);
  }
  if (sum.is_nan()) return invalid;
  const Number addend = decode(c.format, c.code);
  if (addend.is_nan()) return c.code | quiet;
  if (addend.is_infinity()) sum = exact_sum(sum, addend);
  if (sum.is_nan()) return invalid;
  if (sum.is_infinity()) return encode(rule.result, sum, nearest_even);
  return {};
}

/// A sum rounded to F16, to FP32, or to FP32 of which BF16 is the upper half.
std::uint64_t rdna_rounded(const RdnaRule& rule, const Number& sum) {
  if (rule.result == fp16) {
    const std::uint64_t code = encode(fp16, sum, nearest_even);
    return code == 0x8000 ? 0 : code;
  }
  // RDNA3 rounds as though no exponent were too small, then flushes.
  constexpr FormatParameters unbounded = floating(11, 23, 1023, FormatParameters::Specials::ieee);
  const Number rounded =
      rule.rdna3 ? flushed(fp32, decode(unbounded, encode(unbounded, sum, nearest_even)), false)
                 : sum;
  std::uint64_t code = encode(fp32, rounded, nearest_even);
  if (code == 0x80000000) code = 0;
  return rule.result == bf16 ? code >> 16 : code;
}

/// Integers of units 2^place.
Integer units_of(const Number& number, int place, bool floor) {
  const Number whole = floor ? floored(number, place) : truncated(number, place);
  return whole.negative ? Integer(-whole.magnitude.significand) : whole.magnitude.significand;
}

/// Opposite signs are subtracted by inverting the bits of the magnitude: -m - 1.
Integer rdna3_sum(const std::vector<Place>& products, const Number& c, int place) {
  Integer along_c = floor_at(c.magnitude, place).quotient;
  for (const Place& p : products) {
    const Integer m = floor_at(p.number.magnitude, place).quotient;
    along_c += p.number.negative == c.negative ? m : Integer(-m - 1);
  }
  return c.negative ? Integer(-along_c) : along_c;
}

Integer rdna4_sum(const RdnaRule& rule, const std::vector<Place>& products, const Number& c,
                  int place) {
  Integer total = 0;
  const auto size = static_cast<std::size_t>(rule.group);
  for (std::size_t begin = 0; begin < products.size(); begin += size) {
    const std::size_t end = std::min(begin + size, products.size());
    int own = zero_product_exponent;
    for (std::size_t i = begin; i < end; ++i) own = std::max(own, products[i].place);
    Integer sum = 0;
    for (std::size_t i = begin; i < end; ++i) sum += units_of(products[i].number, own, true);
    const Number group = {Number::Kind::finite, sum < 0, {abs(sum), own}};
    total += units_of(group, place, true);
  }
  // A negative c of which no bit is left would be a unit; it is nothing where the grid lies above
  // the smallest normal number of c's format.
  const Integer addend = units_of(c, place, true);
  const bool is_tail = addend == -1 && compare(c.magnitude, {1, place}) < 0;
  return is_tail && place > minimum_exponent(rule.result) ? total : Integer(total + addend);
}

std::uint64_t rdna_step(const RdnaRule& rule, const Vector& a, const Vector& b, std::size_t begin,
                        std::size_t end, const Scalar& c) {
  std::vector<Number> left, right;
  std::vector<Place> products;
  int place = zero_product_exponent;
  for (std::size_t i = begin; i < end; ++i) {
    left.push_back(rdna_operand(rule, a.format, a.codes[i]));
    right.push_back(rdna_operand(rule, b.format, b.codes[i]));
  }
  if (const auto special = rdna_special(rule, left, right, c)) return *special;
  for (std::size_t i = begin; i < end; ++i) {
    Place p = {exact_product(left[i - begin], right[i - begin])};
    if (!p.number.is_zero())
      p.place = stored_exponent(a.format, a.codes[i]) + stored_exponent(b.format, b.codes[i]) - 24;
    products.push_back(p);
    place = std::max(place, p.place);
  }
  const Number addend = rdna_operand(rule, c.format, c.code);
  const bool none = rule.rdna3 && rule.result != fp16 && addend.is_zero();
  if (!none) place = std::max(place, stored_exponent(c.format, c.code) - 26);
  const Integer sum =
      rule.rdna3 ? rdna3_sum(products, addend, place) : rdna4_sum(rule, products, addend, place);
  return rdna_rounded(rule, {Number::Kind::finite, sum < 0, {abs(sum), place}});
}

}  // namespace

std::uint64_t rdna_dot(const RdnaRule& rule, const Vector& a, const Vector& b, const Scalar& c) {
  require_whole_blocks(rule.block, a, b);
  Vector x = a, y = b;
  for (std::size_t i = 0; rule.swapped && i < 4; ++i) {
    for (Vector* const v : {&x, &y}) std::swap(v->codes.at(4 + i), v->codes.at(8 + i));
  }
  Scalar sum = c;
  const auto size = static_cast<std::size_t>(rule.block);
  for (std::size_t begin = 0; begin < x.codes.size(); begin += size)
    sum = {rule.result, rdna_step(rule, x, y, begin, begin + size, sum)};
  return sum.code;
}

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
