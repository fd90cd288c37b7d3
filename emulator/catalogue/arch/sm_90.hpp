#pragma once

#include "emulator/catalogue/arch/sm_80.hpp"

// Hopper: H100, H200. Blocks of 32 bytes with two extra alignment bits; warp-group instructions
// (wgmma) with a native FP8 unit of 13 fraction bits; the warp-level FP8 instructions are emulated
// (NUMERICS 0.1, 1.2, 1.5, 3.4).
namespace guardbit::emulator::sm_90 {

using namespace formats;

inline constexpr AccumulatorSpec f16_to_fp32 = {
    .terms = 16, .kept_fraction_bits = 25, .min_exponent = -133, .result = Rounding::toward_zero};
inline constexpr AccumulatorSpec f16_to_fp16 = {
    .terms = 16, .kept_fraction_bits = 25, .min_exponent = -21, .result = Rounding::nearest_even};
inline constexpr AccumulatorSpec tf32_to_fp32 = {
    .terms = 8, .kept_fraction_bits = 25, .min_exponent = -133, .result = Rounding::toward_zero};
inline constexpr AccumulatorSpec tf32_k4_to_fp32 = {
    .terms = 4, .kept_fraction_bits = 25, .min_exponent = -133, .result = Rounding::toward_zero};

inline constexpr AccumulatorSpec wgmma_fp8_to_fp32 = {.terms = 32,
                                                      .kept_fraction_bits = 13,
                                                      .min_exponent = -133,
                                                      .result_fraction_bits = 13,
                                                      .result = Rounding::toward_zero};
inline constexpr AccumulatorSpec wgmma_fp8_to_fp16 = {
    .terms = 32, .kept_fraction_bits = 13, .min_exponent = -21, .result = Rounding::nearest_even};

// Every form was recorded on an H200 and compared with this page on the device (CUDA 13.0);
// docs/HARDWARE.md has the counts, and under these numbers the questions that decide.
inline constexpr Evidence measured_floating = {Basis::measured, "H200: Q2, Q3, Q7-Q13, Q22"};
inline constexpr Evidence measured_to_fp16 = {Basis::measured, "H200: Q1, Q2, Q3c, Q6, Q7, Q12"};
inline constexpr Evidence measured_sparse = {Basis::measured, "H200: Q14; else as the dense form"};
inline constexpr Evidence measured_fp64 = {Basis::measured, "H200: Q15, Q15b, Q15c"};
inline constexpr Evidence measured_integer = {Basis::measured, "H200: Q16, Q16b"};
inline constexpr Evidence measured_quad = {Basis::measured, "H200: Q2, Q17"};
inline constexpr Evidence measured_mixed = {Basis::measured, "H200: Q2, Q3c, Q6"};
inline constexpr Evidence measured_fp8 = {Basis::measured, "H200: Q18, Q18b"};
inline constexpr Evidence measured_wgmma = {Basis::measured, "H200: Q1b, Q4, Q5, Q19, Q20"};
inline constexpr Evidence toolkit_12_4 = {
    Basis::inferred,
    "composition read from SASS of ptxas 12.4 and assumed up to 13.0, whose recording differs; no recording"};

/// FP8 mma to f32 changed its composition between ptxas 12.4 and 13.0; where exactly is not known.
inline constexpr Toolkit from_13_0 = {1300, 0};
/// PTX has the form with f16 results since version 8.7, which came with 12.8.
inline constexpr Toolkit from_12_8 = {1208, 0};
inline constexpr Toolkit before_13_0 = {0, 1300};

inline constexpr sm_80::WarpAccumulators hopper = {.f16_to_fp32 = f16_to_fp32,
                                                   .f16_to_fp16 = f16_to_fp16,
                                                   .tf32_to_fp32 = tf32_to_fp32,
                                                   .wmma_tf32_to_fp32 = tf32_k4_to_fp32,
                                                   .floating = measured_floating,
                                                   .floating_to_fp16 = measured_to_fp16,
                                                   .sparse = measured_sparse,
                                                   .double_precision = measured_fp64,
                                                   .integer = measured_integer,
                                                   .four_bit_integer = measured_integer,
                                                   .xor_bits = measured_integer,
                                                   .and_bits = measured_integer,
                                                   .quad = measured_quad,
                                                   .mixed = measured_mixed};

inline void add_fp8_instructions(Machine& m, const Evidence& evidence,
                                 const Toolkit& fp32_toolkit) {
  const Pairs fp8 = every_pair({e4m3, e5m2});
  for (const AccumulatorPair& cd : {to_fp32, to_fp16}) {
    const AccumulatorSpec& hmma = cd.d == fp32 ? f16_to_fp32 : f16_to_fp16;
    const Toolkit toolkit = cd.d == fp32 ? fp32_toolkit : from_12_8;
    m.mma({{16, 8, 16}, {16, 8, 32}}, fp8, cd, fp8_chained(hmma, cd.d, evidence, toolkit));
  }
  m.mma_sparse({{16, 8, 64}}, fp8, to_fp32, fp8_chained(f16_to_fp32, fp32, evidence, fp32_toolkit));
}

inline Instructions instructions() {
  Machine m("sm_90");
  sm_80::add_warp_instructions(m, hopper);
  for (const auto& [qualifier, rounding] : fp64_roundings) {
    m.mma({{16, 8, 4}, {16, 8, 8}, {16, 8, 16}}, {{fp64, fp64}}, to_fp64,
          native(fp64_chain(rounding), to_fp64, measured_fp64), qualifier);
  }
  add_fp8_instructions(m, measured_fp8, from_13_0);
  const Pairs fp8 = every_pair({e4m3, e5m2});
  m.mma({{16, 8, 16}, {16, 8, 32}}, fp8, to_fp32,
        fp8_parallel(f16_to_fp32, fp32, toolkit_12_4, before_13_0));
  m.mma_sparse({{16, 8, 64}}, fp8, to_fp32,
               fp8_parallel(f16_to_fp32, fp32, toolkit_12_4, before_13_0));

  for (const bool sparse : {false, true}) {
    const int k = sparse ? 2 : 1;
    m.wgmma(16 * k, {{fp16, fp16}}, to_fp32, native(f16_to_fp32, to_fp32, measured_wgmma), sparse);
    m.wgmma(16 * k, {{fp16, fp16}}, to_fp16, native(f16_to_fp16, to_fp16, measured_wgmma), sparse);
    m.wgmma(16 * k, {{bf16, bf16}}, to_fp32, native(f16_to_fp32, to_fp32, measured_wgmma), sparse);
    m.wgmma(8 * k, {{tf32, tf32}}, to_fp32, native(tf32_to_fp32, to_fp32, measured_wgmma), sparse);
    m.wgmma(32 * k, fp8, to_fp32, native(wgmma_fp8_to_fp32, to_fp32, measured_wgmma), sparse);
    m.wgmma(32 * k, fp8, to_fp16, native(wgmma_fp8_to_fp16, to_fp16, measured_wgmma), sparse);
    m.wgmma_integer(32 * k, every_pair({int8, uint8}), measured_wgmma, sparse);
  }
  m.wgmma_bits(256, measured_wgmma);
  return m.take();
}

}  // namespace guardbit::emulator::sm_90
