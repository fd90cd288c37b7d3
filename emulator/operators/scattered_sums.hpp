#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "emulator/operators/operator_tensor.hpp"

// Sums whose terms are scattered: gradients of embeddings, index_add; norms of lists.
namespace guardbit::emulator::operators {

struct ScatteredSum {
  /// nothing where atomics add in no fixed order
  std::optional<Tensor> result;
  std::string plan;
  /// of a recorded result that is given: elements that no order of the additions gives
  std::optional<std::int64_t> impossible = {};
};

/// `rows` are those of the table; the gradient of row `padding` is zero. `recorded` is looked at
/// only where the order is free.
ScatteredSum embedding_gradient(const Tensor& gradient, const Tensor& indices, std::int64_t rows,
                                std::int64_t padding, const Tensor* recorded);
ScatteredSum index_add(const Tensor& input, std::int64_t dimension, const Tensor& indices,
                       const Tensor& source, double factor, const Tensor* recorded);

/// What index_put does where it accumulates: adds `values`, which are broadcast, at the places that
/// `indices` name in the dimensions of `input`; nothing for a dimension that is taken whole, masks
/// for the dimensions that they have.
Tensor add_at_places(const Tensor& input, const std::vector<std::optional<Tensor>>& indices,
                     const Tensor& values);

/// The norm of a tensor of a list, of order 1, 2 or infinity, where the kernel of lists takes it:
/// tensors of one type without gaps.
Tensor norm_of_list(const Tensor& tensor, double order, const std::optional<formats::Format>& type);

}  // namespace guardbit::emulator::operators
