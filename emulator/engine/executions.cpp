#include "emulator/engine/executions.hpp"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <vector>

#include "formats/format_catalogue.hpp"
#include "formats/support/parallel.hpp"

namespace guardbit::emulator {

namespace {

/// A matrix copied into memory of its own, row by row, as a MatrixBatch wants it: the part that
/// exists of `rows` x `columns`, zeros elsewhere.
class Copy {
 public:
  ConstCodes of(const ConstMatrix& from, std::int64_t rows, std::int64_t columns,
                std::int64_t existing_rows, std::int64_t existing_columns) {
    const auto bytes = static_cast<std::size_t>(from.codes.container_bytes);
    bytes_.assign(static_cast<std::size_t>(rows * columns) * bytes, std::byte{0});
    for (std::int64_t i = 0; i < existing_rows; ++i) {
      std::byte* to = bytes_.data() + static_cast<std::size_t>(i * columns) * bytes;
      for (std::int64_t j = 0; j < existing_columns; ++j, to += bytes)
        std::memcpy(to, from.from(i, j).codes.data, bytes);
    }
    ConstCodes codes = from.codes;
    codes.data = bytes_.data();
    return codes;
  }
  ConstCodes of(const ConstMatrix& from, std::int64_t rows, std::int64_t columns) {
    return of(from, rows, columns, rows, columns);
  }

 private:
  std::vector<std::byte> bytes_;
};

/// The chain of a tile, execution by execution.
void run_tile(Executions run, const MatrixInstruction& instruction, const MatrixProduct& tile) {
  const bool sparse = instruction.sparsity.group_elements != 0,
             scaled = instruction.scale.count != 0;
  const std::int64_t m = tile.m, n = tile.n;
  std::vector<std::byte> sums(
      static_cast<std::size_t>(m * n * formats::container_bits(instruction.d) / 8));
  Copy a, b, c, e, a_scale, b_scale;
  MatrixBatch batch;
  batch.count = 1;
  batch.modifiers = tile.modifiers;
  batch.d = codes_of(instruction.d, sums.data());
  if (!tile.modifiers.zero_addend) batch.c = c.of(tile.c, m, n);
  for (std::int64_t begin = 0; begin < tile.k; begin += instruction.shape.k) {
    const auto length =
        static_cast<int>(std::min<std::int64_t>(instruction.shape.k, tile.k - begin));
    const std::int64_t stored = stored_k(instruction, length);
    const std::int64_t stored_before =
        begin / instruction.shape.k * stored_k(instruction, instruction.shape.k);
    batch.shape = {static_cast<int>(m), static_cast<int>(n), length};
    batch.a = a.of(tile.a.from(0, stored_before), m, stored);
    batch.b = b.of(tile.b.from(begin, 0), length, n);
    if (sparse) batch.e = e.of(tile.e.from(0, stored_before), m, stored);
    if (scaled) {
      const std::int64_t all = instruction.scale.count, before = begin / instruction.shape.k * all;
      const std::int64_t there = std::min(all, scales_along(instruction, tile.k) - before);
      batch.a_scale = a_scale.of(tile.a_scale.from(0, before), m, all, m, there);
      batch.b_scale = b_scale.of(tile.b_scale.from(before, 0), all, n, there, n);
    }
    if (tile.is_stopped()) return;
    run(instruction, batch, 0, 1);
    batch.c = codes_of(instruction.d, static_cast<const std::byte*>(sums.data()));
    batch.modifiers.zero_addend = false;
  }
  const ConstCodes result = codes_of(instruction.d, static_cast<const std::byte*>(sums.data()));
  for (std::int64_t i = 0; i < m; ++i)
    for (std::int64_t j = 0; j < n; ++j) tile.d.set(i, j, result[i * n + j]);
}

}  // namespace

void multiply_by_executions(Executions run, const MatrixInstruction& instruction,
                            const MatrixProduct& product, int threads) {
  constexpr std::int64_t side = 64;
  const std::int64_t across = (product.n + side - 1) / side;
  const std::int64_t tiles = (product.m + side - 1) / side * across;
  formats::parallel_for(
      static_cast<std::size_t>(tiles), 1, threads, [&](std::size_t begin, std::size_t end) {
        for (auto t = static_cast<std::int64_t>(begin); t < static_cast<std::int64_t>(end); ++t) {
          const std::int64_t i = t / across * side, j = t % across * side;
          run_tile(
              run, instruction,
              product.part(i, std::min(side, product.m - i), j, std::min(side, product.n - j)));
        }
      });
}

}  // namespace guardbit::emulator
