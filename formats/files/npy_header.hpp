#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace guardbit::formats {

/// The header of a .npy array (NEP 1 and its versions 2 and 3), as written there.
struct NpyHeader {
  /// byte order and type string
  std::string descr;
  bool fortran_order = false;
  std::vector<std::int64_t> shape;
};

/// Bytes that are enough to call npy_data_offset.
inline constexpr std::size_t npy_prefix_bytes = 12;

/// Where the array's data begins, from the first bytes of a file; Error when they are not those of
/// a .npy array or announce an unreasonable header.
std::size_t npy_data_offset(const std::string& where, std::span<const std::byte> prefix);

/// The header, from the bytes before the data offset. Structured and object dtypes are Errors.
NpyHeader parse_npy_header(const std::string& where, std::span<const std::byte> bytes);

/// Magic, version, header and padding, up to the data (a multiple of 64 bytes).
std::string npy_header_text(const NpyHeader& header);

}  // namespace guardbit::formats
