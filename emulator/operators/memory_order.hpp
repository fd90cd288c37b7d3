#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "emulator/operators/operator_tensor.hpp"

// The order in which a tensor's elements lie in the GPU's memory, by which many kernels walk.
namespace guardbit::emulator::operators {

/// Do its elements fill their memory, in whatever order of the dimensions?
bool has_no_gaps(const Tensor& tensor);

/// Do the strides say that the channels of a pixel lie together, as PyTorch reads them
/// (suggest_memory_format)? Of images (batch, channels, height, width) or volumes. Channels that
/// are one repeated do not lie together, nor do sizes of one that leave it open.
bool says_channels_last(const Tensor& tensor);

/// Is it contiguous with the channels of a pixel together? So may be images of one pixel, or of one
/// channel, that are contiguous the other way, too.
bool is_contiguous_channels_last(const Tensor& tensor);

/// The strides of images or volumes of that shape without gaps, with the channels of a pixel
/// together.
Dimensions channels_last_stride(const Dimensions& shape);

/// Whether dimension a runs slower than b by what one operand says of them: 1 yes, -1 no, 0 where
/// it says nothing, as a stride of 0 does.
inline int runs_slower(std::int64_t stride_a, std::int64_t stride_b, std::int64_t size_a,
                       std::int64_t size_b) {
  if (stride_a == 0 || stride_b == 0) return 0;
  if (stride_a != stride_b) return stride_a < stride_b ? -1 : 1;
  return size_a > size_b ? 1 : 0;
}

/// Sorts dimensions, given the slowest first, into the order from the fastest to the slowest as
/// PyTorch's TensorIterator does: `slower(a, b)` is 1 where dimension a runs slower than b, -1
/// where faster, and 0 where no operand says, so that both keep their places.
template <class Slower>
std::vector<std::size_t> iterated_order(std::size_t count, const Slower& slower) {
  std::vector<std::size_t> order;
  for (std::size_t d = count; d-- > 0;) order.push_back(d);
  for (std::size_t i = 1; i < count; ++i) {
    std::size_t moving = i;
    for (std::size_t j = i; j-- > 0;) {
      const int verdict = slower(order[j], order[moving]);
      if (verdict < 0) break;
      if (verdict == 0) continue;
      std::swap(order[j], order[moving]);
      moving = j;
    }
  }
  return order;
}

/// The strides of a result that lies like a tensor: the tensor's own where it has no gaps, else
/// such that leave none and keep its order (empty_like, and TensorIterator for one operand).
Dimensions dense_stride_like(const Tensor& tensor);

/// For each element in row-major order its place in memory, counted from the lowest address, where
/// the memory has no gaps but another order than row-major; else empty.
std::vector<std::int64_t> places_in_memory(const Tensor& tensor);

/// The same elements as one row in the order of memory; the tensor itself where that is row-major
/// or has gaps.
Tensor in_memory_order(const Tensor& tensor);

/// Turns elements that were written in the order of memory of `like`, a tensor of the same shape,
/// into a tensor with its strides.
Tensor from_memory_order(const Tensor& like, const Tensor& written);

/// The strides of a result of operands of that shape with these strides, as TensorIterator has
/// them: earlier operands decide the order of the dimensions; a stride of 0 says nothing.
Dimensions stride_of_operands(const Dimensions& shape, std::span<const Dimensions> strides);

/// The same elements where the first ones of `written` go to the first ones of `like`, as an
/// iterator over that tensor alone walks. Without gaps.
Tensor from_iteration_order(const Tensor& like, const Tensor& written);

}  // namespace guardbit::emulator::operators
