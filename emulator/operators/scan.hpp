#pragma once

#include <cstdint>
#include <string>

#include "emulator/operators/operator_tensor.hpp"

// Running sums and products.
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

}  // namespace guardbit::emulator::operators
