#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "emulator/engine/matrix_product.hpp"

namespace guardbit::tools {

/// One library's product, compiled for one instruction set.
struct ProductYardstick {
  std::string_view instruction_set;
  void (*sgemm)(const float* a, const float* b, float* c, std::int64_t m, std::int64_t n,
                std::int64_t k);
  void (*dgemm)(const double* a, const double* b, double* c, std::int64_t m, std::int64_t n,
                std::int64_t k);
  /// Multiply-adds in registers (multiply_adds.hpp).
  double (*multiply_adds_fp32)(std::int64_t rounds);
  double (*multiply_adds_fp64)(std::int64_t rounds);
};

/// Eigen for the widest instruction set that this CPU has.
const ProductYardstick& widest_eigen();

/// Eigen as a user compiles it, with -march=native; null where native_obstacle() says why.
const ProductYardstick* native_eigen();

/// Eigen for the instruction set of an engine: AVX2 alone for the engine avx2, else the widest.
const ProductYardstick& eigen_beside(std::string_view engine);

/// The sum of all words: reads every byte once, in vectors.
std::uint64_t read_all(std::span<const std::byte> bytes);

}  // namespace guardbit::tools
