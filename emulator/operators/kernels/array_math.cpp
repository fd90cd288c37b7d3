#include "emulator/operators/kernels/array_math.hpp"

#include <cmath>
#include <string_view>

#include "emulator/functions/kernels/function_kernels.hpp"

namespace guardbit::emulator::operators {

namespace {

using Kernel = const FunctionKernel*;

Kernel kernel_of(std::string_view name) { return find_kernel(function_engines().front(), name); }

}  // namespace

void exp_in_place(std::span<float> numbers) {
  static const Kernel kernel = kernel_of("expf");
  if (kernel != nullptr) return run_on_numbers(*kernel, numbers, {}, numbers);
  for (float& x : numbers) x = exp_of(x);
}

void exp_in_place(std::span<double> numbers) {
  for (double& x : numbers) x = exp_of(x);
}

void square_root_in_place(std::span<float> numbers) {
  static const Kernel kernel = kernel_of("sqrtf");
  if (kernel != nullptr) return run_on_numbers(*kernel, numbers, {}, numbers);
  for (float& x : numbers) x = std::sqrt(x);
}

}  // namespace guardbit::emulator::operators
