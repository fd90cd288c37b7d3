#pragma once

#include <cstdint>

// The digest of a function of one number: 2^32 results compared by one word (docs/FUNCTIONS.md).
// Digests of conversions are others (gpu/conversions/conversion_digest.hpp).
namespace guardbit::emulator {

/// A NaN of FP32 as the one that digests know.
constexpr std::uint32_t with_one_nan(std::uint32_t code) {
  return (code & 0x7fffffff) > 0x7f800000 ? 0x7fffffff : code;
}

/// What one input adds to a digest, the sum of all modulo 2^64: of the input's number, which is its
/// code, and the code of its result.
constexpr std::uint64_t function_digest_share(std::uint64_t number, std::uint32_t result) {
  std::uint64_t h = (number << 32 | result) * 0x9E3779B97F4A7C15;
  h = (h ^ h >> 29) * 0xBF58476D1CE4E5B9;
  return h ^ h >> 32;
}

/// Quick digests take every such input. The stride meets every exponent and, in time, every
/// segment.
inline constexpr std::uint64_t quick_digest_stride = 65521;

}  // namespace guardbit::emulator
