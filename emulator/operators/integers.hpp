#pragma once

#include <span>
#include <string_view>

#include "emulator/operators/operator_tensor.hpp"

// Pointwise operators over integers and booleans.
namespace guardbit::emulator::operators {

struct IntegerOperator {
  std::string_view name;
  int operands = 1;
  /// y and z are 0 where there are fewer operands
  std::int64_t (*run)(std::int64_t x, std::int64_t y, std::int64_t z) = nullptr;
  bool is_boolean = false;
};

/// The operator of that name; null where it has none.
const IntegerOperator* find_integer_operator(std::string_view name);

/// Over tensors that are broadcast to one shape; results wrap around in `type`.
Tensor run_integers(const IntegerOperator& op, std::span<const Tensor* const> operands,
                    const formats::Format& type);

}  // namespace guardbit::emulator::operators
