#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "formats/block_format.hpp"
#include "formats/conversion/block_quantisation.hpp"
#include "formats/conversion/block_summary.hpp"
#include "formats/conversion/conversion.hpp"
#include "formats/format.hpp"
#include "formats/tensors/byte_writer.hpp"
#include "formats/tensors/tensor.hpp"
#include "formats/value.hpp"

// Whole tensors to block formats and back.
namespace guardbit::formats {

/// A tensor in a block format. The blocks lie along one of its axes.
struct BlockTensor {
  /// in the tensor's shape
  Tensor elements;
  /// the same shape, the axis counted in blocks
  Tensor scales;
  std::optional<Value> tensor_scale;
};

/// Whether FP32 holds every number of the format, so that quantising its words rounds once.
bool is_within_fp32(const Format& format);

/// The tensor scale under which the largest finite magnitude of the tensor is what the largest
/// element under the largest scale stands for (for NVFP4 that over 6 * 448), rounded to nearest
/// in the tensor scale's format: at least its smallest number, 1 for a tensor of zeros.
Value tensor_scale_of(const Tensor& tensor, const BlockFormat& format, int threads = 0);

/// The tensors that quantise makes of one of that name and shape, without their bytes.
BlockTensor described_blocks(const Tensor& tensor, const BlockFormat& format, std::size_t axis,
                             Packing packing);

/// A tensor of at least one dimension whose format is_within_fp32, quantised along `axis`. Rows
/// are what lies along the axis, in the order of the other indices: stochastic elements are
/// counted along them. The elements get that packing, the scales lie in containers; names are the
/// tensor's.
BlockTensor quantise_tensor(const Tensor& tensor, const BlockFormat& format, std::size_t axis,
                            Packing packing, const BlockQuantisationOptions& options,
                            BlockSummary& summary);

/// The same with writers that get the bytes of the elements and of the scales.
BlockSummary quantise(const Tensor& tensor, const BlockFormat& format, std::size_t axis,
                      Packing packing, const BlockQuantisationOptions& options,
                      const ByteWriter& write_elements, const ByteWriter& write_scales);

/// The numbers that the elements stand for, exactly, each rounded once to `to`.
Tensor restore_tensor(const BlockTensor& tensor, const BlockFormat& format, std::size_t axis,
                      const Format& to, Packing packing, const ConversionOptions& options,
                      ConversionSummary& summary);

ConversionSummary restore(const BlockTensor& tensor, const BlockFormat& format, std::size_t axis,
                          const Format& to, Packing packing, const ConversionOptions& options,
                          const ByteWriter& write);

}  // namespace guardbit::formats
