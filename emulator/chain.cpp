#include "emulator/chain.hpp"

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "formats/catalogue.hpp"
#include "formats/error.hpp"

namespace guardbit::emulator {

namespace {

/// Columns [begin, begin + width) of matrices with `lines` lines of `stride` containers.
std::vector<std::byte> cut_columns(const ConstCodes& from, std::int64_t lines, std::int64_t stride,
                                   std::int64_t begin, std::int64_t width) {
  const std::int64_t bytes = from.container_bytes;
  std::vector<std::byte> cut(static_cast<std::size_t>(lines * width * bytes));
  for (std::int64_t line = 0; line < lines; ++line)
    std::memcpy(cut.data() + line * width * bytes, from.data + (line * stride + begin) * bytes,
                static_cast<std::size_t>(width * bytes));
  return cut;
}

}  // namespace

void require_chain(const MatrixInstruction& row, std::int64_t k, std::string_view where) {
  const std::string name(std::string_view(row.name));
  if (row.sparsity.group_elements != 0)
    throw formats::Error(std::string(where), name + " is sparse", "a dense instruction");
  if (row.scale.count != 0)
    throw formats::Error(std::string(where), name + " has block scales",
                         "an instruction without scales");
  if (k < 1) throw formats::Error(std::string(where), "K must be at least 1");
  if (k > row.shape.k && row.c != row.d)
    throw formats::Error(std::string(where),
                         name + " has C in " + formats::name_of(row.c) + " and D in " +
                             formats::name_of(row.d) + ": its executions cannot be chained",
                         "K up to " + std::to_string(row.shape.k));
}

void run_chain(const Engine& engine, const MatrixInstruction& row, const MatrixBatch& batch,
               int threads, std::string_view where) {
  const Shape& whole = batch.shape;
  require_chain(row, whole.k, where);
  MatrixBatch step = batch;
  for (int begin = 0; begin < whole.k; begin += row.shape.k) {
    step.shape.k = std::min(row.shape.k, whole.k - begin);
    const std::vector<std::byte> a =
        cut_columns(batch.a, batch.count * whole.m, whole.k, begin, step.shape.k);
    // A row of B's K is n containers: its lines are the executions of the batch.
    const std::vector<std::byte> b =
        cut_columns(batch.b, batch.count, std::int64_t{whole.k} * whole.n,
                    std::int64_t{begin} * whole.n, std::int64_t{step.shape.k} * whole.n);
    step.a.data = a.data();
    step.b.data = b.data();
    run_batch(engine, row, step, threads);
    step.c = codes_of(row.d, static_cast<const std::byte*>(batch.d.data));
    step.modifiers.zero_addend = false;
  }
}

}  // namespace guardbit::emulator
