#pragma once

#include "formats/format_catalogue.hpp"
#include "gpu/cuda/conversion/device_conversions.hpp"

// The kernels that run conversions on a device, one thread for many inputs.
namespace guardbit::gpu {

inline constexpr int conversion_block = 256;
/// A multiple of digest_slices, so that a thread stays in one slice.
inline constexpr std::uint64_t most_conversion_threads = std::uint64_t{1} << 20;

/// The source registers of an input: two of one element each, or one that holds all.
template <class Conversion>
__device__ std::uint64_t convert_on_device(int variant, const ConversionInput& input) {
  // Opaque, so that the compiler does not make one copy of the loop for each instruction.
  asm volatile("mov.b32 %0, %0;" : "+r"(variant));
  if constexpr (Conversion::two_sources) {
    return Conversion::run(variant, input.high, input.low);
  } else if constexpr (Conversion::elements == 2) {
    const int width = formats::container_bits(Conversion::source);
    return Conversion::run(variant, input.low | input.high << width, 0);
  } else {
    return Conversion::run(variant, input.low, 0);
  }
}

template <class Conversion>
__global__ void __launch_bounds__(conversion_block) compare_conversions(ConversionLaunch launch) {
  // Constants of the kernel: the model folds.
  ConversionRule rule = launch.rule;
  rule.source = Conversion::source;
  rule.destination = Conversion::destination;
  rule.elements = Conversion::elements;
  const std::uint64_t threads = std::uint64_t{gridDim.x} * conversion_block;
  const std::uint64_t thread = std::uint64_t{blockIdx.x} * conversion_block + threadIdx.x;
  std::uint64_t digest = 0, mismatches = 0, first_mismatch = ~std::uint64_t{0};
  for (std::uint64_t i = thread; i < launch.count; i += threads) {
    const std::uint64_t index = launch.begin + i;
    const ConversionInput input = conversion_input(rule, index);
    const std::uint64_t output = convert_on_device<Conversion>(launch.variant, input);
    digest += digest_share(index, output);
    if (output != convert_by_model(rule, input)) {
      ++mismatches;
      if (index < first_mismatch) first_mismatch = index;
    }
    if (launch.outputs != nullptr) launch.outputs[i] = output;
  }
  const auto slice = static_cast<std::uint32_t>((launch.begin + thread) % digest_slices);
  using Word = unsigned long long;
  atomicAdd(reinterpret_cast<Word*>(&launch.tally->digests[slice]), Word{digest});
  if (mismatches == 0) return;
  atomicAdd(reinterpret_cast<Word*>(&launch.tally->mismatches), Word{mismatches});
  atomicMin(reinterpret_cast<Word*>(&launch.tally->first_mismatch[slice]), Word{first_mismatch});
}

template <class Conversion>
void launch_conversion(const ConversionLaunch& launch) {
  const std::uint64_t threads =
      launch.count < most_conversion_threads ? launch.count : most_conversion_threads;
  const auto blocks = static_cast<unsigned>((threads + conversion_block - 1) / conversion_block);
  compare_conversions<Conversion><<<blocks, conversion_block>>>(launch);
}

}  // namespace guardbit::gpu
