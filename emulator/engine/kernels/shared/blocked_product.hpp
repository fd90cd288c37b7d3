#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "emulator/engine/kernels/shared/panel_memory.hpp"
#include "emulator/engine/matrix_product.hpp"
#include "formats/support/parallel.hpp"

// How a large product is cut for the caches (after Goto and van de Geijn, "Anatomy of
// high-performance matrix multiplication", TOMS 2008): a block of B of `depth` k's is packed into
// panels as wide as a tile of registers, a block of A that fits the second cache likewise, and
// every tile of D takes its `depth` products from one panel of each. An element of D sees its k's
// in ascending order, whatever the blocks and the threads are.
namespace guardbit::emulator {

struct Blocking {
  /// of a tile
  std::int64_t rows = 0, columns = 0;
  /// k's of a block
  std::int64_t depth = 0;
  std::int64_t block_rows = 0, block_columns = 0;
  /// of `depth` k's
  std::size_t a_panel_bytes = 0, b_panel_bytes = 0;
};

constexpr std::int64_t round_up(std::int64_t x, std::int64_t unit) {
  return (x + unit - 1) / unit * unit;
}

/// One execution of a batch as a product.
inline MatrixProduct product_of(const MatrixInstruction& instruction, const MatrixBatch& batch,
                                std::int64_t execution) {
  const Shape& s = batch.shape;
  const std::int64_t stored = stored_k(instruction, s.k);
  const auto matrix = [execution](const ConstCodes& codes, std::int64_t rows,
                                  std::int64_t columns) {
    return ConstMatrix{codes, columns}.from(execution * rows, 0);
  };
  MatrixProduct x;
  x.m = s.m;
  x.n = s.n;
  x.k = s.k;
  x.a = matrix(batch.a, s.m, stored);
  x.b = matrix(batch.b, s.k, s.n);
  x.c = matrix(batch.c, s.m, s.n);
  x.d = Matrix{batch.d, s.n}.from(std::int64_t{execution} * s.m, 0);
  x.e = matrix(batch.e, s.m, stored);
  x.a_scale = matrix(batch.a_scale, s.m, instruction.scale.count);
  x.b_scale = matrix(batch.b_scale, instruction.scale.count, s.n);
  x.modifiers = batch.modifiers;
  return x;
}

/// A block of D that is the work of one thread, over the k's from `k` on.
struct TileRange {
  std::int64_t row_begin = 0, row_end = 0, column_begin = 0, column_end = 0, k = 0, length = 0;
};

/// Kernel: pack_a(memory, i, k, length) and pack_b(memory, j, k, length) fill a panel that begins
/// at row i or column j; tile(a, b, i, j, k, length) adds the products of two panels to D, while an
/// Environment of the kernel lives on the thread.
template <class Kernel>
void multiply_in_blocks(const Kernel& kernel, const Blocking& x, const MatrixProduct& product,
                        int threads) {
  const std::int64_t m = product.m, n = product.n, k = product.k;
  const std::int64_t count = formats::thread_count(threads);
  const std::int64_t shares = count == 1 ? 1 : 2 * count;  // so that threads end together
  const std::int64_t row_blocks = round_up((m + x.block_rows - 1) / x.block_rows, shares);
  const std::int64_t block_rows =
      std::max(4 * x.rows, round_up((m + row_blocks - 1) / row_blocks, x.rows));
  const std::int64_t down = (m + block_rows - 1) / block_rows;
  const std::int64_t wanted_across = (shares + down - 1) / down;
  const auto panels_of = [](std::int64_t size, std::int64_t width) {
    return (size + width - 1) / width;
  };
  const std::int64_t most_columns = std::min(x.block_columns, round_up(n, x.columns));
  static thread_local PanelMemory own_b;  // kept for the next product
  PanelMemory& b = own_b;                 // the same on every thread
  b.resize(static_cast<std::size_t>(panels_of(most_columns, x.columns)) * x.b_panel_bytes);
  const auto panel_at = [](PanelMemory& memory, std::int64_t index, std::size_t bytes) {
    return memory.data() + static_cast<std::size_t>(index) * bytes;
  };

  const auto multiply_range = [&](const TileRange& r, std::int64_t first_column) {
    [[maybe_unused]] const typename Kernel::Environment environment(kernel);
    static thread_local PanelMemory a;
    a.resize(static_cast<std::size_t>(panels_of(r.row_end - r.row_begin, x.rows)) *
             x.a_panel_bytes);
    for (std::int64_t i = r.row_begin; i < r.row_end; i += x.rows)
      kernel.pack_a(panel_at(a, (i - r.row_begin) / x.rows, x.a_panel_bytes), i, r.k, r.length);
    for (std::int64_t j = r.column_begin; j < r.column_end; j += x.columns) {
      const std::byte* const b_panel = panel_at(b, (j - first_column) / x.columns, x.b_panel_bytes);
      for (std::int64_t i = r.row_begin; i < r.row_end; i += x.rows)
        kernel.tile(panel_at(a, (i - r.row_begin) / x.rows, x.a_panel_bytes), b_panel, i, j, r.k,
                    r.length);
    }
  };

  for (std::int64_t column = 0; column < n; column += x.block_columns) {
    const std::int64_t columns = std::min(x.block_columns, n - column);
    const std::int64_t panels = panels_of(columns, x.columns);
    const std::int64_t across = std::min(wanted_across, panels);
    for (std::int64_t begin = 0; begin < k; begin += x.depth) {
      const std::int64_t length = std::min(x.depth, k - begin);
      formats::parallel_for(
          static_cast<std::size_t>(panels), static_cast<std::size_t>(panels_of(panels, 2 * count)),
          threads, [&](std::size_t first, std::size_t last) {
            for (auto p = static_cast<std::int64_t>(first); p < static_cast<std::int64_t>(last);
                 ++p)
              kernel.pack_b(panel_at(b, p, x.b_panel_bytes), column + p * x.columns, begin, length);
          });
      formats::parallel_for(
          static_cast<std::size_t>(down * across), 1, threads,
          [&](std::size_t first, std::size_t last) {
            for (auto t = static_cast<std::int64_t>(first); t < static_cast<std::int64_t>(last);
                 ++t) {
              if (product.is_stopped()) return;
              const std::int64_t i = t / across * block_rows, part = t % across;
              multiply_range(
                  {i, std::min(m, i + block_rows), column + panels * part / across * x.columns,
                   std::min(column + columns, column + panels * (part + 1) / across * x.columns),
                   begin, length},
                  column);
            }
          });
    }
  }
}

/// Calls body(from, from_stride, to, to_stride) for the tile of D at (i, j), strides in bytes: on D
/// itself where the whole tile lies in it row by row, else on a copy. `from` is C at the first k,
/// null where C is not read, and D after that.
template <class Word, std::int64_t rows, std::int64_t columns, class Body>
void visit_tile(const MatrixProduct& product, std::int64_t i, std::int64_t j, bool is_first,
                Body body) {
  constexpr std::int64_t width = sizeof(Word);
  const ConstMatrix sums{{product.d.codes.data, product.d.codes.container_bytes, 0},
                         product.d.row_stride,
                         product.d.column_stride};
  const ConstMatrix source = (is_first ? product.c : sums).from(i, j);
  const Matrix result = product.d.from(i, j);
  const bool reads = !(is_first && product.modifiers.zero_addend);
  const bool whole = i + rows <= product.m && j + columns <= product.n;
  if (whole && result.column_stride == 1 && (!reads || source.column_stride == 1)) {
    // The next tile below, whose lines are as far apart as the rows of D.
    for (std::int64_t r = rows; reads && r < 2 * rows && i + r < product.m; ++r) {
      for (std::int64_t at = 0; at < columns * width; at += 64)
        __builtin_prefetch(source.codes.data + r * source.row_stride * width + at);
    }
    body(reads ? source.codes.data : nullptr, source.row_stride * width, result.codes.data,
         result.row_stride * width);
    return;
  }
  alignas(64) std::array<std::byte, static_cast<std::size_t>(rows * columns * width)> memory{};
  std::byte* const copy = memory.data();
  const std::int64_t height = std::min(rows, product.m - i);
  const std::int64_t breadth = std::min(columns, product.n - j);
  for (std::int64_t r = 0; reads && r < height; ++r) {
    for (std::int64_t s = 0; s < breadth; ++s)
      std::memcpy(copy + (r * columns + s) * width, source.from(r, s).codes.data, width);
  }
  body(copy, columns * width, copy, columns * width);
  for (std::int64_t r = 0; r < height; ++r) {
    for (std::int64_t s = 0; s < breadth; ++s)
      std::memcpy(result.from(r, s).codes.data, copy + (r * columns + s) * width, width);
  }
}

}  // namespace guardbit::emulator
