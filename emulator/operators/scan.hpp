#pragma once

#include <cstdint>
#include <string>

#include "emulator/operators/operator_tensor.hpp"

// Running sums and products, and orders.
namespace guardbit::emulator::operators {

enum class Running : std::uint8_t { sum, product, log_sum_exp };

struct Scanned {
  Tensor result;
  std::string plan;
  /// False where the bits depend on which blocks finish first.
  bool is_ordered = true;
};

/// Along one dimension, which may count from the end.
Scanned scan(const Tensor& input, std::int64_t dimension, Running operation, int threads);

struct Sorted {
  Tensor numbers, indices;
};
/// NaNs are greater than everything.
Sorted sorted(const Tensor& input, std::int64_t dimension, bool is_descending);

}  // namespace guardbit::emulator::operators
