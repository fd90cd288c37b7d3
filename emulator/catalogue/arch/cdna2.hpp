#pragma once

#include "emulator/catalogue/arch/cdna1.hpp"

// AMD CDNA2: MI210, MI250. F16 and BF16 products are rounded and added in pairs, with subnormal
// operands and results flushed (NUMERICS 4.1).
namespace guardbit::emulator::cdna2 {

using namespace formats;

inline constexpr AccumulatorSpec pairwise_of_four = {.summation = Summation::pairwise,
                                                     .terms = 4,
                                                     .result = Rounding::nearest_even,
                                                     .input = Subnormals::flush,
                                                     .output = Subnormals::flush,
                                                     .nan = NanPolicy::unspecified};
inline constexpr AccumulatorSpec pairwise_of_two = [] {
  AccumulatorSpec spec = pairwise_of_four;
  spec.terms = 2;
  return spec;
}();
inline constexpr AccumulatorSpec fp64_chain = {.summation = Summation::fma_chain,
                                               .result = Rounding::nearest_even,
                                               .nan = NanPolicy::unspecified};

inline constexpr Evidence mi250 = {Basis::documented,
                                   "MMA-Sim, arXiv 2511.10909 (MI250X); no recording here"};

inline constexpr Evidence mi250_bf16 = {
    Basis::documented,
    "MMA-Sim, arXiv 2511.10909 (MI250X); another model, arXiv 2609.14845, differs where a product reaches 2^128; no recording here"};

inline Instructions instructions() {
  Machine m("cdna2");
  const auto add = [&m](std::string_view name, const Shape& shape, const Format& f,
                        const AccumulatorPair& cd, const AccumulatorSpec& spec,
                        const Evidence& evidence) {
    m.named(name, Family::mfma, shape, {f, f}, cd, native(spec, cd, evidence));
  };
  add("v_mfma_f64_16x16x4f64", {16, 16, 4}, fp64, to_fp64, fp64_chain, mi250);
  add("v_mfma_f64_4x4x4f64", {4, 4, 4}, fp64, to_fp64, fp64_chain, mi250);
  add("v_mfma_f32_32x32x1f32", {32, 32, 1}, fp32, to_fp32, cdna1::fp32_chain, mi250);
  add("v_mfma_f32_16x16x1f32", {16, 16, 1}, fp32, to_fp32, cdna1::fp32_chain, mi250);
  add("v_mfma_f32_4x4x1f32", {4, 4, 1}, fp32, to_fp32, cdna1::fp32_chain, mi250);
  add("v_mfma_f32_32x32x2f32", {32, 32, 2}, fp32, to_fp32, cdna1::fp32_chain, mi250);
  add("v_mfma_f32_16x16x4f32", {16, 16, 4}, fp32, to_fp32, cdna1::fp32_chain, mi250);
  add("v_mfma_f32_32x32x4f16", {32, 32, 4}, fp16, to_fp32, pairwise_of_four, mi250);
  add("v_mfma_f32_16x16x4f16", {16, 16, 4}, fp16, to_fp32, pairwise_of_four, mi250);
  add("v_mfma_f32_4x4x4f16", {4, 4, 4}, fp16, to_fp32, pairwise_of_four, mi250);
  add("v_mfma_f32_32x32x8f16", {32, 32, 8}, fp16, to_fp32, pairwise_of_four, mi250);
  add("v_mfma_f32_16x16x16f16", {16, 16, 16}, fp16, to_fp32, pairwise_of_four, mi250);
  add("v_mfma_f32_32x32x4bf16_1k", {32, 32, 4}, bf16, to_fp32, pairwise_of_four, mi250_bf16);
  add("v_mfma_f32_16x16x4bf16_1k", {16, 16, 4}, bf16, to_fp32, pairwise_of_four, mi250_bf16);
  add("v_mfma_f32_4x4x4bf16_1k", {4, 4, 4}, bf16, to_fp32, pairwise_of_four, mi250_bf16);
  add("v_mfma_f32_32x32x8bf16_1k", {32, 32, 8}, bf16, to_fp32, pairwise_of_four, mi250_bf16);
  add("v_mfma_f32_16x16x16bf16_1k", {16, 16, 16}, bf16, to_fp32, pairwise_of_four, mi250_bf16);
  add("v_mfma_f32_32x32x2bf16", {32, 32, 2}, bf16, to_fp32, pairwise_of_two, mi250_bf16);
  add("v_mfma_f32_16x16x2bf16", {16, 16, 2}, bf16, to_fp32, pairwise_of_two, mi250_bf16);
  add("v_mfma_f32_4x4x2bf16", {4, 4, 2}, bf16, to_fp32, pairwise_of_two, mi250_bf16);
  add("v_mfma_f32_32x32x4bf16", {32, 32, 4}, bf16, to_fp32, pairwise_of_two, mi250_bf16);
  add("v_mfma_f32_16x16x8bf16", {16, 16, 8}, bf16, to_fp32, pairwise_of_two, mi250_bf16);
  add("v_mfma_i32_32x32x4i8", {32, 32, 4}, int8, to_int32, cdna1::int8_to_int32, cdna1::exact);
  add("v_mfma_i32_16x16x4i8", {16, 16, 4}, int8, to_int32, cdna1::int8_to_int32, cdna1::exact);
  add("v_mfma_i32_4x4x4i8", {4, 4, 4}, int8, to_int32, cdna1::int8_to_int32, cdna1::exact);
  add("v_mfma_i32_32x32x8i8", {32, 32, 8}, int8, to_int32, cdna1::int8_to_int32, cdna1::exact);
  add("v_mfma_i32_16x16x16i8", {16, 16, 16}, int8, to_int32, cdna1::int8_to_int32, cdna1::exact);
  return m.take();
}

}  // namespace guardbit::emulator::cdna2
