#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>

#include "formats/rounding.hpp"
#include "tests/claims/vector_rounding.hpp"

#if defined(__x86_64__)

#include <immintrin.h>

#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx2,fma,f16c"))), apply_to = function)
#else
#pragma GCC target("avx2,fma,f16c")
#pragma GCC diagnostic ignored "-Wpsabi"
#endif

#include "emulator/functions/kernels/vector_rounding.hpp"
#include "formats/support/vectors/avx2.hpp"

namespace guardbit::tests {

Eight rounded_by_avx2(Operation operation, const Eight& x, const Eight& y, const Eight& z) {
  using formats::Rounding;
  using Isa = formats::vectors::Avx2;
  using Rounded = emulator::kernels::VectorRounding<Isa>;
  const auto a = formats::vectors::load<Isa::Floats>(x.data());
  const auto b = formats::vectors::load<Isa::Floats>(y.data());
  const auto c = formats::vectors::load<Isa::Floats>(z.data());
  Isa::Floats result{};
  switch (operation) {
    case Operation::fma_down: result = Rounded::fma_down(a, b, c); break;
    case Operation::add: result = Rounded::add_toward_zero(a, b); break;
    case Operation::multiply: result = Rounded::multiply_toward_zero(a, b); break;
    case Operation::divide_up: result = Rounded::divide(a, b, Rounding::upward); break;
    case Operation::divide_down: result = Rounded::divide(a, b, Rounding::downward); break;
    case Operation::divide_cut: result = Rounded::divide(a, b, Rounding::toward_zero); break;
    case Operation::root_up: result = Rounded::square_root(a, Rounding::upward); break;
    case Operation::root_down: result = Rounded::square_root(a, Rounding::downward); break;
  }
  Eight codes{};
  formats::vectors::store(codes.data(), result);
  return codes;
}

}  // namespace guardbit::tests

#if defined(__clang__)
#pragma clang attribute pop
#endif

#else

namespace guardbit::tests {
Eight rounded_by_avx2(Operation, const Eight& x, const Eight&, const Eight&) { return x; }
}  // namespace guardbit::tests

#endif
