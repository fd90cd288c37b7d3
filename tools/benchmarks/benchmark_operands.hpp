#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "emulator/engine/matrix_product.hpp"
#include "emulator/model/batch.hpp"
#include "emulator/model/instruction.hpp"

namespace guardbit::tools {

/// What matrices hold. Integers take part in `zeros` alone; otherwise they are uniform, those of 32
/// bits over 24.
struct DataFamily {
  /// of a benchmark
  std::string name = "normal";
  /// share of infinities and NaNs, where the format has them
  double specials = 0;
  /// share of zeros
  double zeros = 0;
  /// share of A's numbers that are subnormal, where it has them
  double subnormals = 0;
  /// exponents uniform over that many, from 1 downwards; 0: a normal distribution
  int binades = 0;
  /// the same of block scales, around 1
  int scale_binades = 0;
  /// exponents uniform over all that neither over- nor underflow in D
  bool wide = false;
  /// products at neighbouring k cancel, all but the last bits of a tenth
  bool cancelling = false;
};

/// normal, wide, cancelling, specials (1 %), zeros (97 %), subnormals (half).
const std::vector<DataFamily>& data_families();

/// A product by an instruction with operands in memory of its own: A, B and C row by row.
class ProductOperands {
 public:
  ProductOperands(const emulator::MatrixInstruction& instruction, const DataFamily& data,
                  std::int64_t m, std::int64_t n, std::int64_t k);
  ProductOperands(const ProductOperands&) = delete;
  ProductOperands& operator=(const ProductOperands&) = delete;

  const emulator::MatrixProduct& product() const { return product_; }

 private:
  std::vector<std::byte> a_, b_, c_, d_, e_, a_scale_, b_scale_;
  emulator::MatrixProduct product_;
};

/// Executions of an instruction as a capture holds them, normal data.
class BatchOperands {
 public:
  BatchOperands(const emulator::MatrixInstruction& instruction, std::int64_t executions);
  BatchOperands(const BatchOperands&) = delete;
  BatchOperands& operator=(const BatchOperands&) = delete;

  const emulator::MatrixBatch& batch() const { return batch_; }

 private:
  std::vector<std::byte> a_, b_, c_, d_, e_, a_scale_, b_scale_;
  emulator::MatrixBatch batch_;
};

}  // namespace guardbit::tools
