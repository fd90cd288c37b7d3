#include "emulator/engine/kernels/fused/fused_gemm.hpp"

#include <optional>

#include "emulator/engine/executions.hpp"
#include "emulator/engine/kernels/fused/fused_arithmetic.hpp"
#include "emulator/engine/kernels/fused/fused_kernels.hpp"
#include "emulator/engine/kernels/fused/sparse_specials.hpp"
#include "emulator/engine/kernels/portable/portable.hpp"
#include "emulator/engine/kernels/shared/blocked_product.hpp"
#include "emulator/engine/kernels/shared/byte_panels.hpp"
#include "emulator/model/mma.hpp"

namespace guardbit::emulator::fused_gemm {

namespace {

fused::Kernels kernels_of(VectorSet set) {
  if constexpr (compiles_x86) {
    if (set == VectorSet::avx512) return fused::kernels_avx512();
    if (set == VectorSet::avx2) return fused::kernels_avx2();
  }
  if constexpr (compiles_arm) {
    if (set == VectorSet::neon) return fused::kernels_neon();
  }
  return {};
}

/// What executes batches that are not for tiles.
auto run_by_executions(const MatrixInstruction& instruction) {
  return portable::accepts(instruction) ? portable::run : execute;
}

/// Too few outputs to an execution for tiles to pay.
bool is_small(const Shape& shape) { return shape.m * shape.n < 64; }

}  // namespace

bool accepts(const MatrixInstruction& instruction, VectorSet set) {
  const fused::Kernels kernels = kernels_of(set);
  if (kernels.multiply == nullptr) return false;
  const std::optional<fused::FusedInstruction> fused = fused::fused_instruction(instruction);
  return fused && kernels.accepts(*fused);
}

void run(const MatrixInstruction& instruction, const MatrixBatch& batch, std::int64_t begin,
         std::int64_t end, VectorSet set) {
  const fused::FusedInstruction fused = *fused::fused_instruction(instruction);
  const bool plain = fused.sparsity.group_elements == 0 && fused.scale_k == 0;
  // What packing takes is won back by many outputs of an execution only.
  if (!plain || is_small(batch.shape))
    return run_by_executions(instruction)(instruction, batch, begin, end);
  const fused::Kernels kernels = kernels_of(set);
  for (std::int64_t t = begin; t < end; ++t)
    kernels.multiply(fused, product_of(instruction, batch, t), 1);
}

void multiply(const MatrixInstruction& instruction, const MatrixProduct& product, int threads,
              VectorSet set) {
  const fused::FusedInstruction fused = *fused::fused_instruction(instruction);
  const fused::Kernels kernels = kernels_of(set);
  const auto by_tiles = [&](const MatrixProduct& x) { kernels.multiply(fused, x, threads); };
  if (kernels.can_spread(fused, product)) return by_tiles(product);
  const Executions run_each = run_by_executions(instruction);
  if (has_shared_places(instruction, product))
    return multiply_by_executions(run_each, instruction, product, threads);
  sparse_specials::multiply(instruction, product, threads, by_tiles, [&](const MatrixProduct& x) {
    multiply_by_executions(run_each, instruction, x, 1);
  });
}

}  // namespace guardbit::emulator::fused_gemm
