#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "emulator/operators/operator_tensor.hpp"

// Sorting and choosing by order, with the places of equal numbers as PyTorch's kernels leave them.
// NaNs are greater than everything and equal to each other, zeros of both signs are equal.
namespace guardbit::emulator::operators {

struct Ordered {
  Tensor numbers;
  /// nothing where threads race for the place of equal numbers
  std::optional<Tensor> indices;
  std::string plan;
};

/// Along one dimension, which may count from the end. Rows of up to 32 elements go through a
/// bitonic network, which exchanges equal numbers, unless the sort is to be stable.
Ordered sorted(const Tensor& input, std::int64_t dimension, bool is_descending, bool is_stable);

/// The `count` greatest or least. Those beyond the last one chosen come in the order of their
/// places, then as many equal to it as there is room for; zeros are chosen by sign. Then sorted.
Ordered chosen(const Tensor& input, std::int64_t count, std::int64_t dimension, bool is_greatest,
               bool is_sorted);

enum class Place : std::uint8_t {
  /// the lower of two in the middle; a NaN where there is one
  median,
  median_of_numbers,
  /// the k-th least
  given
};
/// One element of each row. Of equal numbers the k-th least is told by its first place, a median by
/// what half a warp wrote last. UnknownShape where it is a NaN.
Ordered at_place(const Tensor& input, std::int64_t dimension, bool keeps_dimension, Place place,
                 std::int64_t k);
/// The median of all elements, a tensor without dimensions.
Tensor median_of_all(const Tensor& input, bool leaves_out_nans);

}  // namespace guardbit::emulator::operators
