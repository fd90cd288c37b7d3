#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "emulator/operators/operator_tensor.hpp"

// softmax and log_softmax with their gradients, as PyTorch's kernels compute them.
namespace guardbit::emulator::operators {

/// Which threads add the powers of one row, in which order.
struct SoftmaxShape {
  enum class Kind : std::uint8_t {
    /// one warp (or less) a row, which stays in registers
    persistent,
    /// one block a row, single elements in registers
    in_registers,
    /// one block a row, vectors in shared memory
    in_shared_memory,
    /// one block a row, vectors from the next aligned address on, single elements at the ends
    from_memory,
    /// along another dimension than the last: some threads a column
    across,
  };
  Kind kind = Kind::persistent;
  int threads = 32;
  /// elements that a thread reads at once
  int vector = 1;
  /// The warps' sums and the block's are chains rather than trees.
  bool is_sequential = false;

  std::string text() const;
};

struct SoftmaxSizes {
  /// elements of a row, other elements between its elements, bytes of an element
  std::int64_t size = 1, inner = 1;
  int element_bytes = 4;
  /// the rows and the tensors begin at multiples of 16 bytes
  bool is_aligned = true;
  /// 16-bit numbers in, FP32 numbers out
  bool widens = false;
};
SoftmaxShape forward_shape(const SoftmaxSizes& sizes);
SoftmaxShape backward_shape(const SoftmaxSizes& sizes);

struct SoftmaxResult {
  Tensor result;
  std::string plan;
};
/// `type` is that of the result: the input's, or FP32 of a 16-bit input. `shape` stands for the one
/// that the library takes.
SoftmaxResult softmax(const Tensor& input, std::int64_t dimension, bool is_logarithm,
                      const formats::Format& type, int threads,
                      const std::optional<SoftmaxShape>& shape = {});
/// The result of softmax with zeros where all of a row is minus infinity.
Tensor without_hidden_rows(const Tensor& input, std::int64_t dimension, const Tensor& result);
SoftmaxResult softmax_gradient(const Tensor& gradient, const Tensor& output, std::int64_t dimension,
                               bool is_logarithm, const formats::Format& type, int threads,
                               const std::optional<SoftmaxShape>& shape = {});

}  // namespace guardbit::emulator::operators
