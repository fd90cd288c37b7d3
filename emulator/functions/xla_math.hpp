#pragma once

#include <cmath>

#include "emulator/functions/cuda_math.hpp"

// Functions that XLA (in JAX 0.11.2) expands itself, as the text of its optimised programs has them
// and recordings on an H100 confirm: every product is rounded before it is added.
namespace guardbit::emulator::xla_math {

/// c[0] x^(n-1) + ... + c[n-1] by Horner's rule, each product rounded.
template <std::size_t n>
float polynomial(float x, const float (&c)[n]) {
  float sum = c[0];
  for (std::size_t i = 1; i < n; ++i) sum = sum * x + c[i];
  return sum;
}

/// 1 / x as div.approx computes it: the special function unit's.
inline float reciprocal(float x) { return cuda_math::number(mufu::rcp(cuda_math::bits(x))); }

/// The complement of the error function. Its exponential is CUDA's.
inline float erfc(float x) {
  const float a = std::fabs(x), square = x * x;
  if (a < 1)
    return 1 - x * polynomial(square, {7.85386146e-05F, -0.000801019371F, 0.00518832775F,
                                       -0.0268538129F, 0.112835854F, -0.37612626F, 1.12837911F});
  const float factor = cuda_math::expf(-square) * reciprocal(a), place = reciprocal(square);
  const float p =
      a < 2
          ? polynomial(place, {0.0232682F, -0.138703942F, 0.368742466F, -0.582473278F, 0.621000469F,
                               -0.494451523F, 0.340488F, -0.274112701F, 0.563825965F})
          : polynomial(place, {-10.477664F, 12.9772F, -7.49551868F, 2.92101908F, -1.01526523F,
                               0.42184633F, -0.282076746F, 0.564189494F});
  // The exponential of less would be 0.
  const float tail = -square < -88.7228394F ? 0 : factor * p;
  return x < 0 ? 2 - tail : tail;
}

}  // namespace guardbit::emulator::xla_math
