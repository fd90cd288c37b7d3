#pragma once

#include "emulator/engine/cpu.hpp"
#include "emulator/functions/numbers/host_number.hpp"
#include "emulator/operators/kernels/activation_expressions.hpp"
#include "emulator/operators/pointwise/pointwise.hpp"

// An expression over numbers as a row of the table of pointwise operators. An Expression is an
// object without state that takes one to three numbers and the parameters.
namespace guardbit::emulator::operators {

using expressions::computed_number;

template <class Expression>
inline constexpr int operands_of =
    std::is_invocable_v<Expression, HostNumber, const Parameters&>               ? 1
    : std::is_invocable_v<Expression, HostNumber, HostNumber, const Parameters&> ? 2
                                                                                 : 3;

template <class Expression>
[[gnu::always_inline]] inline void run_each(const PointwiseOperands& operands,
                                            const Parameters& parameters,
                                            std::span<float> results) {
  const float *x = operands.numbers[0].data(), *y = operands.numbers[1].data(),
              *z = operands.numbers[2].data();
  // Copies, which the results cannot be parts of, so that loops run in vectors.
  float* __restrict all = results.data();
  const Parameters own = parameters;
  for (std::size_t i = 0; i < results.size(); ++i) {
    using Number = HostNumber;
    if constexpr (operands_of<Expression> == 1) {
      all[i] = Number(Expression()(Number(x[i]), own)).number();
    } else if constexpr (operands_of<Expression> == 2) {
      all[i] = Number(Expression()(Number(x[i]), Number(y[i]), own)).number();
    } else {
      all[i] = Number(Expression()(Number(x[i]), Number(y[i]), Number(z[i]), own)).number();
    }
  }
}

#if defined(__x86_64__)
// Fused steps are the CPU's own instruction here, not a call.
template <class Expression>
[[gnu::target("avx2,fma"), gnu::flatten]] void run_on_x86(const PointwiseOperands& operands,
                                                          const Parameters& parameters,
                                                          std::span<float> results) {
  run_each<Expression>(operands, parameters, results);
}
template <class Expression>
void run_expression(const PointwiseOperands& operands, const Parameters& parameters,
                    std::span<float> results) {
  if (cpu::features().avx2_kernels) return run_on_x86<Expression>(operands, parameters, results);
  run_each<Expression>(operands, parameters, results);
}
#else
template <class Expression>
void run_expression(const PointwiseOperands& operands, const Parameters& parameters,
                    std::span<float> results) {
  run_each<Expression>(operands, parameters, results);
}
#endif

template <class Expression>
constexpr PointwiseOperator pointwise(std::string_view name, std::string_view text, Expression) {
  return {.name = name,
          .operands = operands_of<Expression>,
          .expression = text,
          .run = run_expression<Expression>};
}
template <class Expression>
constexpr PointwiseOperator choosing(std::string_view name, std::string_view text,
                                     Expression expression) {
  PointwiseOperator op = pointwise(name, text, expression);
  op.chosen_nan = ChosenNan::kept;
  return op;
}
template <class Expression>
constexpr PointwiseOperator choosing_in_fp32(std::string_view name, std::string_view text,
                                             Expression expression) {
  PointwiseOperator op = pointwise(name, text, expression);
  op.chosen_nan = ChosenNan::kept_in_fp32;
  return op;
}
template <class Expression>
constexpr PointwiseOperator comparing(std::string_view name, std::string_view text,
                                      Expression expression) {
  PointwiseOperator op = pointwise(name, text, expression);
  op.is_boolean = true;
  return op;
}

}  // namespace guardbit::emulator::operators
