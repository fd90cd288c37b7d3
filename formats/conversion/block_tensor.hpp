#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "formats/block_format.hpp"
#include "formats/conversion/block_quantisation.hpp"
#include "formats/conversion/conversion.hpp"
#include "formats/format.hpp"
#include "formats/tensors/tensor.hpp"
#include "formats/value.hpp"

// Whole tensors to block formats and back.
namespace guardbit::formats {

/// A tensor in a block format. The blocks lie along one of its axes.
struct BlockTensor {
  Tensor elements;  ///< in the tensor's shape
  Tensor scales;    ///< the same shape, the axis counted in blocks
  std::optional<Value> tensor_scale;
};

/// What quantising did. An element is out of range when it is infinite or the rounding of its
/// quotient by the block's unit (scale times tensor scale, what an element of 1 stands for), had
/// the exponent no limit, lies past the element format's largest number. The sums behind errors and
/// noise are of FP64, in an order that does not depend on the threads.
struct BlockSummary {
  std::uint64_t blocks = 0;
  std::uint64_t elements = 0;
  std::uint64_t nans_in = 0;
  std::uint64_t infinities_in = 0;
  std::uint64_t zeros_made = 0;       ///< from numbers other than zero
  std::uint64_t under_no_scale = 0;   ///< of those, in blocks whose scale is zero
  std::uint64_t infinities_made = 0;  ///< from finite numbers
  std::uint64_t nans_made = 0;        ///< from anything but NaN
  std::uint64_t saturated = 0;        ///< out of range, and a finite number now
  std::uint64_t inexact = 0;          ///< that stand for another number now, NaN not counted
  std::uint64_t compared = 0;         ///< finite numbers that still are: what signal and noise hold
  double signal = 0;                  ///< sum of their squares
  double noise = 0;                   ///< sum of the squares of their errors
  std::uint64_t measured = 0;         ///< of the compared, those in blocks with a unit above zero
  double max_error = 0;               ///< of the measured, in their blocks' units
  double error_sum = 0;

  double mean_error() const {
    return measured == 0 ? 0 : error_sum / static_cast<double>(measured);
  }
  /// Signal over noise in decibels; nothing where either is zero.
  std::optional<double> signal_to_noise() const;

  friend bool operator==(const BlockSummary&, const BlockSummary&) = default;
};

/// Whether FP32 holds every number of the format, so that quantising its words rounds once.
bool is_within_fp32(const Format& format);

/// The tensor scale under which the largest finite magnitude of the tensor is what the largest
/// element under the largest scale stands for (for NVFP4 that over 6 * 448), rounded to nearest in
/// the tensor scale's format: at least its smallest number, 1 for a tensor of zeros.
Value tensor_scale_of(const Tensor& tensor, const BlockFormat& format);

/// A tensor of at least one dimension whose format is_within_fp32, quantised along `axis`. Rows are
/// what lies along the axis, in the order of the other indices: stochastic elements are counted
/// along them. The elements get that packing, the scales lie in containers; names are the tensor's.
BlockTensor quantise_tensor(const Tensor& tensor, const BlockFormat& format, std::size_t axis,
                            Packing packing, const BlockQuantisationOptions& options,
                            BlockSummary& summary);

/// The numbers that the elements stand for, exactly, each rounded once to `to`.
Tensor restore_tensor(const BlockTensor& tensor, const BlockFormat& format, std::size_t axis,
                      const Format& to, Packing packing, const ConversionOptions& options,
                      ConversionSummary& summary);

}  // namespace guardbit::formats
