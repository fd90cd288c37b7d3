#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "emulator/engine/matrix_product.hpp"
#include "emulator/model/instruction.hpp"

// Operands of one byte an element as the dot-product instructions of x86 take them: groups of 4 k's
// of a line beside each other, line after line.
namespace guardbit::emulator {

/// Rows of A or columns of B in memory.
struct Lines {
  const std::byte* data = nullptr;
  std::int64_t line_stride = 0, k_stride = 0;
  /// that are there
  std::int64_t lines = 0, length = 0;

  std::uint8_t code(std::int64_t line, std::int64_t k) const {
    return std::to_integer<std::uint8_t>(data[line * line_stride + k * k_stride]);
  }
};

constexpr std::int64_t lane_bytes = 4;

using Bytes16 [[gnu::vector_size(16)]] = std::uint8_t;

/// 16 neighbouring lines of 4 k's, as groups.
inline void interleave_16(const std::byte* from, std::int64_t k_stride, std::byte* to) {
  std::array<Bytes16, 4> k;
  for (std::size_t i = 0; i < 4; ++i)
    std::memcpy(&k[i], from + static_cast<std::int64_t>(i) * k_stride, 16);
  const auto low = [](Bytes16 x, Bytes16 y) {
    return __builtin_shufflevector(x, y, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
  };
  const auto high = [](Bytes16 x, Bytes16 y) {
    return __builtin_shufflevector(x, y, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15,
                                   31);
  };
  const auto low_pairs = [](Bytes16 x, Bytes16 y) {
    return __builtin_shufflevector(x, y, 0, 1, 16, 17, 2, 3, 18, 19, 4, 5, 20, 21, 6, 7, 22, 23);
  };
  const auto high_pairs = [](Bytes16 x, Bytes16 y) {
    return __builtin_shufflevector(x, y, 8, 9, 24, 25, 10, 11, 26, 27, 12, 13, 28, 29, 14, 15, 30,
                                   31);
  };
  const Bytes16 first_low = low(k[0], k[1]), second_low = low(k[2], k[3]);
  const Bytes16 first_high = high(k[0], k[1]), second_high = high(k[2], k[3]);
  const std::array<Bytes16, 4> groups = {
      low_pairs(first_low, second_low), high_pairs(first_low, second_low),
      low_pairs(first_high, second_high), high_pairs(first_high, second_high)};
  std::memcpy(to, groups.data(), 64);
}

using Words4 [[gnu::vector_size(16)]] = std::uint32_t;

/// 4 lines of 16 neighbouring k's, as 4 groups that are `group_bytes` apart.
inline void transpose_4(const std::byte* from, std::int64_t line_stride, std::byte* to,
                        std::int64_t group_bytes) {
  std::array<Words4, 4> line;
  for (std::size_t i = 0; i < 4; ++i)
    std::memcpy(&line[i], from + static_cast<std::int64_t>(i) * line_stride, 16);
  const Words4 low_01 = __builtin_shufflevector(line[0], line[1], 0, 4, 1, 5);
  const Words4 high_01 = __builtin_shufflevector(line[0], line[1], 2, 6, 3, 7);
  const Words4 low_23 = __builtin_shufflevector(line[2], line[3], 0, 4, 1, 5);
  const Words4 high_23 = __builtin_shufflevector(line[2], line[3], 2, 6, 3, 7);
  const std::array<Words4, 4> groups = {__builtin_shufflevector(low_01, low_23, 0, 1, 4, 5),
                                        __builtin_shufflevector(low_01, low_23, 2, 3, 6, 7),
                                        __builtin_shufflevector(high_01, high_23, 0, 1, 4, 5),
                                        __builtin_shufflevector(high_01, high_23, 2, 3, 6, 7)};
  for (std::size_t g = 0; g < 4; ++g)
    std::memcpy(to + static_cast<std::int64_t>(g) * group_bytes, &groups[g], 16);
}

/// The groups that `transpose_4` can make of whole lines; returns how many.
inline std::int64_t gather_by_lines(const Lines& x, std::int64_t width, std::byte* to) {
  if (x.k_stride != 1 || x.lines != width || width % 4 != 0) return 0;
  const std::int64_t groups = x.length / 16 * 4;
  for (std::int64_t g = 0; g < groups; g += 4) {
    for (std::int64_t line = 0; line < width; line += 4)
      transpose_4(x.data + line * x.line_stride + g * 4, x.line_stride,
                  to + (g * width + line) * lane_bytes, width * lane_bytes);
  }
  return groups;
}

/// Group g of every line, 4 codes each; zeros where there are none.
inline void gather_group(const Lines& x, std::int64_t g, std::int64_t width, std::byte* to) {
  const std::int64_t k = g * 4;
  std::int64_t line = 0;
  if (k + 4 <= x.length && x.k_stride == 1) {
    for (; line < x.lines; ++line)
      std::memcpy(to + line * lane_bytes, x.data + line * x.line_stride + k, 4);
  } else if (k + 4 <= x.length && x.line_stride == 1) {
    for (; line + 16 <= x.lines; line += 16)
      interleave_16(x.data + line + k * x.k_stride, x.k_stride, to + line * lane_bytes);
  }
  for (; line < width; ++line) {
    for (std::int64_t i = 0; i < 4; ++i) {
      const bool there = line < x.lines && k + i < x.length;
      to[line * lane_bytes + i] = static_cast<std::byte>(there ? x.code(line, k + i) : 0);
    }
  }
}

/// Rows [i, i + rows) of a sparse A over `length` k's from `k` on, with zeros between, as codes.
inline std::vector<std::byte> dense_rows(const MatrixInstruction& instruction,
                                         const MatrixProduct& x, std::int64_t i, std::int64_t rows,
                                         std::int64_t k, std::int64_t length) {
  std::vector<std::byte> dense(static_cast<std::size_t>(rows * length));
  const std::int64_t first = stored_k(instruction, static_cast<int>(k));
  const std::int64_t count = stored_k(instruction, static_cast<int>(length));
  for (std::int64_t r = 0; r < rows; ++r) {
    for (std::int64_t s = 0; s < count; ++s) {
      const auto e = static_cast<int>(x.e(i + r, first + s));
      dense[static_cast<std::size_t>(r * length +
                                     dense_k(instruction.sparsity, static_cast<int>(s), e))] =
          static_cast<std::byte>(x.a(i + r, first + s));
    }
  }
  return dense;
}

/// Rows of A for a tile, from row i and place k on: where they lie, or made dense.
class RowsOfA {
 public:
  RowsOfA(const MatrixInstruction& instruction, const MatrixProduct& x, std::int64_t tile_rows,
          std::int64_t i, std::int64_t k, std::int64_t length)
      : lines_{nullptr, x.a.row_stride, x.a.column_stride, std::min(tile_rows, x.m - i), length} {
    if (instruction.sparsity.group_elements == 0) {
      lines_.data = x.a.from(i, k).codes.data;
      return;
    }
    dense_ = dense_rows(instruction, x, i, lines_.lines, k, length);
    lines_.data = dense_.data();
    lines_.line_stride = length;
    lines_.k_stride = 1;
  }
  RowsOfA(const RowsOfA&) = delete;
  RowsOfA& operator=(const RowsOfA&) = delete;

  const Lines& lines() const { return lines_; }

 private:
  std::vector<std::byte> dense_;
  Lines lines_;
};

/// Columns of B for a tile, from column j and place k on.
inline Lines columns_of_b(const MatrixProduct& x, std::int64_t tile_columns, std::int64_t j,
                          std::int64_t k, std::int64_t length) {
  return {x.b.from(k, j).codes.data, x.b.column_stride, x.b.row_stride,
          std::min(tile_columns, x.n - j), length};
}

/// Two stored values of a sparse instruction at one place count both, which dense rows of A cannot
/// hold.
inline bool has_shared_places(const MatrixInstruction& instruction, const MatrixProduct& x) {
  const Sparsity& sparsity = instruction.sparsity;
  if (sparsity.group_elements == 0) return false;
  const std::int64_t count = stored_k(instruction, static_cast<int>(x.k));
  for (std::int64_t i = 0; i < x.m; ++i) {
    for (std::int64_t s = 0; s < count; s += sparsity.stored_per_group) {
      std::uint64_t seen = 0;
      for (int c = 0; c < sparsity.stored_per_group; ++c) {
        const int place = dense_k(sparsity, c, static_cast<int>(x.e(i, s + c)));
        if ((seen >> place & 1) != 0) return true;
        seen |= std::uint64_t{1} << place;
      }
    }
  }
  return false;
}

}  // namespace guardbit::emulator
