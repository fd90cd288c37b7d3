#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>

#include "emulator/operators/operator_tensor.hpp"

// Pointwise operators in FP64: those that are made of the unit's sums, products, quotients, roots,
// of choices, and of the functions of cuda_doubles.hpp and cuda_double_functions.hpp. CUDA's other
// functions of FP64 have no model here.
namespace guardbit::emulator::operators {

/// Numbers that a call gives besides tensors.
using DoubleParameters = std::array<double, 4>;

struct DoubleOperator {
  /// as of the table of FP32
  std::string_view name;
  int operands = 1;
  std::string_view expression;
  double (*run)(double x, double y, double z, const DoubleParameters&) = nullptr;
  /// a comparison, whose result is a boolean
  bool is_boolean = false;
};

/// The table, and the operator of that name; null where it has none.
std::span<const DoubleOperator> double_operators();
const DoubleOperator* find_double_operator(std::string_view name);

/// The operator over tensors that are broadcast to one shape. Operands of other types are converted
/// to FP64, the result to `type`: FP64 or booleans.
Tensor run_doubles(const DoubleOperator& op, std::span<const Tensor* const> operands,
                   const DoubleParameters& parameters, const formats::Format& type, int threads);

}  // namespace guardbit::emulator::operators
