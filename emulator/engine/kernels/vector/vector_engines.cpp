#include "emulator/engine/kernels/vector/vector_engines.hpp"

#include "emulator/engine/cpu.hpp"
#include "emulator/engine/kernels/chain/chain_gemm.hpp"
#include "emulator/engine/kernels/fused/fused_gemm.hpp"
#include "emulator/engine/kernels/grid/grid_gemm.hpp"
#include "emulator/engine/kernels/group/group_gemm.hpp"
#include "emulator/engine/kernels/integer/integer_gemm.hpp"

namespace guardbit::emulator::vector_engines {

namespace {

bool has(VectorSet set) {
  switch (set) {
    case VectorSet::avx512: return cpu::features().avx512_kernels;
    case VectorSet::avx2: return cpu::features().avx2_kernels;
    case VectorSet::neon: return cpu::features().neon_kernels;
  }
  return false;
}

template <VectorSet set>
bool is_fused(const MatrixInstruction& instruction) {
  return fused_gemm::accepts(instruction, set);
}

template <VectorSet set>
bool is_integer(const MatrixInstruction& instruction) {
  return integer_gemm::accepts(instruction, set);
}

template <VectorSet set>
bool is_grouped(const MatrixInstruction& instruction) {
  return group_gemm::accepts(instruction, set);
}

template <VectorSet set>
bool is_on_grids(const MatrixInstruction& instruction) {
  return grid_gemm::accepts(instruction, set);
}

}  // namespace

template <VectorSet set>
bool Kernels<set>::accepts(const MatrixInstruction& instruction) {
  return has(set) && (is_fused<set>(instruction) || is_grouped<set>(instruction) ||
                      is_integer<set>(instruction) || is_on_grids<set>(instruction) ||
                      chain_gemm::accepts(instruction, set));
}

template <VectorSet set>
void Kernels<set>::run(const MatrixInstruction& instruction, const MatrixBatch& batch,
                       std::int64_t begin, std::int64_t end) {
  if (is_fused<set>(instruction)) return fused_gemm::run(instruction, batch, begin, end, set);
  if (is_grouped<set>(instruction)) return group_gemm::run(instruction, batch, begin, end, set);
  if (is_integer<set>(instruction)) return integer_gemm::run(instruction, batch, begin, end, set);
  if (is_on_grids<set>(instruction)) return grid_gemm::run(instruction, batch, begin, end, set);
  chain_gemm::run(instruction, batch, begin, end, set);
}

template <VectorSet set>
void Kernels<set>::multiply(const MatrixInstruction& instruction, const MatrixProduct& product,
                            int threads) {
  if (is_fused<set>(instruction)) return fused_gemm::multiply(instruction, product, threads, set);
  if (is_grouped<set>(instruction)) return group_gemm::multiply(instruction, product, threads, set);
  if (is_integer<set>(instruction))
    return integer_gemm::multiply(instruction, product, threads, set);
  if (is_on_grids<set>(instruction)) return grid_gemm::multiply(instruction, product, threads, set);
  chain_gemm::multiply(instruction, product, threads, set);
}

template struct Kernels<VectorSet::avx512>;
template struct Kernels<VectorSet::avx2>;
template struct Kernels<VectorSet::neon>;

}  // namespace guardbit::emulator::vector_engines
