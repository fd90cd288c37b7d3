#pragma once

// Vectors of what stands in 16 neighbouring lines of an operand. Included behind `#pragma GCC
// target`: they become whatever the instruction set has.

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace guardbit::emulator::fused {

using Bytes = std::int8_t __attribute__((vector_size(16)));
using Shorts = std::int16_t __attribute__((vector_size(32)));
using Integers = std::int32_t __attribute__((vector_size(64)));
using Words = std::uint32_t __attribute__((vector_size(64)));
using Floats = float __attribute__((vector_size(64)));
using Longs = std::uint64_t __attribute__((vector_size(64)));
using Doubles = double __attribute__((vector_size(128)));

template <class Vector>
[[gnu::always_inline]] inline void store(void* to, const Vector& v) {
  std::memcpy(to, &v, sizeof v);
}
template <class Vector>
[[gnu::always_inline]] inline Vector load(const void* from) {
  Vector v;
  std::memcpy(&v, from, sizeof v);
  return v;
}

/// Transposes 16 vectors of 16 words.
[[gnu::always_inline]] inline void transpose(std::array<Words, 16>& x) {
  const auto exchange = [&x](std::size_t distance, const auto& mix) {
    for (std::size_t i = 0; i < 16; ++i) {
      if ((i & distance) != 0) continue;
      mix(x[i], x[i + distance]);
    }
  };
  exchange(8, [](Words& p, Words& q) {
    const Words low =
        __builtin_shufflevector(p, q, 0, 1, 2, 3, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23);
    q = __builtin_shufflevector(p, q, 8, 9, 10, 11, 12, 13, 14, 15, 24, 25, 26, 27, 28, 29, 30, 31);
    p = low;
  });
  exchange(4, [](Words& p, Words& q) {
    const Words low =
        __builtin_shufflevector(p, q, 0, 1, 2, 3, 16, 17, 18, 19, 8, 9, 10, 11, 24, 25, 26, 27);
    q = __builtin_shufflevector(p, q, 4, 5, 6, 7, 20, 21, 22, 23, 12, 13, 14, 15, 28, 29, 30, 31);
    p = low;
  });
  exchange(2, [](Words& p, Words& q) {
    const Words low =
        __builtin_shufflevector(p, q, 0, 1, 16, 17, 4, 5, 20, 21, 8, 9, 24, 25, 12, 13, 28, 29);
    q = __builtin_shufflevector(p, q, 2, 3, 18, 19, 6, 7, 22, 23, 10, 11, 26, 27, 14, 15, 30, 31);
    p = low;
  });
  exchange(1, [](Words& p, Words& q) {
    const Words low =
        __builtin_shufflevector(p, q, 0, 16, 2, 18, 4, 20, 6, 22, 8, 24, 10, 26, 12, 28, 14, 30);
    q = __builtin_shufflevector(p, q, 1, 17, 3, 19, 5, 21, 7, 23, 9, 25, 11, 27, 13, 29, 15, 31);
    p = low;
  });
}

/// Sixteen neighbouring containers as words.
[[gnu::always_inline]] inline Words load_codes(const std::byte* from, int container_bytes) {
  using Bytes16 = std::uint8_t __attribute__((vector_size(16)));
  using Shorts16 = std::uint16_t __attribute__((vector_size(32)));
  if (container_bytes == 1)  // GCC 12 takes bytes apart one by one where words are the aim
    return __builtin_convertvector(__builtin_convertvector(load<Bytes16>(from), Shorts16), Words);
  if (container_bytes == 2) return __builtin_convertvector(load<Shorts16>(from), Words);
  return load<Words>(from);
}

}  // namespace guardbit::emulator::fused
