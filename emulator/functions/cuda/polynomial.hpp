#pragma once

#include <cmath>
#include <cstddef>

namespace guardbit::emulator::cuda_math {

/// c[0] x^(n-1) + ... + c[n-1] by Horner's rule, fused.
template <class Number, class Coefficient, std::size_t n>
constexpr Number polynomial(Number x, const Coefficient (&c)[n]) {
  using std::fma;
  Number sum = c[0];
  for (std::size_t i = 1; i < n; ++i) sum = fma(sum, x, c[i]);
  return sum;
}

/// The same with either set of coefficients.
template <class Number, std::size_t n>
constexpr Number polynomial(Number x, typename Number::Mask mask, const float (&yes)[n],
                            const float (&no)[n]) {
  Number sum = select(mask, Number(yes[0]), Number(no[0]));
  for (std::size_t i = 1; i < n; ++i)
    sum = fma(sum, x, select(mask, Number(yes[i]), Number(no[i])));
  return sum;
}

}  // namespace guardbit::emulator::cuda_math
