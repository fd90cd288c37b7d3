#pragma once

#include "emulator/catalogue/arch/sm_80.hpp"

// Ada: L40S, RTX 40. Ampere's units, and FP8 with a 13-bit accumulator: 16 products per block,
// results in E8M13 (NUMERICS 1.2).
namespace guardbit::emulator::sm_89 {

using namespace formats;

inline constexpr AccumulatorSpec fp8_to_fp32 = {.terms = 16,
                                                .kept_fraction_bits = 13,
                                                .min_exponent = -132,
                                                .result_fraction_bits = 13,
                                                .result = Rounding::toward_zero};
inline constexpr AccumulatorSpec fp8_to_fp16 = {
    .terms = 16, .kept_fraction_bits = 13, .min_exponent = -20, .result = Rounding::nearest_even};

inline constexpr Evidence l40s = {
    Basis::documented,
    "MATLAB-tensor-core Ada and L40S recordings reproduced; MMA-Sim, arXiv 2511.10909"};

inline constexpr sm_80::WarpAccumulators ada = [] {
  sm_80::WarpAccumulators x = sm_80::ampere;
  x.floating = l40s;
  return x;
}();

inline Instructions instructions() {
  Machine m("sm_89");
  sm_80::add_warp_instructions(m, ada);
  const Pairs fp8 = every_pair({e4m3, e5m2});
  m.mma({{16, 8, 16}, {16, 8, 32}}, fp8, to_fp32, native(fp8_to_fp32, to_fp32, l40s));
  m.mma({{16, 8, 16}, {16, 8, 32}}, fp8, to_fp16, native(fp8_to_fp16, to_fp16, l40s));
  m.mma_sparse({{16, 8, 64}}, fp8, to_fp32, native(fp8_to_fp32, to_fp32, sm_80::sparse_like_dense));
  return m.take();
}

}  // namespace guardbit::emulator::sm_89
