#pragma once

#include <array>
#include <cstdint>

namespace guardbit::tests {

using Eight = std::array<std::uint32_t, 8>;
enum class Operation {
  fma_down,
  add,
  multiply,
  divide_up,
  divide_down,
  divide_cut,
  root_up,
  root_down
};

/// Eight results by emulator/functions/kernels/vector_rounding.hpp for AVX2, which the CPU must
/// have.
Eight rounded_by_avx2(Operation operation, const Eight& x, const Eight& y, const Eight& z);

}  // namespace guardbit::tests
