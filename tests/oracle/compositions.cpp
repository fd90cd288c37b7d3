#include <array>

#include "tests/oracle/dot.hpp"

namespace guardbit::oracle {
namespace {

/// NaN results of the scalar CUDA-core operations (NUMERICS.md section 9).
std::uint64_t with_canonical_nan(const FormatParameters& format, std::uint64_t code) {
  if (!is_nan(format, code)) return code;
  return format == fp16 ? 0x7fff : 0x7fffffff;
}

Vector widened_to_fp16(const Vector& vector, std::size_t first_of_four) {
  Vector half{fp16, {}};
  for (std::size_t k = 0; k < vector.codes.size(); ++k)
    if (k % 4 == first_of_four || k % 4 == first_of_four + 1)
      half.codes.push_back(encode(fp16, decode(vector.format, vector.codes[k]), toward_zero));
  return half;
}

Number converted(const FormatParameters& format, const Number& number) {
  return decode(format, encode(format, number, nearest_even));
}

}  // namespace

std::uint64_t fp8_by_halves(const FusedRule& half, Composition composition, const Vector& a,
                            const Vector& b, const Scalar& c) {
  const FormatParameters& result = half.result;
  const std::array<Vector, 2> a_halves = {widened_to_fp16(a, 0), widened_to_fp16(a, 2)};
  const std::array<Vector, 2> b_halves = {widened_to_fp16(b, 0), widened_to_fp16(b, 2)};
  const std::uint64_t first = nvidia_fused(half, a_halves[0], b_halves[0], {result, 0});
  Number products;
  if (composition == Composition::chained) {
    products = decode(result, nvidia_fused(half, a_halves[1], b_halves[1], {result, first}));
  } else {
    const std::uint64_t second = nvidia_fused(half, a_halves[1], b_halves[1], {result, 0});
    products = converted(result, exact_sum(decode(result, first), decode(result, second)));
  }
  return with_canonical_nan(result, add(result, decode(c.format, c.code), products, nearest_even));
}

std::uint64_t m8n8k4_to_fp32(const Vector& a, const Vector& b, const Scalar& c) {
  const std::uint64_t dot = fma_chain(fp32, a, b, {fp32, 0});
  return with_canonical_nan(fp32,
                            add(fp32, decode(c.format, c.code), decode(fp32, dot), nearest_even));
}

std::uint64_t m8n8k4_to_fp16(const Vector& a, const Vector& b, const Scalar& c) {
  const auto product_pair = [&](std::size_t k) {
    const Number first = exact_product(decode(a.format, a.codes[k]), decode(b.format, b.codes[k]));
    const Number second =
        exact_product(decode(a.format, a.codes[k + 1]), decode(b.format, b.codes[k + 1]));
    return converted(fp32, exact_sum(second, converted(fp32, first)));
  };
  const Number low = converted(fp32, exact_sum(decode(c.format, c.code), product_pair(0)));
  const Number sum = converted(fp32, exact_sum(low, product_pair(2)));
  return with_canonical_nan(fp16, encode(fp16, sum, nearest_even));
}

}  // namespace guardbit::oracle
