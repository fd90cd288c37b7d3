#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "emulator/functions/kernels/function_kernels.hpp"
#include "emulator/operators/kernels/operator_kernels.hpp"
#include "emulator/operators/operator_tensor.hpp"

// Pointwise operators: each element of the result comes from the elements at its place. The
// operators are a table; an expression's products are contracted with sums exactly where it says
// fma.
namespace guardbit::emulator::operators {

/// As many elements of each operand as there are results; unused ones are empty.
struct PointwiseOperands {
  std::array<std::span<const float>, 3> numbers;
};

/// What becomes of a NaN operand that an operator chooses.
enum class ChosenNan : std::uint8_t {
  /// the unit's NaN, as of every other result
  unit,
  /// its own bits
  kept,
  /// its own bits in FP32; FP16 and BF16 are converted on their way
  kept_in_fp32,
};

struct PointwiseOperator {
  /// aten's name of it, with a word for a variant: gelu, gelu_tanh
  std::string_view name;
  int operands = 1;
  /// What it computes of x, y, z and the parameters p, q, r, in FP32 unless it says otherwise; one
  /// rounding to the result's type follows.
  std::string_view expression;
  void (*run)(const PointwiseOperands&, const Parameters&, std::span<float> results) = nullptr;
  ChosenNan chosen_nan = ChosenNan::unit;
  /// a comparison, whose result is a boolean
  bool is_boolean = false;
};

/// Runs an operator over many numbers, by a kernel for the CPU's vectors where there is one.
class PointwiseRunner {
 public:
  /// `op` must stay.
  explicit PointwiseRunner(const PointwiseOperator& op);
  /// The bits of `op.run` but for those of NaNs that become the unit's. `results` is none of the
  /// operands.
  void run(const PointwiseOperands& operands, const Parameters& parameters,
           std::span<float> results) const;

 private:
  const PointwiseOperator& op_;
  const PointwiseKernel* kernel_;
  const FunctionKernel* function_;
};

/// The table, and the operator of that name; null where it has none.
std::vector<PointwiseOperator> pointwise_operators();
const PointwiseOperator* find_pointwise(std::string_view name);

// Its parts.
std::span<const PointwiseOperator> unary_operators();
std::span<const PointwiseOperator> binary_operators();
std::span<const PointwiseOperator> activation_operators();
std::span<const PointwiseOperator> gradient_operators();

/// The operator over tensors that are broadcast to one shape. Operands of other types are read as
/// FP32; the result is rounded once to `type`. On `threads` threads.
Tensor run_pointwise(const PointwiseOperator& op, std::span<const Tensor* const> operands,
                     const Parameters& parameters, const formats::Format& type, int threads);

}  // namespace guardbit::emulator::operators
