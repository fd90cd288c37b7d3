#include "emulator/operators/kernels/array_math.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <string_view>

#include "emulator/functions/kernels/function_kernels.hpp"

namespace guardbit::emulator::operators {

namespace {

using Kernel = const FunctionKernel*;

Kernel kernel_of(std::string_view name) { return find_kernel(function_engines().front(), name); }

/// As codes, in parts that stay in the first cache.
void run(const FunctionKernel& kernel, std::span<float> numbers) {
  std::array<std::uint32_t, 1024> codes;
  for (std::size_t begin = 0; begin < numbers.size(); begin += codes.size()) {
    const auto part = numbers.subspan(begin, std::min(codes.size(), numbers.size() - begin));
    std::memcpy(codes.data(), part.data(), part.size_bytes());
    kernel.run(codes.data(), nullptr, codes.data(), part.size());
    std::memcpy(part.data(), codes.data(), part.size_bytes());
  }
}

}  // namespace

void exp_in_place(std::span<float> numbers) {
  static const Kernel kernel = kernel_of("expf");
  if (kernel != nullptr) return run(*kernel, numbers);
  for (float& x : numbers) x = exp_of(x);
}

void square_root_in_place(std::span<float> numbers) {
  static const Kernel kernel = kernel_of("sqrtf");
  if (kernel != nullptr) return run(*kernel, numbers);
  for (float& x : numbers) x = std::sqrt(x);
}

}  // namespace guardbit::emulator::operators
