#include "emulator/engine/kernels/fused/fused_avx512.hpp"

// All that a template below could instantiate comes before the pragma, so that no other code of
// this program becomes AVX-512 code.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <limits>
#include <optional>
#include <vector>

#include "emulator/engine/cpu.hpp"
#include "emulator/engine/engine.hpp"
#include "emulator/engine/kernels/fused/fused_arithmetic.hpp"
#include "emulator/engine/kernels/fused/sparse_specials.hpp"
#include "emulator/engine/kernels/portable/portable.hpp"
#include "emulator/engine/kernels/shared/byte_panels.hpp"
#include "emulator/engine/kernels/shared/default_environment.hpp"
#include "emulator/engine/kernels/shared/panel_memory.hpp"
#include "emulator/model/mma.hpp"
#include "formats/support/parallel.hpp"

#if defined(__x86_64__)
#include <immintrin.h>

// GCC 12's own headers leave the operand of _mm512_undefined unset, and warn of it.
#pragma GCC diagnostic ignored "-Wuninitialized"
#if defined(__clang__)
#pragma clang attribute push(                                                                \
    __attribute__((                                                                          \
        target("avx512f,avx512bw,avx512dq,avx512vl,avx512bitalg,avx512vpopcntdq,avx512vbmi," \
               "avx2,fma,f16c"))),                                                           \
    apply_to = function)
#else
#pragma GCC target( \
    "avx512f,avx512bw,avx512dq,avx512vl,avx512bitalg,avx512vpopcntdq,avx512vbmi,avx2,fma,f16c")
#endif
#include "emulator/engine/kernels/fused/fp32_lanes.hpp"
#include "emulator/engine/kernels/fused/fp64_lanes.hpp"
#include "emulator/engine/kernels/fused/fused_product.hpp"
#endif

namespace guardbit::emulator::avx512 {

#if defined(__x86_64__)

namespace {

using Fp64 = fused::avx512::Fp64Lanes;
using Fp32 = fused::avx512::Fp32Lanes;

bool has_kernel(const fused::FusedInstruction& instruction) {
  return instruction.lane == fused::LaneType::fp32
             ? fused::tile_functions<Fp32>(instruction).normal != nullptr
             : fused::tile_functions<Fp64>(instruction).normal != nullptr;
}

/// What executes batches that are not for tiles.
auto run_by_executions(const MatrixInstruction& instruction) {
  return portable::accepts(instruction) ? portable::run : execute;
}

}  // namespace

bool accepts(const MatrixInstruction& instruction) {
  if (!cpu::features().avx512_kernels) return false;
  const std::optional<fused::FusedInstruction> fused = fused::fused_instruction(instruction);
  return fused && has_kernel(*fused);
}

void run(const MatrixInstruction& instruction, const MatrixBatch& batch, std::int64_t begin,
         std::int64_t end) {
  const fused::FusedInstruction fused = *fused::fused_instruction(instruction);
  const bool plain = fused.sparsity.group_elements == 0 && fused.scale_k == 0;
  // What packing takes is won back by many outputs of an execution only.
  if (!plain || fused::is_small(batch.shape))
    return run_by_executions(instruction)(instruction, batch, begin, end);
  if (fused.lane == fused::LaneType::fp32) {
    fused::run_batch<Fp32>(fused, instruction, batch, begin, end);
  } else {
    fused::run_batch<Fp64>(fused, instruction, batch, begin, end);
  }
}

void multiply(const MatrixInstruction& instruction, const MatrixProduct& product, int threads) {
  const fused::FusedInstruction fused = *fused::fused_instruction(instruction);
  const auto by_tiles = [&](const MatrixProduct& x) {
    if (fused.lane == fused::LaneType::fp32) {
      fused::multiply<Fp32>(fused, x, threads);
    } else {
      fused::multiply<Fp64>(fused, x, threads);
    }
  };
  if (fused::can_spread(fused, product)) return by_tiles(product);
  const Engine by_executions{"", "", nullptr, run_by_executions(instruction)};
  if (has_shared_places(instruction, product))
    return emulator::multiply(by_executions, instruction, product, threads);
  sparse_specials::multiply(instruction, product, threads, by_tiles, [&](const MatrixProduct& x) {
    emulator::multiply(by_executions, instruction, x, 1);
  });
}

#if defined(__clang__)
#pragma clang attribute pop
#endif

#else

bool accepts(const MatrixInstruction&) { return false; }
void run(const MatrixInstruction&, const MatrixBatch&, std::int64_t, std::int64_t) {}
void multiply(const MatrixInstruction&, const MatrixProduct&, int) {}

#endif

}  // namespace guardbit::emulator::avx512
