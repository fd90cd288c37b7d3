#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "emulator/engine/matrix_product.hpp"
#include "emulator/inputs/matrix_families.hpp"
#include "emulator/model/batch.hpp"
#include "emulator/model/instruction.hpp"

namespace guardbit::tools {

using emulator::inputs::MatrixFamily;

/// The families of `data_words`; of specials, 1 % infinities and NaNs.
const std::vector<MatrixFamily>& data_families();

/// Memory of operands: so many codes of A, B, C and of each one's block scales.
struct OperandMemory {
  std::vector<std::byte> a, b, c, d, e, a_scale, b_scale;

  struct Counts {
    std::int64_t a = 0, b = 0, c = 0, a_scale = 0, b_scale = 0;
  };
  /// C is normal. Block scales are spread over `scale_binades` from 1 downwards; 0: normal, or wide
  /// where the elements are. Infinities and NaNs are as frequent as among the elements.
  OperandMemory(const emulator::MatrixInstruction& instruction, const MatrixFamily& data,
                const Counts& counts, int scale_binades = 0);
};

/// A product by an instruction with operands in memory of its own: A, B and C row by row.
class ProductOperands {
 public:
  ProductOperands(const emulator::MatrixInstruction& instruction, const MatrixFamily& data,
                  std::int64_t m, std::int64_t n, std::int64_t k, int scale_binades = 0);
  ProductOperands(const ProductOperands&) = delete;
  ProductOperands& operator=(const ProductOperands&) = delete;

  const emulator::MatrixProduct& product() const { return product_; }

 private:
  OperandMemory memory_;
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
  emulator::Shape shape_;
  OperandMemory memory_;
  emulator::MatrixBatch batch_;
};

}  // namespace guardbit::tools
