#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>

#include "emulator/engine/kernels/shared/panel_memory.hpp"
#include "emulator/engine/matrix_product.hpp"
#include "formats/support/parallel.hpp"

// How a large product is cut for the caches (after Goto and van de Geijn, "Anatomy of
// high-performance matrix multiplication", TOMS 2008): a part of B of `depth` k's is packed into
// panels as wide as a tile of registers, the rows of A of a task, which fit the second cache,
// likewise, and every tile of D takes its `depth` products from one panel of each. An element of D
// sees its k's in ascending order, whatever the parts and the threads are.
namespace guardbit::emulator {

struct Blocking {
  /// of a tile
  std::int64_t rows = 0, columns = 0;
  /// k's of a part
  std::int64_t depth = 0;
  /// rows of a task at most
  std::int64_t task_rows = 0;
  /// columns of a part, and rows
  std::int64_t part_columns = 0, part_rows = std::numeric_limits<std::int64_t>::max();
  /// of a task, or multiples of them
  std::int64_t tiles_together = 4, panels_together = 1;
};

constexpr std::int64_t round_up(std::int64_t x, std::int64_t multiple) {
  return (x + multiple - 1) / multiple * multiple;
}
/// Pieces of that size, the last one perhaps smaller.
constexpr std::int64_t pieces(std::int64_t whole, std::int64_t size) {
  return (whole + size - 1) / size;
}

/// A block of D over the k's [k, k + length), whose columns of B are packed together.
struct Part {
  std::int64_t row = 0, rows = 0, column = 0, columns = 0, k = 0, length = 0;
};

/// Rows of tiles of a part, and its panels of B: the work of one thread.
struct Task {
  std::int64_t tile_begin = 0, tile_end = 0, panel_begin = 0, panel_end = 0;
  std::int64_t tiles() const { return tile_end - tile_begin; }
};

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

/// A part's tasks, of one height and one width.
class Tasks {
 public:
  Tasks(const Blocking& x, const Part& part, int threads)
      : tiles_(pieces(part.rows, x.rows)), panels_(pieces(part.columns, x.columns)) {
    const std::int64_t count = formats::thread_count(threads);
    const std::int64_t shares = count == 1 ? 1 : 2 * count;  // so that threads end together
    const std::int64_t wanted = round_up(pieces(part.rows, x.task_rows), shares);
    height_ = round_up(pieces(tiles_, wanted), x.tiles_together);
    down_ = pieces(tiles_, height_);
    width_ = round_up(pieces(panels_, pieces(shares, down_)), x.panels_together);
  }

  std::int64_t count() const { return down_ * pieces(panels_, width_); }
  Task operator[](std::int64_t index) const {
    const std::int64_t tile = index % down_ * height_, panel = index / down_ * width_;
    return {tile, std::min(tiles_, tile + height_), panel, std::min(panels_, panel + width_)};
  }

 private:
  std::int64_t tiles_, panels_, height_ = 0, down_ = 0, width_ = 0;
};

/// Calls kernel.pack_columns(part, threads) for every part of a product of `k` k's, and then
/// kernel.multiply(part, task) for its tasks, on `threads` threads.
template <class Kernel>
void multiply_in_parts(Kernel& kernel, const Blocking& x, const MatrixProduct& product,
                       std::int64_t k, int threads) {
  const auto visit = [&](const Part& part) {
    if (product.is_stopped()) return;
    kernel.pack_columns(part, threads);
    const Tasks tasks(x, part, threads);
    formats::parallel_for(static_cast<std::size_t>(tasks.count()), 1, threads,
                          [&](std::size_t first, std::size_t last) {
                            for (std::size_t t = first; t < last; ++t) {
                              if (product.is_stopped()) return;
                              kernel.multiply(part, tasks[static_cast<std::int64_t>(t)]);
                            }
                          });
  };
  for (std::int64_t row = 0; row < product.m; row += x.part_rows) {
    const std::int64_t rows = std::min(x.part_rows, product.m - row);
    for (std::int64_t column = 0; column < product.n; column += x.part_columns) {
      const std::int64_t columns = std::min(x.part_columns, product.n - column);
      for (std::int64_t begin = 0; begin < k; begin += x.depth)
        visit({row, rows, column, columns, begin, std::min(x.depth, k - begin)});
    }
  }
}

/// Panels that each take one stretch of memory.
struct PanelBlocking {
  Blocking parts;
  /// of `depth` k's
  std::size_t a_bytes = 0, b_bytes = 0;
};

/// A product whose sums lie in D between its parts. Kernel: pack_a(memory, i, k, length) and
/// pack_b(memory, j, k, length) fill a panel that begins at row i or column j; tile(a, b, i, j, k,
/// length) adds the products of two panels to D, while an Environment of the kernel lives on the
/// thread.
template <class Kernel>
class PanelProduct {
 public:
  PanelProduct(const Kernel& kernel, PanelMemory& b)
      : kernel_(kernel), x_(kernel.blocking()), b_(b) {}

  void run(const MatrixProduct& product, int threads) {
    multiply_in_parts(*this, x_.parts, product, product.k, threads);
  }

  void pack_columns(const Part& part, int threads) {
    const std::int64_t panels = pieces(part.columns, x_.parts.columns);
    b_.resize(static_cast<std::size_t>(panels) * x_.b_bytes);
    const std::int64_t grain = pieces(panels, std::int64_t{2} * formats::thread_count(threads));
    formats::parallel_for(static_cast<std::size_t>(panels), static_cast<std::size_t>(grain),
                          threads, [&](std::size_t first, std::size_t last) {
                            for (std::size_t p = first; p < last; ++p)
                              kernel_.pack_b(
                                  b_.data() + p * x_.b_bytes,
                                  part.column + static_cast<std::int64_t>(p) * x_.parts.columns,
                                  part.k, part.length);
                          });
  }

  void multiply(const Part& part, const Task& task) const {
    [[maybe_unused]] const typename Kernel::Environment environment(kernel_);
    static thread_local PanelMemory memory;
    memory.resize(static_cast<std::size_t>(task.tiles()) * x_.a_bytes);
    const auto a = [&](std::int64_t tile) {
      return memory.data() + static_cast<std::size_t>(tile - task.tile_begin) * x_.a_bytes;
    };
    const auto row = [&](std::int64_t tile) { return part.row + tile * x_.parts.rows; };
    for (std::int64_t t = task.tile_begin; t < task.tile_end; ++t)
      kernel_.pack_a(a(t), row(t), part.k, part.length);
    for (std::int64_t p = task.panel_begin; p < task.panel_end; ++p) {
      const std::byte* const b = b_.data() + static_cast<std::size_t>(p) * x_.b_bytes;
      const std::int64_t column = part.column + p * x_.parts.columns;
      for (std::int64_t t = task.tile_begin; t < task.tile_end; ++t)
        kernel_.tile(a(t), b, row(t), column, part.k, part.length);
    }
  }

 private:
  const Kernel& kernel_;
  PanelBlocking x_;
  PanelMemory& b_;
};

template <class Kernel>
void multiply_by_panels(const Kernel& kernel, const MatrixProduct& product, int threads) {
  static thread_local PanelMemory b;  // kept for the next product
  PanelProduct<Kernel>(kernel, b).run(product, threads);
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
