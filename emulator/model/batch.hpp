#pragma once

#include <cstddef>
#include <cstdint>

#include "emulator/model/instruction.hpp"
#include "formats/format.hpp"
#include "formats/tensors/storage.hpp"

// Operands and results of many executions of one instruction, in the caller's memory.
namespace guardbit::emulator {

/// Codes in memory, one per container (8, 16, 32 or 64 bits, little-endian, any alignment).
struct ConstCodes {
  const std::byte* data = nullptr;
  int container_bytes = 0;
  /// bits of the container below the code (TF32: 13)
  int shift = 0;

  std::uint64_t operator[](std::int64_t index) const {
    const std::byte* const at = data + index * container_bytes;
    switch (container_bytes) {
      case 1: return formats::load_word<std::uint8_t>(at);
      case 2: return formats::load_word<std::uint16_t>(at);
      case 4: return formats::load_word<std::uint32_t>(at) >> shift;
      default: return formats::load_word<std::uint64_t>(at);
    }
  }
};

struct Codes {
  std::byte* data = nullptr;
  int container_bytes = 0;

  void set(std::int64_t index, std::uint64_t code) const {
    std::byte* const at = data + index * container_bytes;
    switch (container_bytes) {
      case 1: formats::store_word(at, static_cast<std::uint8_t>(code)); break;
      case 2: formats::store_word(at, static_cast<std::uint16_t>(code)); break;
      case 4: formats::store_word(at, static_cast<std::uint32_t>(code)); break;
      default: formats::store_word(at, code); break;
    }
  }
};

inline ConstCodes codes_of(const Format& f, const std::byte* data) {
  return {data, formats::container_bits(f) / 8, formats::container_shift(f)};
}
inline Codes codes_of(const Format& f, std::byte* data) {
  return {data, formats::container_bits(f) / 8};
}

/// What an execution may be asked for beside its operands (NUMERICS 3.4): negation of floating
/// operands, and a C that is ignored.
struct Modifiers {
  bool negate_a = false;
  bool negate_b = false;
  bool zero_addend = false;
};

/// `count` independent executions of one instruction, laid out as in a capture: a [count, m, stored
/// k], e like a (sparse instructions), b [count, k, n], c and d [count, m, n], a_scale [count, m,
/// scales], b_scale [count, scales, n]. `shape` may have any m and n, and a k up to the
/// instruction's: missing products are +0 times +0.
struct MatrixBatch {
  std::int64_t count = 0;
  Shape shape{};
  ConstCodes a, b, c, e, a_scale, b_scale;
  Codes d;
  Modifiers modifiers{};
};

}  // namespace guardbit::emulator
