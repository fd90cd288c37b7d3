#include "gpu/operands/plain_form.hpp"

#include <utility>

#include "gpu/operands/register_words.hpp"

namespace guardbit::gpu {

namespace {

/// The chunks of each sparse group in ascending order of position (groups of two chunks).
void sort_positions(const TensorCoreInstruction& row, Batch& batch) {
  const auto stored = static_cast<std::size_t>(sparse_group(row).stored), chunk = stored / 2;
  for (std::size_t group = 0; chunk > 0 && group < batch.e.size(); group += stored) {
    if (batch.e[group] <= batch.e[group + chunk]) continue;
    for (std::size_t i = group; i < group + chunk; ++i) {
      std::swap(batch.e[i], batch.e[i + chunk]);
      std::swap(batch.a[i], batch.a[i + chunk]);
    }
  }
}

}  // namespace

Batch as_plain_form(const TensorCoreInstruction& row, const TensorCoreInstruction& plain,
                    const Batch& batch) {
  const int blocks = row.n / plain.n;
  Batch result(plain, batch.executions * blocks);
  const std::uint64_t flip_a = row.negate_a ? sign_bit(row.a) : 0,
                      flip_b = row.negate_b ? sign_bit(row.b) : 0;
  for (int t = 0; t < result.executions; ++t) {
    const int from = t / blocks, first = t % blocks * plain.n;
    for (int i = 0; i < row.m; ++i)
      for (int s = 0; s < row.stored_k(); ++s) {
        const std::size_t to = element_index(row.m, row.stored_k(), t, i, s),
                          at = element_index(row.m, row.stored_k(), from, i, s);
        result.a[to] = batch.a[at] ^ flip_a;
        if (row.sparse) result.e[to] = batch.e[at];
      }
    const int scales = row.scale.count;
    for (int i = 0; i < row.m; ++i)
      for (int s = 0; s < scales; ++s)
        result.a_scale[element_index(row.m, scales, t, i, s)] =
            batch.a_scale[element_index(row.m, scales, from, i, s)];
    for (int s = 0; s < scales; ++s)
      for (int j = 0; j < plain.n; ++j)
        result.b_scale[element_index(scales, plain.n, t, s, j)] =
            batch.b_scale[element_index(scales, row.n, from, s, first + j)];
    for (int j = 0; j < plain.n; ++j) {
      for (int k = 0; k < row.k; ++k)
        result.b[element_index(row.k, plain.n, t, k, j)] =
            batch.b[element_index(row.k, row.n, from, k, first + j)] ^ flip_b;
      for (int i = 0; i < row.m && !row.ignore_c; ++i)
        result.c[element_index(row.m, plain.n, t, i, j)] =
            batch.c[element_index(row.m, row.n, from, i, first + j)];
    }
  }
  if (row.unordered) sort_positions(plain, result);
  return result;
}

int count_differences(const TensorCoreInstruction& row, const TensorCoreInstruction& plain,
                      const Batch& batch, const Batch& of_plain) {
  const int blocks = row.n / plain.n;
  int count = 0;
  for (int t = 0; t < of_plain.executions; ++t)
    for (int i = 0; i < row.m; ++i)
      for (int j = 0; j < plain.n; ++j)
        count += of_plain.d[element_index(row.m, plain.n, t, i, j)] !=
                 batch.d[element_index(row.m, row.n, t / blocks, i, t % blocks * plain.n + j)];
  return count;
}

}  // namespace guardbit::gpu
