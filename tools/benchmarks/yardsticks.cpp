#include "tools/benchmarks/yardsticks.hpp"

#include <array>
#include <cstring>

#include "emulator/engine/cpu.hpp"
#include "experiments/training/eigen_product.hpp"
#include "tools/benchmarks/multiply_adds.hpp"
#include "tools/benchmarks/native_cpu.hpp"

namespace guardbit::tools {

namespace {

namespace eigen_baseline = experiments::eigen_baseline;

constexpr ProductYardstick baseline = {"baseline", eigen_baseline::sgemm, eigen_baseline::dgemm,
                                       functions_baseline::multiply_adds_fp32,
                                       functions_baseline::multiply_adds_fp64};

#if defined(__x86_64__)
namespace eigen_avx512 = experiments::eigen_avx512;
namespace eigen_avx2 = experiments::eigen_avx2;

constexpr ProductYardstick avx512 = {"avx512", eigen_avx512::sgemm, eigen_avx512::dgemm,
                                     functions_avx512::multiply_adds_fp32,
                                     functions_avx512::multiply_adds_fp64};
constexpr ProductYardstick avx2 = {"avx2", eigen_avx2::sgemm, eigen_avx2::dgemm,
                                   functions_avx2::multiply_adds_fp32,
                                   functions_avx2::multiply_adds_fp64};
#endif

#if defined(GUARDBIT_NATIVE)
namespace eigen_native = experiments::eigen_native;

constexpr ProductYardstick native = {"native", eigen_native::sgemm, eigen_native::dgemm, nullptr,
                                     nullptr};
#endif

}  // namespace

const ProductYardstick& widest_eigen() {
#if defined(__x86_64__)
  if (emulator::cpu::features().avx512_kernels) return avx512;
  if (emulator::cpu::features().avx2_kernels) return avx2;
#endif
  return baseline;
}

const ProductYardstick* native_eigen() {
#if defined(GUARDBIT_NATIVE)
  static const bool may_run = native_obstacle().empty();
  if (may_run) return &native;
#endif
  return nullptr;
}

const ProductYardstick& eigen_beside(std::string_view engine) {
#if defined(__x86_64__)
  if (engine == "avx2" && emulator::cpu::features().avx2_kernels) return avx2;
#else
  static_cast<void>(engine);
#endif
  return widest_eigen();
}

std::uint64_t read_all(std::span<const std::byte> bytes) {
  std::array<std::uint64_t, 32> sums{};
  constexpr std::size_t step = sizeof(sums);
  for (std::size_t at = 0; at + step <= bytes.size(); at += step) {
    std::array<std::uint64_t, 32> words;
    std::memcpy(words.data(), bytes.data() + at, step);
    for (std::size_t i = 0; i < sums.size(); ++i) sums[i] += words[i];
  }
  std::uint64_t total = 0;
  for (const std::uint64_t sum : sums) total += sum;
  return total;
}

}  // namespace guardbit::tools
