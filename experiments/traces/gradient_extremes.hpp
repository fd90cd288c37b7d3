#pragma once

#include <cstdint>
#include <optional>

#include "formats/files/tensor_stream.hpp"
#include "formats/format.hpp"
#include "formats/value.hpp"

namespace guardbit::experiments {

/// What decides whether a gradient overflows, at any scale and in any format: rounding is monotone,
/// so that the largest finite magnitude overflows if anything finite does.
struct GradientExtremes {
  /// magnitude, of the finite elements; zero if there are none
  formats::Value largest;
  /// the first of equal ones
  std::uint64_t largest_index = 0;
  /// index
  std::optional<std::uint64_t> first_nonfinite;
};

/// Of a tensor of a floating-point format with a sign, read a window at a time.
GradientExtremes gradient_extremes(const formats::StreamedTensor& stream);

/// Which element is not finite once the gradient is multiplied by `ratio` (rounded to FP32, as
/// PyTorch's autocast rounds it) and then stored in `to`, if any; the first one that is not finite
/// as it is, else the one of the largest magnitude.
std::optional<std::uint64_t> overflowing_element(const GradientExtremes& extremes, double ratio,
                                                 const formats::Format& to);

}  // namespace guardbit::experiments
