#pragma once

#include <cstdint>
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

/// For each element in row-major order its place in memory, counted from the lowest address, where
/// the memory has no gaps but another order than row-major; else empty.
std::vector<std::int64_t> places_in_memory(const Tensor& tensor);

/// The same elements as one row in the order of memory; the tensor itself where that is row-major
/// or has gaps.
Tensor in_memory_order(const Tensor& tensor);

/// Turns elements that were written in the order of memory of `like`, a tensor of the same shape,
/// into a tensor with its strides.
Tensor from_memory_order(const Tensor& like, const Tensor& written);

}  // namespace guardbit::emulator::operators
