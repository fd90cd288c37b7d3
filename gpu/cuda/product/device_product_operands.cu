#include "formats/codec.hpp"
#include "formats/random.hpp"
#include "gpu/cuda/product/device_product.hpp"

namespace guardbit::gpu {

namespace {

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

__device__ void store(std::byte* codes, const Format& f, std::size_t index, std::uint64_t code) {
  switch (formats::container_bits(f)) {
    case 8: reinterpret_cast<std::uint8_t*>(codes)[index] = static_cast<std::uint8_t>(code); break;
    case 16:
      reinterpret_cast<std::uint16_t*>(codes)[index] = static_cast<std::uint16_t>(code);
      break;
    case 32:
      reinterpret_cast<std::uint32_t*>(codes)[index] =
          static_cast<std::uint32_t>(code << formats::container_shift(f));
      break;
    default: reinterpret_cast<std::uint64_t*>(codes)[index] = code; break;
  }
}

__device__ float normal_number(std::uint32_t x, std::uint32_t y) {
  const float u = (static_cast<float>(x >> 8) + 0.5F) * 0x1p-24F;
  return sqrtf(-2 * logf(u)) * cospif(static_cast<float>(y >> 8) * 0x1p-23F);
}

__device__ std::uint64_t code_of_number(const Format& f, float x) {
  formats::Overflow overflow;
  overflow.finite = formats::Overflow::Finite::saturate;
  constexpr Format fp32 = formats::floating(8, 23);
  if (formats::is_integer(f)) x *= 8;
  return formats::encode(f, formats::decode(fp32, __float_as_uint(x)),
                         formats::Rounding::nearest_even, overflow);
}

__device__ std::uint64_t finite_code(const Format& f, std::uint64_t bits) {
  const std::uint64_t magnitude = bits & formats::magnitude_mask(f);
  if (formats::is_integer(f) || magnitude <= formats::max_finite_code(f))
    return bits & formats::code_mask(f);
  return (bits & formats::sign_mask(f)) | magnitude % (formats::max_finite_code(f) + 1);
}

__device__ std::uint64_t extreme_code(const Format& f, std::uint32_t choice) {
  switch (choice % 6) {
    case 0:
      return formats::has_infinity(f) ? formats::infinity_code(f) : formats::max_finite_code(f);
    case 1: return formats::magnitude_mask(f);
    case 2: return 0;
    case 3: return formats::max_finite_code(f);
    case 4: return 1;
    default: return formats::min_normal_code(f);
  }
}

__device__ std::uint64_t operand_code(const Format& f, OperandFamily family, std::uint64_t seed,
                                      std::size_t index) {
  const auto w = formats::philox4x32(
      {static_cast<std::uint32_t>(index), static_cast<std::uint32_t>(index >> 32),
       static_cast<std::uint32_t>(family), 0x67656D6D},
      {static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32)});
  const std::uint64_t bits = std::uint64_t{w[0]} << 32 | w[1];
  const std::uint64_t sign = (w[2] & 1) != 0 ? formats::sign_mask(f) : 0;
  const std::uint64_t fraction =
      (w[2] & 2) != 0 ? formats::fraction_mask(f) : bits & formats::fraction_mask(f);
  if (formats::is_integer(f) && family != OperandFamily::normal)
    return bits & formats::code_mask(f);
  switch (family) {
    case OperandFamily::raw: return bits & formats::code_mask(f);
    case OperandFamily::finite: return finite_code(f, bits);
    case OperandFamily::narrow:
      return sign |
             static_cast<std::uint64_t>(f.bias - static_cast<int>(w[3] % 3)) << f.fraction_bits |
             fraction;
    case OperandFamily::sparse: return w[3] % 100 < 97 ? sign : finite_code(f, bits);
    case OperandFamily::tiny:
      return sign | (bits & formats::low_bits(f.fraction_bits + 1 + static_cast<int>(w[3] & 1)));
    case OperandFamily::specials:
      if (w[3] % 500 == 0) return sign | extreme_code(f, w[3] / 500);
      break;
    case OperandFamily::relu:
      if ((w[3] & 1) != 0) return 0;
      break;
    case OperandFamily::normal: break;
  }
  return code_of_number(f, normal_number(w[0], w[1]));
}

__global__ void generate(const __grid_constant__ Format format, OperandFamily family,
                         std::uint64_t seed, std::byte* to, std::size_t count) {
  const std::size_t step = std::size_t{gridDim.x} * blockDim.x;
  for (std::size_t i = blockIdx.x * std::size_t{blockDim.x} + threadIdx.x; i < count; i += step)
    store(to, format, i, operand_code(format, family, seed, i));
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

void generate_operand(const Format& format, OperandFamily family, std::uint64_t seed, std::byte* to,
                      std::size_t count) {
  generate<<<grid, threads>>>(format, family, seed, to, count);
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
