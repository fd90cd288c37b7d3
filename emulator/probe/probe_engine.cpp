#include <cstddef>

#include "emulator/model/batch.hpp"
#include "emulator/probe/probe.hpp"

namespace guardbit::emulator {

namespace {

/// Codes of one operand of many executions.
struct Operand {
  Format format;
  std::vector<std::byte> bytes;

  Operand(const Format& f, std::size_t count)
      : format(f), bytes(count * static_cast<std::size_t>(formats::container_bits(f)) / 8) {}

  void set(std::size_t at, std::uint64_t code) {
    codes_of(format, bytes.data())
        .set(static_cast<std::int64_t>(at), code << formats::container_shift(format));
  }
  ConstCodes codes() const { return codes_of(format, static_cast<const std::byte*>(bytes.data())); }
};

std::vector<std::uint64_t> answers_of(const Engine& engine, const MatrixInstruction& row,
                                      int threads, std::span<const Question> questions) {
  const std::size_t count = questions.size();
  const auto stored = static_cast<std::size_t>(stored_k(row, row.shape.k));
  const auto dense = static_cast<std::size_t>(row.shape.k);
  const auto scales = static_cast<std::size_t>(row.scale.count);
  const bool sparse = row.sparsity.group_elements != 0;
  Operand a(row.a, count * stored), b(row.b, count * dense), c(row.c, count), d(row.d, count),
      e(formats::uint8, sparse ? count * stored : 0), a_scale(row.scale.format, count * scales),
      b_scale(row.scale.format, count * scales);
  for (std::size_t t = 0; t < count; ++t) {
    const Question& q = questions[t];
    for (std::size_t s = 0; s < stored; ++s) {
      int position = 0;
      if (sparse) {
        position = static_cast<int>(s) % row.sparsity.stored_per_group / row.sparsity.chunk;
        e.set(t * stored + s, static_cast<std::uint64_t>(position));
      }
      a.set(t * stored + s, q.a[s]);
      const auto k = static_cast<std::size_t>(dense_k(row.sparsity, static_cast<int>(s), position));
      b.set(t * dense + k, q.b[s]);
    }
    for (std::size_t s = 0; s < scales; ++s) {
      a_scale.set(t * scales + s, q.a_scale[s]);
      b_scale.set(t * scales + s, q.b_scale[s]);
    }
    c.set(t, q.c);
  }
  MatrixBatch batch;
  batch.count = static_cast<std::int64_t>(count);
  batch.shape = {1, 1, row.shape.k};
  batch.a = a.codes();
  batch.b = b.codes();
  batch.c = c.codes();
  batch.e = e.codes();
  batch.a_scale = a_scale.codes();
  batch.b_scale = b_scale.codes();
  batch.d = codes_of(row.d, d.bytes.data());
  run_batch(engine, row, batch, threads);
  std::vector<std::uint64_t> results(count);
  for (std::size_t t = 0; t < count; ++t) results[t] = d.codes()[static_cast<std::int64_t>(t)];
  return results;
}

}  // namespace

BlackBox black_box(const Engine& engine, const MatrixInstruction& row, int threads) {
  BlackBox box;
  box.a = row.a;
  box.b = row.b;
  box.c = row.c;
  box.d = row.d;
  box.scale = row.scale;
  box.k = stored_k(row, row.shape.k);
  box.answer = [&engine, &row, threads](std::span<const Question> questions) {
    return answers_of(engine, row, threads, questions);
  };
  return box;
}

}  // namespace guardbit::emulator
