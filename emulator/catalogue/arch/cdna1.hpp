#pragma once

#include "emulator/catalogue/families.hpp"

// AMD CDNA1: MI100. FP32 is an FMA chain; F16 and BF16 products and the addend are summed without
// error and rounded once per block (NUMERICS 4.1). This project has measured nothing of
// AMD.
namespace guardbit::emulator::cdna1 {

using namespace formats;

inline constexpr AccumulatorSpec fp32_chain = {.summation = Summation::fma_chain,
                                               .result = Rounding::nearest_even,
                                               .nan = NanPolicy::unspecified};
inline constexpr AccumulatorSpec f16_to_fp32 = {.summation = Summation::exact,
                                                .terms = 4,
                                                .result = Rounding::nearest_even,
                                                .nan = NanPolicy::unspecified};
inline constexpr AccumulatorSpec bf16_to_fp32 = {.summation = Summation::exact,
                                                 .terms = 2,
                                                 .result = Rounding::nearest_even,
                                                 .nan = NanPolicy::unspecified,
                                                 .underflowed_sum = ZeroSign::of_sum};
inline constexpr AccumulatorSpec int8_to_int32 = {.summation = Summation::integer};

inline constexpr Evidence mi100 = {Basis::documented,
                                   "MMA-Sim, arXiv 2511.10909 (MI100); no recording here"};
inline constexpr Evidence mi100_bf16 = {
    Basis::documented,
    "MMA-Sim, arXiv 2511.10909 (MI100); another model, arXiv 2609.14845, has other overflows; no recording here"};
inline constexpr Evidence exact = {Basis::documented,
                                   "AMD CDNA ISA: exact, wraps; no recording here"};

inline Instructions instructions() {
  Machine m("cdna1");
  const auto add = [&m](std::string_view name, const Shape& shape, const Format& f,
                        const AccumulatorPair& cd, const AccumulatorSpec& spec,
                        const Evidence& evidence) {
    m.named(name, Family::mfma, shape, {f, f}, cd, native(spec, cd, evidence));
  };
  add("v_mfma_f32_32x32x1f32", {32, 32, 1}, fp32, to_fp32, fp32_chain, mi100);
  add("v_mfma_f32_16x16x1f32", {16, 16, 1}, fp32, to_fp32, fp32_chain, mi100);
  add("v_mfma_f32_4x4x1f32", {4, 4, 1}, fp32, to_fp32, fp32_chain, mi100);
  add("v_mfma_f32_32x32x2f32", {32, 32, 2}, fp32, to_fp32, fp32_chain, mi100);
  add("v_mfma_f32_16x16x4f32", {16, 16, 4}, fp32, to_fp32, fp32_chain, mi100);
  add("v_mfma_f32_32x32x4f16", {32, 32, 4}, fp16, to_fp32, f16_to_fp32, mi100);
  add("v_mfma_f32_16x16x4f16", {16, 16, 4}, fp16, to_fp32, f16_to_fp32, mi100);
  add("v_mfma_f32_4x4x4f16", {4, 4, 4}, fp16, to_fp32, f16_to_fp32, mi100);
  add("v_mfma_f32_32x32x8f16", {32, 32, 8}, fp16, to_fp32, f16_to_fp32, mi100);
  add("v_mfma_f32_16x16x16f16", {16, 16, 16}, fp16, to_fp32, f16_to_fp32, mi100);
  add("v_mfma_f32_32x32x2bf16", {32, 32, 2}, bf16, to_fp32, bf16_to_fp32, mi100_bf16);
  add("v_mfma_f32_16x16x2bf16", {16, 16, 2}, bf16, to_fp32, bf16_to_fp32, mi100_bf16);
  add("v_mfma_f32_4x4x2bf16", {4, 4, 2}, bf16, to_fp32, bf16_to_fp32, mi100_bf16);
  add("v_mfma_f32_32x32x4bf16", {32, 32, 4}, bf16, to_fp32, bf16_to_fp32, mi100_bf16);
  add("v_mfma_f32_16x16x8bf16", {16, 16, 8}, bf16, to_fp32, bf16_to_fp32, mi100_bf16);
  add("v_mfma_i32_32x32x4i8", {32, 32, 4}, int8, to_int32, int8_to_int32, exact);
  add("v_mfma_i32_16x16x4i8", {16, 16, 4}, int8, to_int32, int8_to_int32, exact);
  add("v_mfma_i32_4x4x4i8", {4, 4, 4}, int8, to_int32, int8_to_int32, exact);
  add("v_mfma_i32_32x32x8i8", {32, 32, 8}, int8, to_int32, int8_to_int32, exact);
  add("v_mfma_i32_16x16x16i8", {16, 16, 16}, int8, to_int32, int8_to_int32, exact);
  return m.take();
}

}  // namespace guardbit::emulator::cdna1
