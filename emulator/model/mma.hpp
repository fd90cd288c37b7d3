#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "emulator/model/batch.hpp"
#include "emulator/model/dot.hpp"
#include "emulator/model/instruction.hpp"

// The model of a whole matrix instruction: dot.hpp for each element of D.
namespace guardbit::emulator {

/// One execution's element (m, n) of a batch, gathered: the operands of its dot product in the
/// order the unit takes them.
struct GatheredOperands {
  std::array<std::uint64_t, max_k> a{}, b{}, a_scale{}, b_scale{};
  std::size_t count = 0, scales = 0;
  std::uint64_t c = 0;

  DotOperands view() const {
    const auto first = [](const auto& list, std::size_t n) {
      return std::span<const std::uint64_t>(list).first(n);
    };
    return {first(a, count), first(b, count), c, first(a_scale, scales), first(b_scale, scales)};
  }
};

/// Negates a code of a format with a sign bit; PTX offers it for floating operands only.
constexpr std::uint64_t negated(const Format& f, std::uint64_t code, bool negate) {
  return negate ? code ^ formats::sign_mask(f) : code;
}

/// Sparse instructions pair each stored value of A with the B that its metadata names
/// (NUMERICS 3.3).
inline GatheredOperands gather(const MatrixInstruction& instruction, const MatrixBatch& batch,
                               std::int64_t execution, int m, int n) {
  const Shape& shape = batch.shape;
  const int stored = stored_k(instruction, shape.k);
  const bool sparse = instruction.sparsity.group_elements != 0;
  GatheredOperands x;  // missing products are +0 times +0
  x.count = static_cast<std::size_t>(std::max(stored, stored_k(instruction, instruction.shape.k)));
  x.scales = static_cast<std::size_t>(instruction.scale.count);
  const std::int64_t a_row = (execution * shape.m + m) * stored;
  const std::int64_t b_column = execution * shape.k * shape.n + n;
  for (int s = 0; s < stored; ++s) {
    const int e = sparse ? static_cast<int>(batch.e[a_row + s]) : 0;
    const auto at = static_cast<std::size_t>(s);
    x.a[at] = negated(instruction.a, batch.a[a_row + s], batch.modifiers.negate_a);
    const std::int64_t k = dense_k(instruction.sparsity, s, e);
    x.b[at] = negated(instruction.b, batch.b[b_column + k * shape.n], batch.modifiers.negate_b);
  }
  for (int s = 0; s < instruction.scale.count; ++s) {
    const auto at = static_cast<std::size_t>(s);
    x.a_scale[at] = batch.a_scale[(execution * shape.m + m) * instruction.scale.count + s];
    x.b_scale[at] = batch.b_scale[(execution * instruction.scale.count + s) * shape.n + n];
  }
  if (!batch.modifiers.zero_addend) x.c = batch.c[(execution * shape.m + m) * shape.n + n];
  return x;
}

/// Executes [begin, end) of a batch, one element at a time, by the model.
inline void execute(const MatrixInstruction& instruction, const MatrixBatch& batch,
                    std::int64_t begin, std::int64_t end) {
  for (std::int64_t t = begin; t < end; ++t) {
    for (int m = 0; m < batch.shape.m; ++m) {
      for (int n = 0; n < batch.shape.n; ++n) {
        const GatheredOperands operands = gather(instruction, batch, t, m, n);
        batch.d.set((t * batch.shape.m + m) * batch.shape.n + n, dot(instruction, operands.view()));
      }
    }
  }
}

}  // namespace guardbit::emulator
