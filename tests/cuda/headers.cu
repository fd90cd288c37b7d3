// The model's headers as device code. An instruction goes to the kernel by value: device code
// cannot index the host's tables. Compiled, not run.

#include <cstdint>
#include <span>

#include "emulator/model/dot.hpp"
#include "emulator/model/instruction.hpp"
#include "formats/arithmetic.hpp"
#include "formats/block_format.hpp"
#include "formats/codec.hpp"
#include "formats/format_catalogue.hpp"
#include "formats/random.hpp"
#include "gpu/inputs/generated_inputs.hpp"
#include "gpu/validation/coverage.hpp"

namespace guardbit::tests {

/// One output element per thread: K codes of a and b, an addend, one scale per K / scales elements.
__global__ void dot_products(emulator::MatrixInstruction instruction, int products, int scales,
                             const std::uint64_t* a, const std::uint64_t* b, const std::uint64_t* c,
                             const std::uint64_t* a_scale, const std::uint64_t* b_scale,
                             std::uint64_t* d) {
  const std::size_t i = blockIdx.x * blockDim.x + threadIdx.x;
  const auto k = static_cast<std::size_t>(products), s = static_cast<std::size_t>(scales);
  d[i] = emulator::dot(instruction, {std::span(a + i * k, k), std::span(b + i * k, k), c[i],
                                     std::span(a_scale + i * s, s), std::span(b_scale + i * s, s)});
}

/// The same with what happened on the way.
__global__ void observed_dot_products(emulator::MatrixInstruction instruction, int products,
                                      const std::uint64_t* a, const std::uint64_t* b,
                                      const std::uint64_t* c, std::uint64_t* d,
                                      std::uint32_t* events) {
  const std::size_t i = blockIdx.x * blockDim.x + threadIdx.x;
  const auto k = static_cast<std::size_t>(products);
  emulator::EventSet set;
  d[i] = emulator::observed_dot(instruction,
                                {std::span(a + i * k, k), std::span(b + i * k, k), c[i]}, set);
  events[i] = set.bits;
}

/// Inputs of a family, one element of each operand per thread.
__global__ void inputs(gpu::InputShape x, gpu::InputFamily family, std::uint64_t seed,
                       std::uint64_t* words) {
  const int t = static_cast<int>(blockIdx.x), i = static_cast<int>(threadIdx.x);
  std::uint64_t* const at = words + 4 * (blockIdx.x * blockDim.x + threadIdx.x);
  at[0] = gpu::a_word(x, family, seed, t, i, 0);
  at[1] = gpu::b_word(x, family, seed, t, 0, i);
  at[2] = gpu::c_word(x, family, seed, t, i, 0);
  at[3] = static_cast<std::uint64_t>(gpu::e_position(x, family, seed, t, i, 0));
}

/// Conversions between formats that are known only at run time.
__global__ void conversions(formats::Format from, formats::Format to, formats::Rounding rounding,
                            formats::Overflow overflow, std::uint64_t seed,
                            const std::uint64_t* codes, std::uint64_t* converted) {
  const std::size_t i = blockIdx.x * blockDim.x + threadIdx.x;
  converted[i] =
      formats::convert(from, codes[i], to, rounding, overflow, formats::random_bits(seed, i));
}

/// Scalar arithmetic, and formats by their names as constants.
__global__ void scalars(const std::uint64_t* x, const std::uint64_t* y, std::uint64_t* sum) {
  const std::size_t i = blockIdx.x * blockDim.x + threadIdx.x;
  constexpr formats::Format bf16 = formats::bf16;
  const formats::Value u = formats::decode(bf16, x[i]), v = formats::decode(bf16, y[i]);
  sum[i] = formats::encode(bf16, formats::fused_multiply_add(u, v, u));
}

// Also at compile time, on either side.
static_assert(formats::convert(formats::fp32, 0x3F800000, formats::fp16) == 0x3C00);

}  // namespace guardbit::tests
