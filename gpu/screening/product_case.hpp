#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "emulator/model/instruction.hpp"

// Large products that a screening asks of cuBLAS, and the results that the model gives for them on
// this host.
namespace guardbit::gpu {

/// D = A * B, all row-major: A [m, k] repeats its first distinct_rows rows, B [k, n] its first
/// distinct_columns columns, and so does D. The model computes those results alone; every
/// multiprocessor gets all of them.
struct ProductCase {
  /// "fp16 8192 x 8192 x 8192"
  std::string name;
  /// as emulator::parse_plan reads it
  std::string plan;
  /// whose formats cuBLAS is asked for
  emulator::MatrixInstruction instruction;
  int m = 0, n = 0, k = 0;
  /// codes in their containers: [distinct_rows, k], [k, distinct_columns], [distinct_rows,
  /// distinct_columns]
  std::vector<std::byte> a, b, expected;
};
inline constexpr int distinct_rows = 256, distinct_columns = 256;

/// The kinds of products of a screening: of FP16, BF16, TF32, FP32 and FP64.
int product_kinds();

/// The case of a kind with K, M and N divided by `shrink`, a power of two up to 32.
ProductCase make_product_case(int kind, int shrink = 1, int threads = 0);

}  // namespace guardbit::gpu
