#include <cuda_runtime.h>

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <set>
#include <string>
#include <vector>

#include "emulator/inputs/input_draw.hpp"
#include "gpu/cuda/function/device_functions.hpp"

// Records what a device computes: prints digests of every function, and with a folder as its first
// word writes a sample of results there, one file for each list of functions. Further words are
// names of functions, and only those are recorded.
namespace guardbit::gpu {
namespace {

void check(cudaError_t status) {
  if (status == cudaSuccess) return;
  std::fprintf(stderr, "guardbit_record_functions: CUDA: %s\n", cudaGetErrorString(status));
  std::exit(2);
}

/// Numbers of inputs for a sample: all of 2^16; else half at a stride, half of exponents about 0.
std::vector<std::uint64_t> sample_of(const DeviceFunction& function) {
  std::vector<std::uint64_t> numbers;
  if (function.input_bits == 16) {
    for (std::uint64_t i = 0; i < 1U << 16; ++i) numbers.push_back(i);
  } else {
    for (std::uint64_t i = 0; i < 8192; ++i) numbers.push_back(i * 524309 % (1ULL << 32));
    for (std::uint64_t i = 0; i < 8192; ++i) {
      const std::uint64_t random = emulator::inputs::mixed(i + 0x9E3779B97F4A7C15U);
      const std::uint64_t exponent = 127 - 14 + (random >> 32) % 24;
      numbers.push_back((random & 0x807fffff) | exponent << 23);
    }
  }
  return numbers;
}

void write_sample(const DeviceFunction& function, std::FILE* file) {
  const std::vector<std::uint64_t> numbers = sample_of(function);
  const auto count = static_cast<std::uint32_t>(numbers.size());
  std::uint64_t* inputs = nullptr;
  std::uint32_t* outputs = nullptr;
  check(cudaMalloc(&inputs, count * sizeof *inputs));
  check(cudaMalloc(&outputs, count * sizeof *outputs));
  check(cudaMemcpy(inputs, numbers.data(), count * sizeof *inputs, cudaMemcpyHostToDevice));
  function.results(inputs, count, outputs);
  std::vector<std::uint32_t> results(count);
  check(cudaMemcpy(results.data(), outputs, count * sizeof *outputs, cudaMemcpyDeviceToHost));
  std::fprintf(file, "%s %u\n", function.name.c_str(), count);
  std::fwrite(results.data(), sizeof results[0], count, file);
  check(cudaFree(inputs));
  check(cudaFree(outputs));
}

void record(const char* compile, const std::vector<DeviceFunction>& functions, const char* folder,
            const std::set<std::string>& names) {
  std::FILE* file = nullptr;
  if (folder != nullptr) {
    file = std::fopen((std::string(folder) + "/" + compile + ".bin").c_str(), "wb");
    if (file == nullptr) {
      std::perror(folder);
      std::exit(2);
    }
  }
  FunctionDigests* digests = nullptr;
  check(cudaMalloc(&digests, sizeof *digests));
  for (const DeviceFunction& function : functions) {
    if (!names.empty() && !names.contains(function.name)) continue;
    check(cudaMemset(digests, 0, sizeof *digests));
    function.digests(std::uint64_t{1} << function.input_bits, digests);
    check(cudaDeviceSynchronize());
    FunctionDigests sums;
    check(cudaMemcpy(&sums, digests, sizeof sums, cudaMemcpyDeviceToHost));
    std::printf("%s\t%s\t%d\t%d\t%016" PRIx64 "\t%016" PRIx64 "\n", compile, function.name.c_str(),
                function.operands, function.input_bits, sums.whole, sums.quick);
    std::fflush(stdout);
    if (file != nullptr) write_sample(function, file);
  }
  check(cudaFree(digests));
  if (file != nullptr) std::fclose(file);
}

}  // namespace
}  // namespace guardbit::gpu

int main(int count, char** words) {
  using namespace guardbit::gpu;
  const char* const folder = count > 1 ? words[1] : nullptr;
  const std::set<std::string> names(words + std::min(count, 2), words + count);
  cudaDeviceProp properties{};
  check(cudaGetDeviceProperties(&properties, 0));
  std::printf("# %s, CUDA %d.%d: list, function, operands, bits of inputs, digest, quick digest\n",
              properties.name, CUDART_VERSION / 1000, CUDART_VERSION % 1000 / 10);
  record("ptx", ptx_functions(), folder, names);
  record("default", cuda_functions_default(), folder, names);
  record("ftz", cuda_functions_flushed(), folder, names);
  record("fast", cuda_functions_fast(), folder, names);
}
