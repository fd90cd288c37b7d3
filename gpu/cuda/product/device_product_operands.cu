#include "gpu/cuda/product/device_product.hpp"

namespace guardbit::gpu {

namespace {

using emulator::inputs::ElementDraw;
using emulator::inputs::OperandWords;
using formats::Format;

__device__ std::uint64_t load(const std::byte* codes, const Format& f, std::size_t index) {
  switch (formats::container_bits(f)) {
    case 8: return reinterpret_cast<const std::uint8_t*>(codes)[index];
    case 16: return reinterpret_cast<const std::uint16_t*>(codes)[index];
    case 32:
      return reinterpret_cast<const std::uint32_t*>(codes)[index] >> formats::container_shift(f);
    default: return reinterpret_cast<const std::uint64_t*>(codes)[index];
  }
}

__device__ void store(std::byte* words, int container_bits, std::size_t index, std::uint64_t word) {
  switch (container_bits) {
    case 8: reinterpret_cast<std::uint8_t*>(words)[index] = static_cast<std::uint8_t>(word); break;
    case 16:
      reinterpret_cast<std::uint16_t*>(words)[index] = static_cast<std::uint16_t>(word);
      break;
    case 32:
      reinterpret_cast<std::uint32_t*>(words)[index] = static_cast<std::uint32_t>(word);
      break;
    default: reinterpret_cast<std::uint64_t*>(words)[index] = word; break;
  }
}

__global__ void generate(const __grid_constant__ OperandWords words,
                         const __grid_constant__ ElementDraw elements, std::uint64_t seed,
                         int container_bits, std::byte* to, std::size_t count) {
  const std::size_t step = std::size_t{gridDim.x} * blockDim.x;
  for (std::size_t i = blockIdx.x * std::size_t{blockDim.x} + threadIdx.x; i < count; i += step)
    store(to, container_bits, i, emulator::inputs::matrix_element(words, elements, seed, i));
}

__global__ void count_unequal(const __grid_constant__ Format format, const std::byte* x,
                              const std::byte* y, std::size_t count, unsigned long long* unequal) {
  const std::size_t step = std::size_t{gridDim.x} * blockDim.x;
  unsigned long long mine = 0;
  for (std::size_t i = blockIdx.x * std::size_t{blockDim.x} + threadIdx.x; i < count; i += step)
    mine += load(x, format, i) != load(y, format, i) ? 1 : 0;
  if (mine != 0) atomicAdd(unequal, mine);
}

constexpr unsigned grid = 1024, threads = 256;

}  // namespace

void generate_operand(const Format& format, const ElementDraw& elements, std::uint64_t seed,
                      std::byte* to, std::size_t count) {
  generate<<<grid, threads>>>(emulator::inputs::operand_words(format), elements, seed,
                              formats::container_bits(format), to, count);
  check_cuda(cudaGetLastError(), "gemm --random");
}

std::uint64_t count_differences(const Format& format, const std::byte* x, const std::byte* y,
                                std::size_t count) {
  const DeviceBuffer unequal(sizeof(unsigned long long), "gemm");
  unequal.clear();
  count_unequal<<<grid, threads>>>(format, x, y, count, unequal.as<unsigned long long>());
  check_cuda(cudaGetLastError(), "gemm");
  std::uint64_t result = 0;
  unequal.read(std::as_writable_bytes(std::span(&result, 1)));
  return result;
}

}  // namespace guardbit::gpu
