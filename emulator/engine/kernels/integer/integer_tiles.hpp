#pragma once

#include <cstddef>
#include <cstdint>

// The inner loops of integer products, as tables of functions for each instruction set.
namespace guardbit::emulator {

/// Packed operands of one tile: groups of 4 bytes (or of 2 words) of each line, group by group;
/// what a line's sums lack besides the products, in all and chunk by chunk (32-bit words, one for
/// each line).
struct IntegerPanels {
  const std::byte *a = nullptr, *b = nullptr;
  std::int64_t groups = 0;
  const std::byte *a_lacks = nullptr, *b_lacks = nullptr;
  /// of one execution of a saturating instruction
  std::int64_t chunk_groups = 0;
  const std::byte *a_chunk_lacks = nullptr, *b_chunk_lacks = nullptr;
};

/// to = from + products, of a whole tile; `from` may be null, which counts as zeros.
using IntegerTile = void (*)(const IntegerPanels& panels, const std::byte* from,
                             std::int64_t from_stride, std::byte* to, std::int64_t to_stride);

/// What stands in the 32 bits of a group of k's.
enum class Factors : std::uint8_t {
  /// two words
  words,
  /// four bytes, of one operand unsigned ones
  unsigned_and_signed,
  /// four bytes
  signed_bytes,
};

struct IntegerTiles {
  int rows = 0, columns = 0;
  Factors factors{};
  /// By which operand is the unsigned one: A (0) or B (1). Others have no such difference.
  IntegerTile wrapping[2] = {};
  IntegerTile saturating[2] = {};
  /// Adds the signed elements of each column's groups to its sum.
  void (*add_up)(const std::byte* groups, std::int64_t count, std::int32_t* sums) = nullptr;

  /// k's of a group
  constexpr int group() const { return factors == Factors::words ? 2 : 4; }
};

/// Null where this CPU has not the instructions.
/// AVX-512 VNNI
const IntegerTiles* integer_tiles_avx512();
/// AVX-VNNI: 256 bits
const IntegerTiles* integer_tiles_avxvnni();
/// words of 16 bits
const IntegerTiles* integer_tiles_avx2();
/// dot products of bytes
const IntegerTiles* integer_tiles_neondots();
/// words of 16 bits
const IntegerTiles* integer_tiles_neon();

}  // namespace guardbit::emulator
