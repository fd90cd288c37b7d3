#pragma once

#include <cstdint>
#include <string>

#include "emulator/gemm/code_matrix.hpp"

// How many elements share a scale, which files do not say.
namespace guardbit::emulator {

/// Elements that share one of several scales: `block` or else 128 where that many give the number
/// of scales, else as few as possible. `block`: as many as along K; 0: not known.
std::int64_t elements_per_scale(std::int64_t elements, std::int64_t scales, std::int64_t block = 0);

/// A matrix [rows, K] or [K, columns], its scales, and what an error about them begins with.
struct ScaledMatrix {
  const CodeMatrix& matrix;
  const CodeMatrix& scales;
  const std::string& place;
};

/// Elements of K that share a scale of A or B; 0 where all do. formats::Error for scales that do
/// not fit A and B.
std::int64_t scale_k_of(const ScaledMatrix& a, const ScaledMatrix& b);

}  // namespace guardbit::emulator
