#pragma once

#include <cstddef>

#include "emulator/functions/cuda/cuda_exponentials.hpp"
#include "emulator/functions/unit/special_function_forms.hpp"

// Functions that XLA (in JAX 0.11.2) expands itself, as the text of its optimised programs has them
// and recordings on an H100 confirm: every product is rounded before it is added.
namespace guardbit::emulator::xla_math {

/// c[0] x^(n-1) + ... + c[n-1] by Horner's rule, each product rounded.
template <class Number, std::size_t n>
constexpr Number polynomial(Number x, const float (&c)[n]) {
  Number sum = c[0];
  for (std::size_t i = 1; i < n; ++i) sum = sum * x + c[i];
  return sum;
}

/// The complement of the error function. Its reciprocals are those of div.approx, the special
/// function unit's; its exponential is CUDA's.
template <class Number>
constexpr Number erfc(Number x) {
  const Number a = abs(x), square = x * x;
  const auto small = [&] {
    return 1 - x * polynomial(square, {7.85386146e-05F, -0.000801019371F, 0.00518832775F,
                                       -0.0268538129F, 0.112835854F, -0.37612626F, 1.12837911F});
  };
  const auto large = [&] {
    const Number factor = cuda_math::expf(-square) * mufu::rcp_approx(a);
    const Number place = mufu::rcp_approx(square);
    const auto near = [&] {
      return polynomial(place,
                        {0.0232682F, -0.138703942F, 0.368742466F, -0.582473278F, 0.621000469F,
                         -0.494451523F, 0.340488F, -0.274112701F, 0.563825965F});
    };
    const auto far = [&] {
      return polynomial(place, {-10.477664F, 12.9772F, -7.49551868F, 2.92101908F, -1.01526523F,
                                0.42184633F, -0.282076746F, 0.564189494F});
    };
    // The exponential of less would be 0.
    const Number tail =
        select(-square < -88.7228394F, 0, factor * Number::choose(a < 2, near, far));
    return select(x < 0, 2 - tail, tail);
  };
  return Number::choose(a < 1, small, large);
}

}  // namespace guardbit::emulator::xla_math
