#pragma once

#include <string>
#include <vector>

#include "emulator/model/batch.hpp"
#include "emulator/model/instruction.hpp"
#include "formats/tensors/tensor.hpp"

// Operands of an instruction that lie in the tensors of a file: their shapes, formats and codes are
// checked, and a batch views them.
namespace guardbit::emulator {

/// What an array's element type must say about the format of its codes.
enum class ElementType {
  /// the format itself; U8 for formats narrower than a byte and for scales, F32 for TF32
  named,
  /// or unsigned words of the same width
  same_bits,
};

/// A batch whose operands lie in tensors; the tensors keep the memory alive.
struct BoundBatch {
  /// `d` unset
  MatrixBatch batch;
  /// the tensor d, where there is one
  ConstCodes recorded;
  std::vector<formats::Tensor> tensors;

  std::int64_t outputs() const { return batch.count * batch.shape.m * batch.shape.n; }
};

/// Reads tensors named a, b, c, d, e, a_scale and b_scale as operands of the instruction, in the
/// shapes of MatrixBatch: formats, shapes, codes and sparse positions are checked. c and d may be
/// absent; dimensions that the instruction leaves open (0) come from the tensors. formats::Error
/// names `where`, the tensor and the element.
BoundBatch bind_operands(const MatrixInstruction& instruction, std::vector<formats::Tensor> tensors,
                         ElementType elements, const std::string& where);

/// Executions [begin, begin + count) of a batch.
MatrixBatch part_of(const MatrixInstruction& instruction, const MatrixBatch& batch,
                    std::int64_t begin, std::int64_t count);

/// "[60, 16, 8]"
std::string shape_text(const std::vector<std::int64_t>& shape);

}  // namespace guardbit::emulator
