#pragma once

#include "emulator/catalogue/arch/cdna2.hpp"

// AMD CDNA3: MI300. Products are fused and truncated among themselves, then added to C with floors
// (NUMERICS 4.1). The sources disagree on details (31 or 32 bits; an FP8 kind may lose an infinite
// C), so the evidence is weak.
namespace guardbit::emulator::cdna3 {

using namespace formats;

inline constexpr AccumulatorSpec f16_to_fp32 = {.summation = Summation::two_stage,
                                                .terms = 8,
                                                .kept_fraction_bits = 24,
                                                .min_exponent = -126,
                                                .result = Rounding::nearest_even,
                                                .nan = NanPolicy::unspecified,
                                                .underflowed_sum = ZeroSign::of_sum,
                                                .zero_product_exponent = -999,
                                                .sum_kept_fraction_bits = 32,
                                                .total_kept_fraction_bits = 31,
                                                .product_overflow_exponent = 128};
inline constexpr AccumulatorSpec xf32_to_fp32 = [] {
  AccumulatorSpec spec = f16_to_fp32;
  spec.terms = 4;
  return spec;
}();
inline constexpr AccumulatorSpec fp8_to_fp32 = [] {
  AccumulatorSpec spec = f16_to_fp32;
  spec.terms = 16;
  spec.interleave = Interleave::even_odd;
  spec.addend_cutoff = 25;
  spec.product_overflow_exponent = 0;
  return spec;
}();

inline constexpr Evidence mi300 = {
    Basis::documented,
    "MMA-Sim, arXiv 2511.10909 (MI300X); sources differ in details; no recording here"};
inline constexpr Evidence mi300_bf16 = {
    Basis::documented,
    "MMA-Sim, arXiv 2511.10909 (MI300X); another model, arXiv 2609.14845, differs where a product reaches 2^128; no recording here"};
inline constexpr Evidence mi300_f16 = {
    Basis::documented,
    "MMA-Sim, arXiv 2511.10909 (MI300X); another model, arXiv 2609.14845, floors the sum at 31 bits where this one has 32, then 31; no recording here"};
inline constexpr Evidence sparse = {Basis::inferred,
                                    "the dense rule over the stored products; no recording"};

inline Instructions instructions() {
  Machine m("cdna3");
  const auto add = [&m](std::string_view name, const Shape& shape, const OperandPair& ab,
                        const AccumulatorPair& cd, const AccumulatorSpec& spec) {
    const Evidence& evidence = cd.d == int32                  ? cdna1::exact
                               : ab.a == bf16 || ab.a == tf32 ? mi300_bf16
                               : ab.a == fp16                 ? mi300_f16
                                                              : mi300;
    m.named(name, Family::mfma, shape, ab, cd, native(spec, cd, evidence));
  };
  const auto add_sparse = [&m](std::string_view name, const Shape& shape, const OperandPair& ab,
                               const AccumulatorPair& cd, const AccumulatorSpec& spec) {
    m.named_sparse(name, Family::mfma, shape, ab, cd, native(spec, cd, sparse));
  };
  const OperandPair f64 = {fp64, fp64}, f32 = {fp32, fp32}, xf32 = {tf32, tf32}, f16 = {fp16, fp16},
                    b16 = {bf16, bf16}, i8 = {int8, int8};
  add("v_mfma_f64_16x16x4_f64", {16, 16, 4}, f64, to_fp64, cdna2::fp64_chain);
  add("v_mfma_f64_4x4x4_4b_f64", {4, 4, 4}, f64, to_fp64, cdna2::fp64_chain);
  add("v_mfma_f32_32x32x1_2b_f32", {32, 32, 1}, f32, to_fp32, cdna1::fp32_chain);
  add("v_mfma_f32_16x16x1_4b_f32", {16, 16, 1}, f32, to_fp32, cdna1::fp32_chain);
  add("v_mfma_f32_4x4x1_16b_f32", {4, 4, 1}, f32, to_fp32, cdna1::fp32_chain);
  add("v_mfma_f32_32x32x2_f32", {32, 32, 2}, f32, to_fp32, cdna1::fp32_chain);
  add("v_mfma_f32_16x16x4_f32", {16, 16, 4}, f32, to_fp32, cdna1::fp32_chain);
  add("v_mfma_f32_16x16x8_xf32", {16, 16, 8}, xf32, to_fp32, xf32_to_fp32);
  add("v_mfma_f32_32x32x4_xf32", {32, 32, 4}, xf32, to_fp32, xf32_to_fp32);
  for (const auto& [type, ab] : {std::pair{"f16", f16}, std::pair{"bf16", b16}}) {
    const std::string t = type;
    add("v_mfma_f32_32x32x4_2b_" + t, {32, 32, 4}, ab, to_fp32, f16_to_fp32);
    add("v_mfma_f32_16x16x4_4b_" + t, {16, 16, 4}, ab, to_fp32, f16_to_fp32);
    add("v_mfma_f32_4x4x4_16b_" + t, {4, 4, 4}, ab, to_fp32, f16_to_fp32);
    add("v_mfma_f32_32x32x8_" + t, {32, 32, 8}, ab, to_fp32, f16_to_fp32);
    add("v_mfma_f32_16x16x16_" + t, {16, 16, 16}, ab, to_fp32, f16_to_fp32);
    add_sparse("v_smfmac_f32_16x16x32_" + t, {16, 16, 32}, ab, to_fp32, f16_to_fp32);
    add_sparse("v_smfmac_f32_32x32x16_" + t, {32, 32, 16}, ab, to_fp32, f16_to_fp32);
  }
  const auto fp8_name = [](const Format& f) { return std::string(f == e4m3fnuz ? "fp8" : "bf8"); };
  for (const OperandPair& ab : every_pair({e4m3fnuz, e5m2fnuz})) {
    const std::string types = fp8_name(ab.a) + "_" + fp8_name(ab.b);
    add("v_mfma_f32_16x16x32_" + types, {16, 16, 32}, ab, to_fp32, fp8_to_fp32);
    add("v_mfma_f32_32x32x16_" + types, {32, 32, 16}, ab, to_fp32, fp8_to_fp32);
    add_sparse("v_smfmac_f32_16x16x64_" + types, {16, 16, 64}, ab, to_fp32, fp8_to_fp32);
    add_sparse("v_smfmac_f32_32x32x32_" + types, {32, 32, 32}, ab, to_fp32, fp8_to_fp32);
  }
  add("v_mfma_i32_32x32x16_i8", {32, 32, 16}, i8, to_int32, cdna1::int8_to_int32);
  add("v_mfma_i32_16x16x32_i8", {16, 16, 32}, i8, to_int32, cdna1::int8_to_int32);
  add_sparse("v_smfmac_i32_16x16x64_i8", {16, 16, 64}, i8, to_int32, cdna1::int8_to_int32);
  add_sparse("v_smfmac_i32_32x32x32_i8", {32, 32, 32}, i8, to_int32, cdna1::int8_to_int32);
  return m.take();
}

}  // namespace guardbit::emulator::cdna3
