#pragma once

#include <array>
#include <cstddef>

#include "emulator/functions/cuda/cuda_logarithms.hpp"
#include "emulator/functions/cuda/cuda_parts.hpp"
#include "emulator/functions/cuda/polynomial.hpp"
#include "emulator/functions/numbers/masks.hpp"
#include "emulator/functions/unit/special_function_forms.hpp"

// CUDA's powers and roots.
namespace guardbit::emulator::cuda_math {

template <class Number>
constexpr Number rsqrtf(Number x) {
  return mufu::rsqrt_approx(x);
}
template <class Number>
constexpr Number sqrtf(Number x) {
  return square_root(x);
}

/// |x| (|x|^(-2/3)) with one Newton step.
template <class Number>
constexpr Number cbrtf(Number x) {
  const Number a = abs(x);
  const Number y = mufu::ex2_approx_ftz(mufu::lg2_approx(a) * -0x1.555556p-1F);
  const Number t = a * y;
  const Number e = fma(t, -(y * t), 1);
  const Number r = fma(t, e * 0x1.555556p-2F, t);
  return select(x + x == x, x + x, copysign(r, x));
}

/// |x|^(-1/3) with one Newton step.
template <class Number>
constexpr Number rcbrtf(Number x) {
  const Number a = abs(x);
  const Number y = mufu::ex2_approx_ftz(mufu::lg2_approx(a) * -0x1.555556p-2F);
  const Number r = fma(fma(y * y, -(a * y), 1), y * 0x1.555556p-2F, y);
  // of 0 and infinity the other one
  const Number twice = x + x;
  return select(twice == x, Number::of(bits(twice) ^ mufu::infinity_code), select(x < 0, -r, r));
}

/// A sum of two numbers.
template <class Number>
struct Pair {
  Number high, low;
};

/// log2(|x|) of a nonzero number. `is_finer`: with the product of the two small terms.
template <class Number>
constexpr Pair<Number> log2_of(Number magnitude, bool is_finer) {
  const Normal<Number> y = made_normal(magnitude, 0x1p24F, -24);
  const Binade<Number> b = binade_of(y.number, 0x3f3504f3, y.exponent);
  // 2 f / (2 + f), and what its rounding left
  const Number f = b.rest, i = mufu::rcp_approx_ftz((f + 1) + 1);
  const Number t = (f + f) * i, z = t * t;
  const Number g = f - t;
  const Number t_low = i * fma(-t, f, g + g);
  const Number p =
      polynomial(z, {0x1.5865c8p-11F, 0x1.a5cfb6p-9F, 0x1.2776e6p-6F, 0x1.ec709ep-4F}) * z;
  const Number h = fma(t, 0x1.715476p+0F, b.exponent);
  Number l = fma(t, 0x1.715476p+0F, b.exponent - h);
  l = fma(t_low, 0x1.715476p+0F, l);
  l = fma(t, 0x1.4abc68p-26F, l);
  if (is_finer) l = fma(p * 3, t_low, l);
  l = fma(p, t, l);
  const Number high = h + l;
  return {high, l - (high - h)};
}

/// A pair times a number, up to the rounding of the lower part.
template <class Number>
constexpr Pair<Number> product(const Pair<Number>& x, Number y) {
  const Number high = x.high * y;
  return {high, fma(x.low, y, fma(x.high, y, -high))};
}

/// 2^(high + low), if that is finite.
template <class Number>
constexpr Number exp2_of(const Pair<Number>& x) {
  const Number n = rint(x.high);
  const Number r = x.low + (x.high - n);
  const Number p = polynomial(r, {0x1.3f971cp-13F, 0x1.5f0bdap-10F, 0x1.3b30acp-7F, 0x1.c6af76p-5F,
                                  0x1.ebfbd8p-3F, 0x1.62e43p-1F, 1.0F});
  // 2^n in two factors, each of which is normal
  const auto offset = bits(select(n > 0, 0, Number::of(0x83000000)));
  return (p * Number::of(offset + 0x7f000000)) * Number::of((integer(n) << 23) - offset);
}

/// 2^(log2(|x|) y), before special arguments.
template <class Number>
constexpr Number power_of_magnitude(Number magnitude, Number y) {
  const Pair<Number> w = product(log2_of(magnitude, true), y);
  return select(abs(w.high) > 152, select(w.high < 0, 0, Number::of(mufu::infinity_code)),
                exp2_of(w));
}

template <class Number>
constexpr Number powf(Number x, Number y) {
  const Number a = abs(x), infinity = Number::of(mufu::infinity_code);
  const Number v = power_of_magnitude(a, y);
  // 1 of odd integers, 0 of even ones, else between
  const Number odd = abs(y - 2 * trunc(y * 0.5F));
  const auto is_odd = odd == 1;
  const auto is_negative = bits(x) >= mufu::sign_bit;
  Number result = select(both(is_negative, is_odd), -v, v);
  result = select(both(x < 0, !(trunc(y) == y)), Number::of(mufu::nan_code), result);
  result = select(both(x == -1, abs(y) == infinity), 1, result);
  // of 0 and infinity
  const auto extreme = bits(x + x), turned = extreme ^ mufu::infinity_code;
  const Number power = select(y < 0, Number::of(turned), Number::of(extreme));
  result = select(either(x == 0, a == infinity), select(is_odd, power, abs(power)), result);
  const Number sum = x + y;
  result = select(either(!(x == x), !(y == y)), sum, result);
  return select(either(x == 1, y == 0), 1, result);
}

/// |x| and |y| in the order of their codes, the sum of their squares, scaled, and the scale.
template <class Number>
struct SquareSum {
  Number large, small, sum, scale;
  typename Number::Word scale_exponent;
};
template <class Number>
constexpr SquareSum<Number> square_sum(Number x, Number y) {
  const auto a = bits(abs(x)), b = bits(abs(y));
  const auto is_first = a > b;
  const Number large = select(is_first, Number::of(a), Number::of(b));
  const Number small = select(is_first, Number::of(b), Number::of(a));
  const auto k = bits(large) & 0xfe000000;
  const Number scale = Number::of(0x7e800000 - k);
  const Number u = large * scale, v = small * scale;
  return {large, small, fma(u, u, v * v), scale, k};
}

template <class Number>
constexpr Number hypotf(Number x, Number y) {
  const SquareSum<Number> s = square_sum(x, y);
  const Number result = square_root(s.sum) * Number::of(s.scale_exponent | 0x00800000);
  const Number infinity = Number::of(mufu::infinity_code);
  return select(s.small == infinity, s.small, select(s.small == 0, s.large, result));
}
template <class Number>
constexpr Number rhypotf(Number x, Number y) {
  const SquareSum<Number> s = square_sum(x, y);
  return select(s.small == Number::of(mufu::infinity_code), 0, mufu::rsqrt_approx(s.sum) * s.scale);
}

/// The absolute values of three or four numbers: the largest, the others, and a factor that makes
/// the largest one's square normal. NaNs are in `sum` alone.
template <class Number, std::size_t n>
struct Magnitudes {
  Number large, sum;
  std::array<Number, n> others;
  typename Number::Word scale_exponent;

