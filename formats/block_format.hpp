#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

#include "formats/arithmetic.hpp"
#include "formats/codec.hpp"
#include "formats/format_catalogue.hpp"

namespace guardbit::formats {

/// A block format is data: `block_size` consecutive elements share one scale, and a tensor may have
/// one more. An element stands for element * 2^element_exponent * scale * tensor scale. How scales
/// are chosen is not part of the format.
struct BlockFormat {
  Format element;
  /// implied scale of the elements (MXINT8 counts in 2^-6)
  int element_exponent = 0;
  Format scale;
  int block_size = 0;
  std::optional<Format> tensor_scale;

  friend constexpr bool operator==(const BlockFormat&, const BlockFormat&) = default;
};

inline constexpr BlockFormat mxfp8_e4m3 = {e4m3, 0, e8m0, 32, {}};
inline constexpr BlockFormat mxfp8_e5m2 = {e5m2, 0, e8m0, 32, {}};
inline constexpr BlockFormat mxfp6_e3m2 = {e3m2, 0, e8m0, 32, {}};
inline constexpr BlockFormat mxfp6_e2m3 = {e2m3, 0, e8m0, 32, {}};
inline constexpr BlockFormat mxfp4 = {e2m1, 0, e8m0, 32, {}};
inline constexpr BlockFormat mxint8 = {int8, -6, e8m0, 32, {}};
inline constexpr BlockFormat nvfp4 = {e2m1, 0, ue4m3, 16, fp32};

/// One line of the table of block formats.
struct BlockFormatEntry {
  std::string_view name;
  BlockFormat format;
  /// comma separated
  std::string_view aliases;
  /// the document that defines it
  std::string_view standard;
};

inline constexpr std::array block_format_catalogue = {
    BlockFormatEntry{"mxfp8_e4m3", mxfp8_e4m3, "mxfp8", "OCP Microscaling Formats (MX) 1.0"},
    BlockFormatEntry{"mxfp8_e5m2", mxfp8_e5m2, "", "OCP Microscaling Formats (MX) 1.0"},
    BlockFormatEntry{"mxfp6_e3m2", mxfp6_e3m2, "", "OCP Microscaling Formats (MX) 1.0"},
    BlockFormatEntry{"mxfp6_e2m3", mxfp6_e2m3, "", "OCP Microscaling Formats (MX) 1.0"},
    BlockFormatEntry{"mxfp4", mxfp4, "mxfp4_e2m1", "OCP Microscaling Formats (MX) 1.0"},
    BlockFormatEntry{"mxint8", mxint8, "", "OCP Microscaling Formats (MX) 1.0"},
    BlockFormatEntry{"nvfp4", nvfp4, "",
                     "PTX ISA .kind::mxf4nvf4 with .ue4m3 scales; NVIDIA cuBLAS"},
};

/// The block format of that name or alias (any case).
std::optional<BlockFormat> find_block_format(std::string_view name);

/// The name that the catalogue gives the format; empty where it has none such.
constexpr std::string_view name_of(const BlockFormat& format) {
  for (const BlockFormatEntry& entry : block_format_catalogue) {
    if (entry.format == format) return entry.name;
  }
  return {};
}

/// Blocks, and so scales, that a row of `length` elements takes; the last block may be partial.
constexpr std::int64_t block_count(const BlockFormat& format, std::int64_t length) {
  return length / format.block_size + (length % format.block_size != 0 ? 1 : 0);
}

/// Bytes of the densely packed elements of a row (first element in the lowest bits); a row ends on
/// a whole byte.
constexpr std::int64_t element_bytes(const BlockFormat& format, std::int64_t length) {
  const std::int64_t width = bits(format.element);
  return length / 8 * width + (length % 8 * width + 7) / 8;
}

/// Bytes of the scales of a row.
constexpr std::int64_t scale_bytes(const BlockFormat& format, std::int64_t length) {
  return block_count(format, length) * (container_bits(format.scale) / 8);
}

/// Bits that one element of a full block costs, its share of the scale included, in 1/block_size of
/// a bit.
constexpr int bits_per_block(const BlockFormat& format) {
  return format.block_size * bits(format.element) + container_bits(format.scale);
}

/// The number that an element of a block stands for, exactly, before the tensor scale. NaN when
/// either is.
constexpr Value decode_element(const BlockFormat& format, std::uint64_t element,
                               std::uint64_t scale) {
  const Unrounded product = multiply(decode(format.element, element), decode(format.scale, scale));
  // Significands of at most 8 and 4 bits: the product fits a Value.
  return {product.kind, product.negative,
          product.kind == Kind::finite ? product.exponent + format.element_exponent : 0,
          static_cast<std::uint64_t>(product.significand)};
}

/// The same times the tensor scale.
constexpr Value decode_element(const BlockFormat& format, std::uint64_t element,
                               std::uint64_t scale, const Value& tensor_scale) {
  const Unrounded product = multiply(decode_element(format, element, scale), tensor_scale);
  return {product.kind, product.negative, product.exponent,
          static_cast<std::uint64_t>(product.significand)};
}

}  // namespace guardbit::formats
