#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "formats/format.hpp"

namespace guardbit::formats {

/// How codes lie in memory.
enum class Packing : std::uint8_t {
  /// one code per 8-, 16-, 32- or 64-bit little-endian word (`container_bits`)
  container,
  /// sub-byte codes back to back, first element in the lowest bits
  dense,
};

/// An array of codes in row-major order, as a file holds it. `bytes` views memory that `owner`
/// keeps alive (a mapped file or a buffer).
struct Tensor {
  std::string name;
  Format format;
  Packing packing = Packing::container;
  std::vector<std::int64_t> shape;
  std::span<const std::byte> bytes;
  std::shared_ptr<const void> owner;
};

/// Product of the dimensions; 1 for a scalar.
constexpr std::int64_t element_count(std::span<const std::int64_t> shape) {
  std::int64_t count = 1;
  for (const std::int64_t dimension : shape) count *= dimension;
  return count;
}

}  // namespace guardbit::formats
