#pragma once

#include <cstdint>

#include "emulator/operators/operator_tensor.hpp"

// Sums, means and greatest numbers of rows of a table, and the gradient of sums and means.
namespace guardbit::emulator::operators {

/// Which rows each bag takes.
struct Bags {
  /// [indices]
  const Tensor& indices;
  /// [bags]: where each begins; with `has_last_offset` one more, where the last one ends
  const Tensor& offsets;
  bool has_last_offset = false;
  bool is_mean = false;
  /// [indices], or null
  const Tensor* weights = nullptr;
  /// an index that counts as absent; -1: none
  std::int64_t padding = -1;
};

/// [bags, width]. UnknownShape where places do not fit.
Tensor embedding_bag(const Tensor& table, const Bags& bags);
/// The greatest number of each column in each bag, 0 of a bag without rows, and the first row that
/// has it, -1 without one; both [bags, width]. A NaN is the greatest where it comes first.
struct GreatestOfBags {
  Tensor numbers, rows;
};
GreatestOfBags greatest_of_bags(const Tensor& table, const Bags& bags);
/// The bag of each index, [indices], and how many each bag has, [bags], as PyTorch keeps them.
Tensor bags_of_indices(const Bags& bags);
Tensor sizes_of_bags(const Bags& bags);

/// Of the table with so many rows: indices in order, pieces of 10 of one row added one after
/// another. `bag_of`: the bag of each index; `sizes`: of the bags.
Tensor embedding_bag_gradient(const Tensor& gradient, const Tensor& indices, const Tensor& bag_of,
                              const Tensor& sizes, std::int64_t rows, bool is_mean,
                              const Tensor* weights, std::int64_t padding);
/// The gradient of an embedding whose rows are divided by how often each was used.
Tensor embedding_gradient_by_frequency(const Tensor& gradient, const Tensor& indices,
                                       std::int64_t rows, std::int64_t padding);

}  // namespace guardbit::emulator::operators
