#pragma once

#include <bit>
#include <cassert>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <optional>
#include <ranges>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "formats/format.hpp"
#include "formats/tensors/tensor.hpp"

namespace guardbit::formats {

static_assert(std::endian::native == std::endian::little, "codes are stored little-endian");

/// Bits that one element takes in memory.
constexpr int storage_bits(const Format& format, Packing packing) {
  return packing == Packing::dense ? bits(format) : container_bits(format);
}

/// Product of the dimensions, or nothing when a dimension is negative or the non-zero ones multiply
/// past int64 (so that no partial product, and no stride computed from them, can overflow later).
constexpr std::optional<std::int64_t> checked_element_count(std::span<const std::int64_t> shape) {
  std::int64_t product = 1;
  bool empty = false;
  for (const std::int64_t dimension : shape) {
    if (dimension < 0) return std::nullopt;
    if (dimension == 0) {
      empty = true;
    } else if (product > std::numeric_limits<std::int64_t>::max() / dimension) {
      return std::nullopt;
    } else {
      product *= dimension;
    }
  }
  return empty ? 0 : product;
}

/// Bytes that `count` elements take, the last byte padded; nothing when that does not fit into
/// int64.
constexpr std::optional<std::uint64_t> byte_size(const Format& format, Packing packing,
                                                 std::uint64_t count) {
  constexpr auto limit = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
  const auto width = static_cast<std::uint64_t>(storage_bits(format, packing));
  // Eight elements take `width` whole bytes.
  const std::uint64_t rest = (count % 8 * width + 7) / 8;
  if (count / 8 > (limit - rest) / width) return std::nullopt;
  return count / 8 * width + rest;
}

/// A little-endian word at any address.
template <std::unsigned_integral Word>
constexpr Word load_word(const std::byte* bytes) {
  Word word = 0;
  if (std::is_constant_evaluated()) {
    for (std::size_t i = 0; i < sizeof(Word); ++i) {
      word = static_cast<Word>(word | std::to_integer<std::uint64_t>(bytes[i]) << (8 * i));
    }
  } else {
    std::memcpy(&word, bytes, sizeof(Word));
  }
  return word;
}

template <std::unsigned_integral Word>
constexpr void store_word(std::byte* bytes, Word word) {
  if (std::is_constant_evaluated()) {
    for (std::size_t i = 0; i < sizeof(Word); ++i) {
      bytes[i] = static_cast<std::byte>(static_cast<std::uint64_t>(word) >> (8 * i) & 0xFFU);
    }
  } else {
    std::memcpy(bytes, &word, sizeof(Word));
  }
}

/// The `width` bits that begin at bit `first`, counted from the lowest bit of the first byte: two
/// 4-bit codes per byte, low one first; four 6-bit codes in three bytes; eight 1-bit codes per
/// byte.
constexpr std::uint64_t load_bits(const std::byte* bytes, std::size_t first, int width) {
  std::uint64_t result = 0;
  for (int done = 0; done < width;) {
    const std::size_t position = first + static_cast<std::size_t>(done);
    const int offset = static_cast<int>(position % 8);
    const int taken = 8 - offset < width - done ? 8 - offset : width - done;
    const auto byte = std::to_integer<std::uint64_t>(bytes[position / 8]);
    result |= (byte >> offset & low_bits(taken)) << done;
    done += taken;
  }
  return result;
}

constexpr void store_bits(std::byte* bytes, std::size_t first, int width, std::uint64_t value) {
  for (int done = 0; done < width;) {
    const std::size_t position = first + static_cast<std::size_t>(done);
    const int offset = static_cast<int>(position % 8);
    const int taken = 8 - offset < width - done ? 8 - offset : width - done;
    const std::uint64_t mask = low_bits(taken) << offset;
    const auto byte = std::to_integer<std::uint64_t>(bytes[position / 8]);
    bytes[position / 8] = static_cast<std::byte>((byte & ~mask) | (value >> done << offset & mask));
    done += taken;
  }
}

/// Code number `index` of an array. Container bits outside the code are ignored.
constexpr std::uint64_t load_code(std::span<const std::byte> bytes, const Format& format,
                                  Packing packing, std::size_t index) {
  const int width = storage_bits(format, packing);
  assert(index < bytes.size() * 8 / static_cast<std::size_t>(width));
  if (packing == Packing::dense) {
    return load_bits(bytes.data(), index * static_cast<std::size_t>(width), width);
  }
  const std::byte* at = bytes.data() + index * (static_cast<std::size_t>(width) / 8);
  const std::uint64_t word = width == 8    ? load_word<std::uint8_t>(at)
                             : width == 16 ? load_word<std::uint16_t>(at)
                             : width == 32 ? load_word<std::uint32_t>(at)
                                           : load_word<std::uint64_t>(at);
  return word >> container_shift(format) & code_mask(format);
}

/// Writes code number `index`; container bits outside the code become zero.
constexpr void store_code(std::span<std::byte> bytes, const Format& format, Packing packing,
                          std::size_t index, std::uint64_t code) {
  const int width = storage_bits(format, packing);
  assert(index < bytes.size() * 8 / static_cast<std::size_t>(width));
  if (packing == Packing::dense) {
    store_bits(bytes.data(), index * static_cast<std::size_t>(width), width, code);
    return;
  }
  std::byte* at = bytes.data() + index * (static_cast<std::size_t>(width) / 8);
  const std::uint64_t word = (code & code_mask(format)) << container_shift(format);
  switch (width) {
    case 8: store_word(at, static_cast<std::uint8_t>(word)); break;
    case 16: store_word(at, static_cast<std::uint16_t>(word)); break;
    case 32: store_word(at, static_cast<std::uint32_t>(word)); break;
    default: store_word(at, word); break;
  }
}

/// Reads the first codes into all of `codes`, a contiguous range of unsigned integers.
template <std::ranges::contiguous_range Codes>
constexpr void unpack_codes(std::span<const std::byte> bytes, const Format& format, Packing packing,
                            Codes&& codes) {
  std::size_t index = 0;
  for (auto& code : codes) {
    code =
        static_cast<std::ranges::range_value_t<Codes>>(load_code(bytes, format, packing, index++));
  }
}

/// Writes all codes; `bytes` holds exactly byte_size(format, packing, size of codes), the padding
/// becomes zero.
template <std::ranges::contiguous_range Codes>
constexpr void pack_codes(const Codes& codes, const Format& format, Packing packing,
                          std::span<std::byte> bytes) {
  assert(byte_size(format, packing, std::ranges::size(codes)) == bytes.size());
  if (packing == Packing::dense && !bytes.empty()) bytes.back() = std::byte{0};
  std::size_t index = 0;
  for (const auto code : codes) store_code(bytes, format, packing, index++, code);
}

/// A tensor that owns its bytes.
inline Tensor owning_tensor(std::string name, const Format& format, Packing packing,
                            std::vector<std::int64_t> shape, std::vector<std::byte> bytes) {
  auto owner = std::make_shared<const std::vector<std::byte>>(std::move(bytes));
  return {std::move(name), format, packing, std::move(shape), *owner, owner};
}

/// A tensor that owns the given codes, packed.
template <std::ranges::contiguous_range Codes>
Tensor tensor_of_codes(std::string name, const Format& format, Packing packing,
                       std::vector<std::int64_t> shape, const Codes& codes) {
  std::vector<std::byte> bytes(byte_size(format, packing, std::ranges::size(codes)).value());
  pack_codes(codes, format, packing, bytes);
  return owning_tensor(std::move(name), format, packing, std::move(shape), std::move(bytes));
}

/// All codes of a tensor in row-major order.
inline std::vector<std::uint64_t> codes_of(const Tensor& tensor) {
  std::vector<std::uint64_t> codes(static_cast<std::size_t>(element_count(tensor.shape)));
  unpack_codes(tensor.bytes, tensor.format, tensor.packing, codes);
  return codes;
}

/// The same codes in another packing; the tensor itself when it already lies that way.
inline Tensor with_packing(const Tensor& tensor, Packing packing) {
  if (tensor.packing == packing) return tensor;
  const auto count = static_cast<std::size_t>(element_count(tensor.shape));
  std::vector<std::byte> bytes(byte_size(tensor.format, packing, count).value());
  for (std::size_t i = 0; i < count; ++i) {
    store_code(bytes, tensor.format, packing, i,
               load_code(tensor.bytes, tensor.format, tensor.packing, i));
  }
  return owning_tensor(tensor.name, tensor.format, packing, tensor.shape, std::move(bytes));
}

}  // namespace guardbit::formats
