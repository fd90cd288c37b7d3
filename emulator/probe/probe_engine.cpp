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
    codes_of(format, bytes.data()).set(static_cast<std::int64_t>(at), code);
  }
  ConstCodes codes() const { return codes_of(format, static_cast<const std::byte*>(bytes.data())); }
};

std::vector<std::uint64_t> answers_of(const Engine& engine, const MatrixInstruction& instruction,
                                      int threads, std::span<const Question> questions) {
  const std::size_t count = questions.size();
  const auto stored = static_cast<std::size_t>(stored_k(instruction, instruction.shape.k));
  const auto dense = static_cast<std::size_t>(instruction.shape.k);
  const auto scales = static_cast<std::size_t>(instruction.scale.count);
  const bool sparse = instruction.sparsity.group_elements != 0;
  Operand a(instruction.a, count * stored), b(instruction.b, count * dense),
      c(instruction.c, count), d(instruction.d, count),
      e(formats::uint8, sparse ? count * stored : 0),
      a_scale(instruction.scale.format, count * scales),
      b_scale(instruction.scale.format, count * scales);
  for (std::size_t t = 0; t < count; ++t) {
    const Question& q = questions[t];
    for (std::size_t s = 0; s < stored; ++s) {
      int position = 0;
      if (sparse) {
        position = static_cast<int>(s) % instruction.sparsity.stored_per_group /
                   instruction.sparsity.chunk;
        e.set(t * stored + s, static_cast<std::uint64_t>(position));
      }
      a.set(t * stored + s, q.a[s]);
      const auto k =
          static_cast<std::size_t>(dense_k(instruction.sparsity, static_cast<int>(s), position));
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
  batch.shape = {1, 1, instruction.shape.k};
  batch.a = a.codes();
  batch.b = b.codes();
  batch.c = c.codes();
  batch.e = e.codes();
  batch.a_scale = a_scale.codes();
  batch.b_scale = b_scale.codes();
  batch.d = codes_of(instruction.d, d.bytes.data());
  run_batch(engine, instruction, batch, threads);
  std::vector<std::uint64_t> results(count);
  for (std::size_t t = 0; t < count; ++t) results[t] = d.codes()[static_cast<std::int64_t>(t)];
  return results;
}

}  // namespace

BlackBox black_box(const Engine& engine, const MatrixInstruction& instruction, int threads) {
  BlackBox box;
  box.a = instruction.a;
  box.b = instruction.b;
  box.c = instruction.c;
  box.d = instruction.d;
  box.scale = instruction.scale;
  box.k = stored_k(instruction, instruction.shape.k);
  box.answer = [&engine, &instruction, threads](std::span<const Question> questions) {
    return answers_of(engine, instruction, threads, questions);
  };
  return box;
}

}  // namespace guardbit::emulator