  constexpr Number scale() const { return Number::of(0x7e800000 - scale_exponent); }
  /// of the scaled squares
  constexpr Number square_sum() const {
    const Number factor = scale();
    Number squares = others[0] * factor;
    squares = squares * squares;
    for (std::size_t i = 1; i < n; ++i)
      squares = fma(others[i] * factor, others[i] * factor, squares);
    return fma(large * factor, large * factor, squares);
  }
};
template <class Number>
constexpr Magnitudes<Number, 2> magnitudes(Number x, Number y, Number z) {
  const Number a = abs(x), b = abs(y), c = abs(z);
  const Number larger = fmaxf(a, b), large = fmaxf(larger, c);
  return {large, (a + b) + c, {fminf(larger, c), fminf(a, b)}, bits(large) & 0xfe000000};
}
template <class Number>
constexpr Magnitudes<Number, 3> magnitudes(Number x, Number y, Number z, Number w) {
  const Number a = abs(x), b = abs(y), c = abs(z), d = abs(w);
  const Number of_two = fmaxf(a, b), of_three = fmaxf(of_two, c), large = fmaxf(of_three, d);
  return {large,
          c + ((a + b) + d),
          {fminf(of_three, d), fminf(of_two, c), fminf(a, b)},
          bits(large) & 0xfe000000};
}

/// The sum itself where it adds nothing to the largest one.
template <class Number, std::size_t n>
constexpr Number norm_of(const Magnitudes<Number, n>& m) {
  const Number root = square_root(m.square_sum()) * Number::of(m.scale_exponent | 0x00800000);
  const Number infinity = Number::of(mufu::infinity_code);
  return select(m.large == infinity, infinity, select(m.sum > m.large, root, m.sum));
}
template <class Number, std::size_t n>
constexpr Number reciprocal_norm_of(const Magnitudes<Number, n>& m) {
  const Number result = mufu::rsqrt_approx(m.square_sum()) * m.scale();
  return select(m.large == Number::of(mufu::infinity_code), 0,
                select(m.sum == m.sum, result, m.sum));
}
template <class Number>
constexpr Number norm3df(Number x, Number y, Number z) {
  return norm_of(magnitudes(x, y, z));
}
template <class Number>
constexpr Number rnorm3df(Number x, Number y, Number z) {
  return reciprocal_norm_of(magnitudes(x, y, z));
}
template <class Number>
constexpr Number norm4df(Number x, Number y, Number z, Number w) {
  return norm_of(magnitudes(x, y, z, w));
}
template <class Number>
constexpr Number rnorm4df(Number x, Number y, Number z, Number w) {
  return reciprocal_norm_of(magnitudes(x, y, z, w));
}

/// The reciprocal root rounded correctly: one step of Halley's method, with the square in two
/// parts.
template <class Number>
constexpr Number rounded_rsqrtf(Number x) {
  const auto is_subnormal = abs(x) < 0x1p-126F;
  const Number y = select(is_subnormal, x * 0x1p24F, x);
  const auto code = bits(y);
  // in [1/2, 2): an even number of powers of 2 is taken out
  const auto reduced = (code & 0x00ffffff) | 0x3f000000;
  const auto exponent = bits(
      select(is_subnormal, Number::of(reduced - code + 0x0c000000), Number::of(reduced - code)));
  const Number r = Number::of(reduced), i = mufu::rsqrt_approx_ftz(r);
  const Number square = i * i, square_low = fma(i, i, -square);
  const Number e = fma(square_low, -r, fma(square, -r, 1));
  const Number root = fma(fma(Number(0.375F), e, 0.5F), i * e, i);
  // exponent / 2 with its sign
  const auto half = (exponent >> 1) | (exponent & mufu::sign_bit);
  const Number scaled = Number::of(bits(root) + half);
  const auto is_normal = both(code >= mufu::smallest_normal, code < mufu::infinity_code);
  return select(is_normal, scaled, mufu::rsqrt_approx_ftz(y));
}

template <class Number>
constexpr Number intrinsic_powf(Number x, Number y) {
  return mufu::ex2_approx(y * mufu::lg2_approx(x));
}

}  // namespace guardbit::emulator::cuda_math
