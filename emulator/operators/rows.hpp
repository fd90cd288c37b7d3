#pragma once

#include <cstddef>
#include <cstdint>

#include "emulator/operators/operator_tensor.hpp"

namespace guardbit::emulator::operators {

/// The rows of a tensor along a dimension: of `size` elements, `inner` apart, `count` of them.
struct Rows {
  std::int64_t size = 1, inner = 1, count = 1;

  /// The place of a row's element, also where rows have another length.
  std::size_t at(std::int64_t row, std::int64_t i, std::int64_t length) const {
    return static_cast<std::size_t>(row / inner * length * inner + row % inner + i * inner);
  }
  std::size_t at(std::int64_t row, std::int64_t i) const { return at(row, i, size); }
};

/// A scalar has one row of one element.
inline Rows rows_along(const Tensor& tensor, std::size_t d) {
  Rows rows;
  if (tensor.rank() == 0) return rows;
  rows.size = tensor.shape[d];
  for (std::size_t i = d + 1; i < tensor.shape.size(); ++i) rows.inner *= tensor.shape[i];
  rows.count = rows.size == 0 ? 0 : tensor.count() / rows.size;
  return rows;
}

}  // namespace guardbit::emulator::operators
