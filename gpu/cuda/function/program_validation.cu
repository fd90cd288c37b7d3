// Included before programs, so that they use the device's unit.
#include "gpu/cuda/function/device_number.cuh"
//
#include "emulator/functions/argument_pairs.hpp"
#include "emulator/functions/cuda/cuda_powers.hpp"
#include "emulator/functions/cuda/cuda_trigonometry.hpp"
#include "emulator/functions/function_digest.hpp"
#include "emulator/functions/unit/quotients.hpp"
#include "formats/support/error.hpp"
#include "gpu/cuda/function/program_validation.hpp"

// CUDA's functions of two numbers, each beside its program in the same kernel. Compiled with nvcc's
// own options, which allow contraction: programs use intrinsics, which are not contracted.
namespace guardbit::gpu {

namespace {

namespace cuda_math = emulator::cuda_math;
namespace mufu = emulator::mufu;

void check(cudaError_t status) {
  if (status != cudaSuccess) throw formats::Error("CUDA", cudaGetErrorString(status));
}

struct Sums {
  unsigned long long mismatches;
  ProgramMismatch example;
};

template <class Function, class Program>
__global__ void compare_pairs(Function function, Program program, std::uint64_t first,
                              std::uint64_t count, Sums* sums) {
  const std::uint64_t threads = std::uint64_t{gridDim.x} * blockDim.x;
  for (std::uint64_t i = std::uint64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count;
       i += threads) {
    const emulator::ArgumentPair pair = emulator::argument_pair(first + i);
    const std::uint32_t device = emulator::with_one_nan(
        __float_as_uint(function(__uint_as_float(pair.x), __uint_as_float(pair.y))));
    const std::uint32_t model =
        emulator::with_one_nan(bits(program(DeviceNumber::of(pair.x), DeviceNumber::of(pair.y))));
    if (device != model && atomicAdd(&sums->mismatches, 1ULL) == 0)
      sums->example = {pair.x, pair.y, device, model};
  }
}

template <class Function, class Program>
ProgramReport compared(const char* name, std::uint64_t count, Function function, Program program) {
  constexpr std::uint64_t at_once = std::uint64_t{1} << 32;
  Sums* sums = nullptr;
  check(cudaMallocManaged(&sums, sizeof *sums));
  *sums = {};
  for (std::uint64_t first = 0; first < count; first += at_once) {
    compare_pairs<<<132 * 16, 256>>>(function, program, first, std::min(at_once, count - first),
                                     sums);
    check(cudaGetLastError());
  }
  check(cudaDeviceSynchronize());
  const ProgramReport report = {name, count, sums->mismatches, sums->example};
  check(cudaFree(sums));
  return report;
}

}  // namespace

std::vector<ProgramReport> validate_programs(std::uint64_t pairs) {
  return {
      compared(
          "powf", pairs, [] __device__(float x, float y) { return powf(x, y); },
          [] __device__(DeviceNumber x, DeviceNumber y) { return cuda_math::powf(x, y); }),
      compared(
          "atan2f", pairs, [] __device__(float x, float y) { return atan2f(x, y); },
          [] __device__(DeviceNumber x, DeviceNumber y) { return cuda_math::atan2f(x, y); }),
      compared(
          "hypotf", pairs, [] __device__(float x, float y) { return hypotf(x, y); },
          [] __device__(DeviceNumber x, DeviceNumber y) { return cuda_math::hypotf(x, y); }),
      compared(
          "rhypotf", pairs, [] __device__(float x, float y) { return rhypotf(x, y); },
          [] __device__(DeviceNumber x, DeviceNumber y) { return cuda_math::rhypotf(x, y); }),
      compared(
          "__powf", pairs, [] __device__(float x, float y) { return __powf(x, y); },
          [] __device__(DeviceNumber x, DeviceNumber y) {
            return cuda_math::intrinsic_powf(x, y);
          }),
      compared(
          "__fdividef", pairs, [] __device__(float x, float y) { return __fdividef(x, y); },
          [] __device__(DeviceNumber x, DeviceNumber y) { return mufu::div_approx(x, y); }),
  };
}

}  // namespace guardbit::gpu
