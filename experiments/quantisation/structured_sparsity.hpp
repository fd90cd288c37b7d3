#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace guardbit::experiments {

/// What 2:4 pruning by magnitude kept of a tensor.
struct PruningSummary {
  std::uint64_t groups = 0;
  /// Groups in which the second and the third largest magnitude are equal: which one stays is a
  /// choice, and libraries choose differently. Here the one with the lower index stays.
  std::uint64_t ties = 0;
  /// Groups without such a tie whose best two masks keep sums of magnitudes that are equal in FP32:
  /// a search over the six masks (ModelOpt) may take either.
  std::uint64_t rounded_ties = 0;
  /// sums of |w|
  double kept = 0, all = 0;
  /// of w^2
  double kept_squares = 0, all_squares = 0;
};

/// How groups of four lie in a tensor.
struct PruningAxis {
  /// of the axis, a multiple of 4
  std::size_t length = 0;
  /// between its neighbours
  std::size_t stride = 1;
};
/// The input dimension of a weight: the last axis of a matrix, channels (axis 1) of a convolution's
/// K, C, R, S. Throws formats::Error, beginning with `where`, for other shapes and lengths that
/// four does not divide.
PruningAxis input_axis(std::span<const std::int64_t> shape, std::string_view where);

/// True where ModelOpt prunes it: outputs are a multiple of 8, inputs one of 16.
bool is_pruned_by_modelopt(std::span<const std::int64_t> shape);

/// Sets the two smallest magnitudes of each group of four to zero. Throws formats::Error, beginning
/// with `where`, for infinities and NaNs.
PruningSummary prune(std::span<float> weights, const PruningAxis& axis, std::string_view where);

/// The stored form of four numbers of which two at least are zero: two numbers and their places.
struct StoredPair {
  float first = 0, second = 0;
  /// two bits each, the first number's in the lower ones
  std::uint8_t places = 0;
};
StoredPair stored_pair(std::span<const float, 4> group);

}  // namespace guardbit::experiments
