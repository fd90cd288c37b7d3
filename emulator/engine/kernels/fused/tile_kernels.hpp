#pragma once

#include "emulator/engine/kernels/fused/fp32_lanes.hpp"
#include "emulator/engine/kernels/fused/fp64_pairs.hpp"
#include "emulator/engine/kernels/fused/fused_kernels.hpp"
#include "emulator/engine/kernels/fused/fused_product.hpp"

namespace guardbit::emulator::fused {

template <class Isa>
bool has_tile(const FusedInstruction& instruction) {
  return instruction.lane == LaneType::fp32
             ? tile_functions<Fp32Lanes<Isa>>(instruction).normal != nullptr
             : tile_functions<Fp64Pairs<Isa>>(instruction).normal != nullptr;
}

template <class Isa>
void multiply_by_tiles(const FusedInstruction& instruction, const MatrixProduct& product,
                       int threads) {
  if (instruction.lane == LaneType::fp32) {
    multiply<Fp32Lanes<Isa>>(instruction, product, threads);
  } else {
    multiply<Fp64Pairs<Isa>>(instruction, product, threads);
  }
}

template <class Isa>
constexpr Kernels kernels_of() {
  return {has_tile<Isa>, multiply_by_tiles<Isa>, can_spread<Isa>};
}

}  // namespace guardbit::emulator::fused
