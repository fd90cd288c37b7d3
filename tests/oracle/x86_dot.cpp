#include "tests/oracle/x86_dot.hpp"

#include <initializer_list>
#include <optional>

namespace guardbit::oracle {
namespace {

constexpr X86Mode daz_and_ftz = {true, true};

std::uint64_t fraction_of(const Scalar& x) {
  return x.code & ((std::uint64_t{1} << x.format.fraction_bits) - 1);
}

/// A NaN operand in the result's format: sign and leading fraction bits kept, the quiet bit set.
std::uint64_t quieted(const FormatParameters& result, const Scalar& x) {
  const std::uint64_t sign = x.code >> (x.format.bits - 1) & 1;
  const std::uint64_t fraction = fraction_of(x) << (result.fraction_bits - x.format.fraction_bits);
  const std::uint64_t quiet = std::uint64_t{1} << (result.fraction_bits - 1);
  const std::uint64_t exponent = ((std::uint64_t{1} << result.exponent_bits) - 1)
                                 << result.fraction_bits;
  return sign << (result.bits - 1) | exponent | fraction | quiet;
}

/// The first NaN among the operands decides (Intel SDM, tables of NaN results).
std::optional<std::uint64_t> nan_of(const FormatParameters& result,
                                    std::initializer_list<Scalar> order) {
  for (const Scalar& x : order) {
    if (is_nan(x.format, x.code)) return quieted(result, x);
  }
  return {};
}

Number operand(const X86Mode& mode, const Scalar& x) {
  const Number number = decode(x.format, x.code);
  const bool subnormal = number.is_finite() && !number.is_zero() &&
                         floor_log2(number.magnitude) < minimum_exponent(x.format);
  return mode.daz && subnormal ? zero(number.negative) : number;
}

/// Rounded to nearest even; an invalid operation gives the default NaN, which is negative.
std::uint64_t rounded(const FormatParameters& result, const X86Mode& mode, const Number& exact) {
  const std::uint64_t sign = std::uint64_t{1} << (result.bits - 1);
  if (exact.is_nan()) return sign | nan_code(result);
  if (mode.ftz && exact.is_finite() && !exact.is_zero()) {
    // The same precision with more exponents than any exact result needs.
    const FormatParameters unbounded =
        floating(15, result.fraction_bits, 16383, FormatParameters::Specials::ieee);
    const Number normal = decode(unbounded, encode(unbounded, exact, nearest_even));
    if (floor_log2(normal.magnitude) < minimum_exponent(result)) return exact.negative ? sign : 0;
  }
  return encode(result, exact, nearest_even);
}

Scalar fused(const FormatParameters& result, const X86Mode& mode, const Scalar& a, const Scalar& b,
             const Scalar& c) {
  if (const auto nan = nan_of(result, {a, b, c})) return {result, *nan};
  const Number product = exact_product(operand(mode, a), operand(mode, b));
  return {result, rounded(result, mode, exact_sum(product, operand(mode, c)))};
}

Scalar sum(const FormatParameters& result, const X86Mode& mode, const Scalar& x, const Scalar& y) {
  if (const auto nan = nan_of(result, {x, y})) return {result, *nan};
  return {result, rounded(result, mode, exact_sum(operand(mode, x), operand(mode, y)))};
}

/// The products of k = first, first + 2, ... added to `start`.
Scalar every_other(const X86Mode& mode, const Vector& a, const Vector& b, std::size_t first,
                   Scalar start) {
  for (std::size_t k = first; k < a.codes.size(); k += 2)
    start = fused(fp32, mode, {a.format, a.codes[k]}, {b.format, b.codes[k]}, start);
  return start;
}

}  // namespace

std::uint64_t x86_fma_chain(const FormatParameters& result, const X86Mode& mode, const Vector& a,
                            const Vector& b, const Scalar& c) {
  Scalar total = c;
  for (std::size_t k = 0; k < a.codes.size(); ++k)
    total = fused(result, mode, {a.format, a.codes[k]}, {b.format, b.codes[k]}, total);
  return total.code;
}

std::uint64_t x86_bf16_lane(const Vector& a, const Vector& b, const Scalar& c) {
  return every_other(daz_and_ftz, a, b, 0, every_other(daz_and_ftz, a, b, 1, c)).code;
}

std::uint64_t x86_tile(const X86Mode& chain, const Vector& a, const Vector& b, const Scalar& c) {
  const Scalar even = every_other(chain, a, b, 0, {fp32, 0});
  const Scalar odd = every_other(chain, a, b, 1, {fp32, 0});
  return sum(fp32, daz_and_ftz, c, sum(fp32, daz_and_ftz, even, odd)).code;
}

}  // namespace guardbit::oracle
