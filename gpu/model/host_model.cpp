#include "gpu/model/host_model.hpp"

#include <cstring>
#include <vector>

#include "emulator/engine/engines.hpp"
#include "formats/tensors/storage.hpp"

namespace guardbit::gpu {

namespace {

/// Words in the containers that the emulator reads.
template <class Word>
std::vector<std::byte> contained(const std::vector<Word>& words, int bytes) {
  const auto size = static_cast<std::size_t>(bytes);
  std::vector<std::byte> out(words.size() * size);
  for (std::size_t i = 0; i < words.size(); ++i) {
    const auto word = static_cast<std::uint64_t>(words[i]);  // little-endian: low bytes first
    std::memcpy(out.data() + i * size, &word, size);
  }
  return out;
}

int container_bytes(const Format& f) { return formats::container_bits(f) / 8; }

}  // namespace

void run_on_host_model(const emulator::MatrixInstruction& model,
                       const TensorCoreInstruction& instruction, Batch& batch) {
  const std::vector<std::byte> a = contained(batch.a, container_bytes(model.a)),
                               b = contained(batch.b, container_bytes(model.b)),
                               c = contained(batch.c, container_bytes(model.c)),
                               e = contained(batch.e, 1);
  const int d_bytes = container_bytes(model.d);
  std::vector<std::byte> d(batch.d.size() * static_cast<std::size_t>(d_bytes));
  emulator::MatrixBatch view;
  view.count = batch.executions;
  view.shape = {instruction.m, instruction.n, instruction.k};
  view.a = emulator::codes_of(model.a, a.data());
  view.b = emulator::codes_of(model.b, b.data());
  view.c = emulator::codes_of(model.c, c.data());
  view.e = {e.data(), 1, 0};
  view.d = emulator::codes_of(model.d, d.data());
  view.modifiers = {.negate_a = instruction.negate_a,
                    .negate_b = instruction.negate_b,
                    .zero_addend = instruction.ignore_c};
  emulator::run_batch(emulator::require_engine("auto", model), model, view);
  const emulator::ConstCodes results{d.data(), d_bytes, 0};
  for (std::size_t i = 0; i < batch.d.size(); ++i)
    batch.d[i] = results[static_cast<std::int64_t>(i)];
}

}  // namespace guardbit::gpu
