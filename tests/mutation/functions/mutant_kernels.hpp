#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

// CUDA's programs with the changes of program_change, for many operands at a time. Nothing of
// functions is included: kernels compile that for their instruction set.
namespace guardbit::tests {

struct MutantKernel {
  /// of the function in the catalogue
  std::string_view name;
  /// A count of whole vectors of at most 16. A second result is written where there is one.
  void (*run)(const std::array<const std::uint32_t*, 4>& operands,
              const std::array<std::uint32_t*, 2>& results, std::size_t count) = nullptr;
};
/// Empty where the CPU has no AVX2.
std::span<const MutantKernel> mutant_kernels();
/// Null where there is none of that name.
const MutantKernel* find_mutant_kernel(std::string_view name);

/// Empty where the tests were built for another processor.
extern const std::span<const MutantKernel> kernels_of_avx2, kernels_of_avx512;

}  // namespace guardbit::tests
