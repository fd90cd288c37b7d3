#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "emulator/operators/operator_tensor.hpp"

// Tensors of different shapes as operands of one operator.
namespace guardbit::emulator::operators {

/// The shape that tensors of these shapes are broadcast to; nothing where they do not fit.
std::optional<Dimensions> broadcast_shape(std::span<const Tensor* const> tensors);

/// A result of operands that are broadcast to that shape, its elements yet to be written. Its
/// strides are those of the first operand that has the shape.
Tensor broadcast_result(std::span<const Tensor* const> operands, const Dimensions& shape,
                        const formats::Format& type);

/// The places of a smaller tensor's elements, in the row-major order of a larger shape.
class BroadcastPlaces {
 public:
  /// Begins at that element of the larger shape.
  BroadcastPlaces(const Dimensions& smaller, const Dimensions& larger, std::int64_t begin = 0);

  std::int64_t next();

 private:
  Dimensions shape_, step_, place_;
  std::int64_t at_ = 0;
};

}  // namespace guardbit::emulator::operators
