#pragma once

#include "emulator/catalogue/arch/evidence.hpp"
#include "emulator/catalogue/compositions.hpp"
#include "emulator/catalogue/families.hpp"

// Volta: V100. Four products per block, no extra alignment bit (NUMERICS 1.2, 3.6, 3.7).
namespace guardbit::emulator::sm_70 {

using namespace formats;

inline constexpr AccumulatorSpec f16_to_fp32 = {
    .terms = 4, .kept_fraction_bits = 23, .min_exponent = -131, .result = Rounding::toward_zero};
inline constexpr AccumulatorSpec f16_to_fp16 = {
    .terms = 4, .kept_fraction_bits = 23, .min_exponent = -19, .result = Rounding::nearest_even};

inline constexpr Evidence v100 = {
    Basis::documented, "MATLAB-tensor-core V100 recordings reproduced; MMA-Sim, arXiv 2511.10909"};
inline constexpr Evidence mixed = {
    Basis::inferred,
    "C and D of different widths: taken as one block chain that ends in D; no recording"};

inline Instructions instructions() {
  Machine m("sm_70");
  const Pairs f16 = {{fp16, fp16}};
  m.mma({{8, 8, 4}}, f16, to_fp32, native(f16_to_fp32, to_fp32, v100));
  m.mma({{8, 8, 4}}, f16, to_fp16, native(f16_to_fp16, to_fp16, f16_results));
  m.mma({{8, 8, 4}}, f16, {fp16, fp32}, native(f16_to_fp32, to_fp32, mixed));

  const auto tiles = {Shape{16, 16, 16}, Shape{32, 8, 16}, Shape{8, 32, 16}};
  m.wmma(tiles, f16, to_fp32, native(f16_to_fp32, to_fp32, v100));
  m.wmma(tiles, f16, to_fp16, native(f16_to_fp16, to_fp16, f16_results));
  m.wmma(tiles, f16, {fp16, fp32}, native(f16_to_fp32, to_fp32, mixed));
  m.wmma(tiles, f16, {fp32, fp16}, narrowed_after(f16_to_fp32, fp32, fp16, mixed));
  return m.take();
}

}  // namespace guardbit::emulator::sm_70
