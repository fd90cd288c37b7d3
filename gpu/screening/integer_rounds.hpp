#pragma once

#include <bit>
#include <cstdint>

// A chain of integer operations of every kind that the integer pipelines have. Hosts and devices
// compute the same.
namespace guardbit::gpu {

/// The result of 16 rounds, each of which every later one depends on.
constexpr std::uint64_t integer_rounds(std::uint64_t x) {
  std::uint32_t a = static_cast<std::uint32_t>(x), b = static_cast<std::uint32_t>(x >> 32);
  for (std::uint32_t round = 0; round < 16; ++round) {
    const std::uint64_t product = std::uint64_t{a} * (b | 1U);
    const std::int64_t with_sign =
        std::int64_t{static_cast<std::int32_t>(a)} * static_cast<std::int32_t>(b);
    a += static_cast<std::uint32_t>(product >> 32) ^ (b >> (a & 15U));
    b = b * 0x9E3779B1U + static_cast<std::uint32_t>(with_sign >> 17);
    a ^= (b << (round & 7U)) | (a >> (25U - (round & 7U)));
    const auto bits = static_cast<std::uint32_t>(std::popcount(a ^ b)),
               zeros = static_cast<std::uint32_t>(std::countl_zero(b | 1U));
    b += bits * 0x01010101U + zeros;
    const auto signed_a = static_cast<std::int32_t>(a), signed_b = static_cast<std::int32_t>(b);
    const auto larger = static_cast<std::uint32_t>(signed_a > signed_b ? signed_a : signed_b),
               smaller = a < b ? a : b;
    a = (larger & ~0x00FF00FFU) | ((smaller >> 8U) & 0x00FF00FFU);
    b = (b & ~a) + (a % 0x3FFU) + round;
    x = x * 6364136223846793005ULL + (std::uint64_t{a} << 32 | b);
    a ^= static_cast<std::uint32_t>(x >> 29);
    b ^= static_cast<std::uint32_t>(x);
  }
  return x ^ (std::uint64_t{b} << 32 | a);
}

}  // namespace guardbit::gpu
