#pragma once

#include <algorithm>
#include <cstddef>
#include <functional>
#include <span>

namespace guardbit::formats {

/// Takes the bytes of an array, piece by piece, in any order and from any thread: these lie from
/// byte `at` on.
using ByteWriter = std::function<void(std::size_t at, std::span<const std::byte> bytes)>;

/// A writer into memory that holds the whole array.
inline ByteWriter writer_to(std::span<std::byte> memory) {
  return [memory](std::size_t at, std::span<const std::byte> bytes) {
    std::ranges::copy(bytes, memory.subspan(at, bytes.size()).begin());
  };
}

}  // namespace guardbit::formats
