#include "gpu/operands/plain_form.hpp"

#include <utility>

#include "gpu/operands/register_words.hpp"

namespace guardbit::gpu {

namespace {

/// The chunks of each sparse group in ascending order of position (groups of two chunks).
void sort_positions(const TensorCoreInstruction& instruction, Batch& batch) {
  const auto stored = static_cast<std::size_t>(sparse_group(instruction).stored),
             chunk = stored / 2;
  for (std::size_t group = 0; chunk > 0 && group < batch.e.size(); group += stored) {
    if (batch.e[group] <= batch.e[group + chunk]) continue;
    for (std::size_t i = group; i < group + chunk; ++i) {
      std::swap(batch.e[i], batch.e[i + chunk]);
      std::swap(batch.a[i], batch.a[i + chunk]);
    }
  }
}

}  // namespace

Batch as_plain_form(const TensorCoreInstruction& instruction, const TensorCoreInstruction& plain,
                    const Batch& batch) {
  const int blocks = instruction.n / plain.n;
  Batch result(plain, batch.executions * blocks);
  const std::uint64_t flip_a = instruction.negate_a ? sign_bit(instruction.a) : 0,
                      flip_b = instruction.negate_b ? sign_bit(instruction.b) : 0;
  for (int t = 0; t < result.executions; ++t) {
    const int from = t / blocks, first = t % blocks * plain.n;
    for (int i = 0; i < instruction.m; ++i)
      for (int s = 0; s < instruction.stored_k(); ++s) {
        const std::size_t to = element_index(instruction.m, instruction.stored_k(), t, i, s),
                          at = element_index(instruction.m, instruction.stored_k(), from, i, s);
        result.a[to] = batch.a[at] ^ flip_a;
        if (instruction.sparse) result.e[to] = batch.e[at];
      }
    const int scales = instruction.scale.count;
    for (int i = 0; i < instruction.m; ++i)
      for (int s = 0; s < scales; ++s)
        result.a_scale[element_index(instruction.m, scales, t, i, s)] =
            batch.a_scale[element_index(instruction.m, scales, from, i, s)];
    for (int s = 0; s < scales; ++s)
      for (int j = 0; j < plain.n; ++j)
        result.b_scale[element_index(scales, plain.n, t, s, j)] =
            batch.b_scale[element_index(scales, instruction.n, from, s, first + j)];
    for (int j = 0; j < plain.n; ++j) {
      for (int k = 0; k < instruction.k; ++k)
        result.b[element_index(instruction.k, plain.n, t, k, j)] =
            batch.b[element_index(instruction.k, instruction.n, from, k, first + j)] ^ flip_b;
      for (int i = 0; i < instruction.m && !instruction.ignore_c; ++i)
        result.c[element_index(instruction.m, plain.n, t, i, j)] =
            batch.c[element_index(instruction.m, instruction.n, from, i, first + j)];
    }
  }
  if (instruction.unordered) sort_positions(plain, result);
  return result;
}

int count_differences(const TensorCoreInstruction& instruction, const TensorCoreInstruction& plain,
                      const Batch& batch, const Batch& of_plain) {
  const int blocks = instruction.n / plain.n;
  int count = 0;
  for (int t = 0; t < of_plain.executions; ++t)
    for (int i = 0; i < instruction.m; ++i)
      for (int j = 0; j < plain.n; ++j)
        count += of_plain.d[element_index(instruction.m, plain.n, t, i, j)] !=
                 batch.d[element_index(instruction.m, instruction.n, t / blocks, i,
                                       t % blocks * plain.n + j)];
  return count;
}

}  // namespace guardbit::gpu
