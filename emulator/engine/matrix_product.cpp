#include "emulator/engine/matrix_product.hpp"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <string>
#include <vector>

#include "emulator/engine/continuation.hpp"
#include "emulator/engine/engines.hpp"
#include "formats/format_catalogue.hpp"
#include "formats/support/error.hpp"
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

/// The chain of a tile, execution by execution, by the engine's `run`.
void run_tile(const Engine& engine, const MatrixInstruction& instruction,
              const MatrixProduct& tile) {
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
    engine.run(instruction, batch, 0, 1);
    batch.c = codes_of(instruction.d, static_cast<const std::byte*>(sums.data()));
    batch.modifiers.zero_addend = false;
  }
  const ConstCodes result = codes_of(instruction.d, static_cast<const std::byte*>(sums.data()));
  for (std::int64_t i = 0; i < m; ++i)
    for (std::int64_t j = 0; j < n; ++j) tile.d.set(i, j, result[i * n + j]);
}

}  // namespace

MatrixProduct MatrixProduct::part(std::int64_t i, std::int64_t rows, std::int64_t j,
                                  std::int64_t columns) const {
  MatrixProduct x = *this;
  x.m = rows;
  x.n = columns;
  x.a = a.from(i, 0);
  x.b = b.from(0, j);
  x.c = c.from(i, j);
  x.d = d.from(i, j);
  x.e = e.from(i, 0);
  x.a_scale = a_scale.from(i, 0);
  x.b_scale = b_scale.from(0, j);
  return x;
}

std::int64_t scales_along(const MatrixInstruction& instruction, std::int64_t k) {
  return (k * instruction.scale.count + instruction.shape.k - 1) / instruction.shape.k;
}

void require_k(const MatrixInstruction& instruction, std::int64_t k, std::string_view where) {
  const std::string name(std::string_view(instruction.name));
  if (k < 1) throw formats::Error(std::string(where), "K must be at least 1");
  if (const int group = instruction.sparsity.group_elements; group != 0 && k % group != 0)
    throw formats::Error(std::string(where),
                         name + " is sparse: K = " + std::to_string(k) + " is not whole groups",
                         "multiples of " + std::to_string(group));
}

void require_product(const MatrixInstruction& instruction, std::int64_t k, std::string_view where) {
  require_k(instruction, k, where);
  require_chain(instruction, k, where);
}

namespace {

/// The product, by an instruction whose executions can be chained, or by one execution.
void multiply_executions(const Engine& engine, const MatrixInstruction& instruction,
                         const MatrixProduct& product, int threads) {
  if (engine.multiply != nullptr) return engine.multiply(instruction, product, threads);
  constexpr std::int64_t side = 64;
  const std::int64_t across = (product.n + side - 1) / side;
  const std::int64_t tiles = (product.m + side - 1) / side * across;
  formats::parallel_for(
      static_cast<std::size_t>(tiles), 1, threads, [&](std::size_t begin, std::size_t end) {
        for (auto t = static_cast<std::int64_t>(begin); t < static_cast<std::int64_t>(end); ++t) {
          const std::int64_t i = t / across * side, j = t % across * side;
          run_tile(
              engine, instruction,
              product.part(i, std::min(side, product.m - i), j, std::min(side, product.n - j)));
        }
      });
}

/// D, as the C of what follows.
ConstMatrix sums_of(const MatrixInstruction& instruction, const Matrix& d) {
  return {codes_of(instruction.d, static_cast<const std::byte*>(d.codes.data)), d.row_stride,
          d.column_stride};
}

/// The wanted engine if it accepts the instruction, else the model that does; engines agree.
const Engine& engine_for(const Engine& wanted, const MatrixInstruction& instruction) {
  const bool takes_it = wanted.accepts(instruction) || wanted.device != nullptr;
  return takes_it ? wanted : require_engine("auto", instruction);
}

/// The product by an instruction that takes no addend: whole executions of what continues it, then
/// one that ends with the last block.
void multiply_continued(const Engine& engine, const Continuation& x, const MatrixProduct& product,
                        int threads) {
  MatrixProduct part = product;
  if (product.modifiers.zero_addend && x.begin != 0) {
    for (std::int64_t i = 0; i < product.m; ++i)
      for (std::int64_t j = 0; j < product.n; ++j) product.d.set(i, j, x.begin);
    part.modifiers.zero_addend = false;
    part.c = sums_of(x.instruction, product.d);
  }
  const std::int64_t executions = product.k / x.instruction.shape.k,
                     begin = executions * x.instruction.shape.k;
  if (executions != 0) {
    part.k = begin;
    multiply_executions(engine_for(engine, x.instruction), x.instruction, part, threads);
    part.modifiers.zero_addend = false;
    part.c = sums_of(x.instruction, product.d);
  }
  if (begin == product.k) return;
  const std::int64_t stored = executions * stored_k(x.instruction, x.instruction.shape.k);
  const std::int64_t scales = executions * x.instruction.scale.count;
  part.k = product.k - begin;
  part.a = product.a.from(0, stored);
  part.e = product.e.from(0, stored);
  part.b = product.b.from(begin, 0);
  part.a_scale = product.a_scale.from(0, scales);
  part.b_scale = product.b_scale.from(scales, 0);
  const MatrixInstruction last = x.shortened(part.k);
  multiply_executions(engine_for(engine, last), last, part, threads);
}

}  // namespace

void multiply(const Engine& engine, const MatrixInstruction& instruction,
              const MatrixProduct& product, int threads) {
  const std::string_view where(instruction.name);
  if (takes_addend(instruction)) {
    require_chain(instruction, product.k, where);
    return multiply_executions(engine, instruction, product, threads);
  }
  if (const auto next = continuation_of(instruction))
    return multiply_continued(engine, *next, product, threads);
  require_chain(instruction, product.k, where);
  if (!product.modifiers.zero_addend)
    throw formats::Error(std::string(where), "takes no addend, but the product has a C");
  multiply_executions(engine, instruction, product, threads);
}

}  // namespace guardbit::emulator
