#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

// Tiles of FP16 products in FP64 lanes of AVX2, by the method and the claims of fused_tile.hpp,
// with the rounding mode set to downward around them and exponents as signed bytes.
namespace guardbit::emulator::half {

inline constexpr int lines_of_panel = 16, rows_together = 2, longest_panel = 128;

/// Sixteen lines at one k.
using Codes = std::array<std::uint16_t, lines_of_panel>;

/// Sixteen rows of A, two and two together, or sixteen columns of B, over up to 128 places: element
/// (place, line) of B lies at place * 16 + line, of A at (line / 2 * 128 + place) * 2 + line % 2.
struct Panel {
  static constexpr std::size_t count = std::size_t{lines_of_panel} * longest_panel;
  /// B's times 1 + 2^-30
  alignas(64) std::array<double, count> values;
  /// Twice each, of a zero -128: of a column (x, x), of two rows (x, y, x, y), so that two rows and
  /// sixteen columns meet in one vector.
  alignas(64) std::array<std::int8_t, 2 * count> exponents;
  /// Of each block as of places; bit i: factor i is a negative number; is a positive one.
  alignas(64) std::array<std::uint16_t, count> negative, positive;
};

struct Blocks {
  int kept_fraction_bits = 0, block_k = 0, count = 0;
};

struct Functions {
  void (*pack)(const Codes* codes, const Blocks& blocks, bool negate, bool is_a,
               Panel& to) = nullptr;
  /// to = from + products, 16 by 16, the rounding mode being downward; `from` may be null, which
  /// counts as zeros. Strides in bytes.
  void (*tile)(const Blocks& blocks, const Panel& a, const Panel& b, const std::byte* from,
               std::int64_t from_stride, std::byte* to, std::int64_t to_stride) = nullptr;
};

/// Null where the CPU has not the instructions.
Functions functions_avx2();

}  // namespace guardbit::emulator::half
