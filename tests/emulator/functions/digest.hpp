#pragma once

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstdint>

#include "formats/support/parallel.hpp"

namespace guardbit::tests {

/// The digest of a function of FP32 codes over every `stride`th of them, as docs/FUNCTIONS.md says.
template <class Function>
std::uint64_t digest_of(const Function& function, std::uint64_t stride = 1) {
  std::atomic<std::uint64_t> total = 0;
  const std::uint64_t count = ((std::uint64_t{1} << 32) + stride - 1) / stride;
  formats::parallel_for(count, 1 << 16, 0, [&](std::size_t begin, std::size_t end) {
    std::uint64_t sum = 0;
    for (std::uint64_t i = begin; i < end; ++i) {
      const auto code = static_cast<std::uint32_t>(i * stride);
      std::uint32_t result = function(code);
      if ((result & 0x7fffffff) > 0x7f800000) result = 0x7fffffff;
      std::uint64_t h = (std::uint64_t{code} << 32 | result) * 0x9E3779B97F4A7C15;
      h = (h ^ h >> 29) * 0xBF58476D1CE4E5B9;
      sum += h ^ h >> 32;
    }
    total += sum;
  });
  return total;
}

/// A stride that meets every exponent and, in time, every segment.
inline constexpr std::uint64_t quick_stride = 65521;

/// The codes of a function of numbers.
template <class Function>
auto of_codes(const Function& function) {
  return [&function](std::uint32_t code) {
    return std::bit_cast<std::uint32_t>(function(std::bit_cast<float>(code)));
  };
}

}  // namespace guardbit::tests
