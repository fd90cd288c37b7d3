#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "formats/conversion/kernels/conversion_kernels.hpp"
#include "formats/format.hpp"

// Kernels on codes of at most 8 bits: dense packing and tables.
namespace guardbit::formats::kernels {

/// Eight codes at a time: pairs, then pairs of pairs, move together.
template <class Lanes, int width>
void pack_loop(const std::byte* codes, std::byte* dense, std::size_t count) {
  constexpr unsigned w = width;
  for (std::size_t i = 0; i < count; i += 8) {
    std::uint64_t x = 0;
    std::memcpy(&x, codes + i, sizeof x);
    x = (x & 0x00FF00FF00FF00FF) | (x >> (8 - w) & 0x00FF00FF00FF00FF << w);
    x = (x & 0x0000FFFF0000FFFF) | (x >> (16 - 2 * w) & 0x0000FFFF0000FFFF << 2 * w);
    x = (x & 0x00000000FFFFFFFF) | (x >> (32 - 4 * w) & std::uint64_t{0xFFFFFFFF} << 4 * w);
    std::memcpy(dense + i / 8 * w, &x, w);
  }
}

template <class Lanes, int width>
void unpack_loop(const std::byte* dense, std::byte* codes, std::size_t count) {
  constexpr unsigned w = width;
  constexpr std::uint64_t four = low_bits(4 * width);
  constexpr std::uint64_t two = low_bits(2 * width) * 0x0000000100000001;
  constexpr std::uint64_t one = low_bits(width) * 0x0001000100010001;
  for (std::size_t i = 0; i < count; i += 8) {
    std::uint64_t x = 0;
    std::memcpy(&x, dense + i / 8 * w, w);
    x = (x & four) | (x & four << 4 * w) << (32 - 4 * w);
    x = (x & two) | (x & two << 2 * w) << (16 - 2 * w);
    x = (x & one) | (x & one << w) << (8 - w);
    std::memcpy(codes + i, &x, sizeof x);
  }
}

template <class Lanes>
void pack(int width, const std::byte* codes, std::byte* dense, std::size_t count) {
  switch (width) {
    case 1: return pack_loop<Lanes, 1>(codes, dense, count);
    case 2: return pack_loop<Lanes, 2>(codes, dense, count);
    case 3: return pack_loop<Lanes, 3>(codes, dense, count);
    case 4: return pack_loop<Lanes, 4>(codes, dense, count);
    case 5: return pack_loop<Lanes, 5>(codes, dense, count);
    case 6: return pack_loop<Lanes, 6>(codes, dense, count);
    default: return pack_loop<Lanes, 7>(codes, dense, count);
  }
}

template <class Lanes>
void unpack(int width, const std::byte* dense, std::byte* codes, std::size_t count) {
  switch (width) {
    case 1: return unpack_loop<Lanes, 1>(dense, codes, count);
    case 2: return unpack_loop<Lanes, 2>(dense, codes, count);
    case 3: return unpack_loop<Lanes, 3>(dense, codes, count);
    case 4: return unpack_loop<Lanes, 4>(dense, codes, count);
    case 5: return unpack_loop<Lanes, 5>(dense, codes, count);
    case 6: return unpack_loop<Lanes, 6>(dense, codes, count);
    default: return unpack_loop<Lanes, 7>(dense, codes, count);
  }
}

template <class Lanes, class Container>
void look_up_loop(const ByteTable& table, const std::byte* codes, std::byte* results,
                  std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    const auto result = static_cast<Container>(table[std::to_integer<std::size_t>(codes[i])]);
    std::memcpy(results + i * sizeof result, &result, sizeof result);
  }
}

template <class Lanes>
void look_up(const ByteTable& table, int container, const std::byte* codes, std::byte* results,
             std::size_t count, bool /*stream*/) {
  if (container == 8) return look_up_loop<Lanes, std::uint8_t>(table, codes, results, count);
  if (container == 16) return look_up_loop<Lanes, std::uint16_t>(table, codes, results, count);
  look_up_loop<Lanes, std::uint32_t>(table, codes, results, count);
}

}  // namespace guardbit::formats::kernels
