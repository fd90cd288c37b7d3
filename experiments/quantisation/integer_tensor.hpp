#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <span>
#include <string_view>
#include <vector>

#include "experiments/quantisation/calibrators.hpp"
#include "experiments/quantisation/integer_grid.hpp"

namespace guardbit::experiments {

/// Numbers that share a scale.
enum class Granularity : std::uint8_t {
  tensor,
  /// the same index along an axis
  channel,
  /// runs along the last axis; the last one of a row may be shorter
  block,
};
constexpr auto words(Granularity) { return std::array{"tensor", "channel", "block"}; }

/// How a tensor becomes integers: data.
struct IntegerScheme {
  Granularity granularity = Granularity::tensor;
  /// of channels
  std::size_t axis = 0;
  /// numbers of a block
  std::int64_t block = 128;
  /// [least, largest] instead of [-amax, amax]
  bool affine = false;
  IntegerArithmetic arithmetic = IntegerArithmetic::modelopt;
  Calibrator calibrator = Calibrator::max;
  /// bits, sign and what the calibrator takes
  CalibrationOptions calibration;
};

/// Throws formats::Error, beginning with `where`, for what does not go together: affine with
/// ModelOpt's arithmetic, histograms of blocks, bits other than 2 to 8.
void require_scheme(const IntegerScheme& scheme, std::string_view where);

/// A tensor as integers.
struct IntegerTensor {
  /// group_shape: one scale each
  std::vector<std::int64_t> shape, group_shape;
  /// row-major; empty for integers without a sign
  std::vector<std::int8_t> signed_codes;
  std::vector<std::uint8_t> unsigned_codes;
  /// row-major along group_shape
  std::vector<IntegerGrid> grids;
  /// of each group, as calibrated
  std::vector<float> amax;
  /// of each number
  std::vector<std::int32_t> group;

  std::int32_t code(std::size_t i) const {
    return signed_codes.empty() ? unsigned_codes[i] : signed_codes[i];
  }
  float value(std::size_t i) const {
    return grids[static_cast<std::size_t>(group[i])].value(code(i));
  }
};

/// Calibrates and quantises. Throws formats::Error, beginning with `where`, for numbers that are
/// not finite and an axis that is not there. `stop` is asked now and then; when it says so, the
/// result is empty.
IntegerTensor quantised(std::span<const float> numbers, std::vector<std::int64_t> shape,
                        const IntegerScheme& scheme, std::string_view where, int threads = 0,
                        const std::function<bool()>& stop = {});

/// What that cost.
struct IntegerErrors {
  std::uint64_t numbers = 0, clipped = 0, nonzero = 0, zeros_made = 0;
  /// sums of squares
  double signal = 0, noise = 0;
  /// |error|
  double largest = 0;

  double clipped_percent() const;
  /// of those that were not zero
  double zeros_percent() const;
  /// infinite without any error
  double sqnr_db() const;
};
IntegerErrors errors_of(const IntegerTensor& tensor, std::span<const float> numbers);

}  // namespace guardbit::experiments
