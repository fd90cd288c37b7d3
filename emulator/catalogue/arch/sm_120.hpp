#pragma once

#include "emulator/catalogue/arch/sm_100.hpp"

// Blackwell workstation: RTX PRO 6000, RTX 50 (sm_120), Spark (sm_121). Warp-level instructions
// only; FP8, FP6 and FP4 are native there (QMMA), with tcgen05's accumulators
// (NUMERICS 1.2, 1.6, 3.8).
namespace guardbit::emulator::sm_120 {

using namespace formats;

inline constexpr AccumulatorSpec narrow_to_fp32 = sm_100::narrow_to_fp32;
inline constexpr AccumulatorSpec narrow_to_fp16 = sm_100::narrow_to_fp16;

inline constexpr Evidence rtx_pro_6000 = {
    Basis::documented, "MMA-Sim, arXiv 2511.10909 (RTX PRO 6000); no recording here"};

inline constexpr sm_80::WarpAccumulators blackwell = [] {
  sm_80::WarpAccumulators x = sm_100::blackwell;
  x.floating = rtx_pro_6000;
  return x;
}();

inline void add_narrow_instructions(Machine& m) {
  const Pairs fp8 = every_pair({e4m3, e5m2});
  const Arithmetic to32 = native(narrow_to_fp32, to_fp32, rtx_pro_6000);
  const Arithmetic to16 = native(narrow_to_fp16, to_fp16, rtx_pro_6000);
  m.mma({{16, 8, 16}, {16, 8, 32}}, fp8, to_fp32, to32);
  m.mma({{16, 8, 16}, {16, 8, 32}}, fp8, to_fp16, to16);
  m.mma_sparse({{16, 8, 64}}, fp8, to_fp32, native(narrow_to_fp32, to_fp32, sm_100::sparse));
  m.mma_sparse({{16, 8, 64}}, fp8, to_fp16, native(narrow_to_fp16, to_fp16, sm_100::sparse), true);
  for (const bool is_sparse : {false, true}) {
    const int k = is_sparse ? 2 : 1;
    const Evidence& evidence = is_sparse ? sm_100::sparse : rtx_pro_6000;
    m.mma_kind("f8f6f4", {{16, 8, 32 * k}}, sm_100::narrow_pairs(), to_fp32,
               native(narrow_to_fp32, to_fp32, evidence), is_sparse);
    m.mma_kind("f8f6f4", {{16, 8, 32 * k}}, sm_100::narrow_pairs(), to_fp16,
               native(narrow_to_fp16, to_fp16, evidence), is_sparse);
    m.mma_block_scaled("mxf8f6f4", {16, 8, 32 * k}, sm_100::narrow_pairs(), {e8m0, 1},
                       native(narrow_to_fp32, to_fp32, evidence), is_sparse);
    const Pairs fp4 = {{e2m1, e2m1}};
    const Arithmetic fp4_sum = native(sm_100::fp4_block_scaled, to_fp32, evidence);
    m.mma_block_scaled("mxf4", {16, 8, 64 * k}, fp4, {e8m0, 2}, fp4_sum, is_sparse);
    m.mma_block_scaled("mxf4nvf4", {16, 8, 64 * k}, fp4, {e8m0, 2}, fp4_sum, is_sparse);
    m.mma_block_scaled("mxf4nvf4", {16, 8, 64 * k}, fp4, {e8m0, 4}, fp4_sum, is_sparse);
    m.mma_block_scaled("mxf4nvf4", {16, 8, 64 * k}, fp4, {ue4m3, 4}, fp4_sum, is_sparse);
  }
}

inline Instructions instructions() {
  Machine m("sm_120");
  sm_80::add_warp_instructions(m, blackwell);
  sm_100::add_fp64_tiles(m);
  add_narrow_instructions(m);
  return m.take();
}

}  // namespace guardbit::emulator::sm_120
