#pragma once

#include <string>

#include "emulator/catalogue/arch/rdna3.hpp"
#include "emulator/catalogue/compositions.hpp"

// AMD RDNA4: the matrix instructions of Radeon RX 9000 and AI PRO R9000 are chains of DOT4, whose
// products are fused in pairs before they meet C; every subnormal counts. Waves of 32 and of 64
// take k in different orders (NUMERICS 4.2). This project has measured nothing of AMD.
namespace guardbit::emulator::rdna4 {

using namespace formats;

inline constexpr AccumulatorSpec to_fp32_by_four = {.summation = Summation::two_stage,
                                                    .terms = 4,
                                                    .kept_fraction_bits = 24,
                                                    .alignment = Rounding::downward,
                                                    .min_exponent = -126,
                                                    .result = Rounding::nearest_even,
                                                    .nan = NanPolicy::products_addend,
                                                    .interleave = Interleave::pairs,
                                                    .zero_product_exponent = -999,
                                                    .sum_kept_fraction_bits = 26,
                                                    .addend_cutoff = 24};
/// Every step's sum is rounded straight to F16.
inline constexpr AccumulatorSpec f16_to_f16 = [] {
  AccumulatorSpec spec = to_fp32_by_four;
  spec.min_exponent = -14;
  return spec;
}();
/// Every step's sum is rounded to FP32, whose upper half is kept.
inline constexpr AccumulatorSpec bf16_to_bf16 = [] {
  AccumulatorSpec spec = to_fp32_by_four;
  spec.result_fraction_bits = 23;
  return spec;
}();
/// FP8: the four products are fused in one set.
inline constexpr AccumulatorSpec fp8_to_fp32 = [] {
  AccumulatorSpec spec = to_fp32_by_four;
  spec.interleave = Interleave::none;
  spec.nan = NanPolicy::products_alike;
  return spec;
}();

/// DOT2: one pair.
constexpr AccumulatorSpec by_two(AccumulatorSpec spec) {
  spec.terms = 2;
  spec.interleave = Interleave::none;
  return spec;
}

/// A wave of 32 swaps bits 2 and 3 of k: 0 to 3, 8 to 11, then 4 to 7, 12 to 15.
constexpr Arithmetic in_waves_of_32(const AccumulatorSpec& spec, const AccumulatorPair& cd,
                                    const Evidence& evidence) {
  constexpr Selection first = {8, 0b00001111}, second = {8, 0b11110000};
  return {{dot_step(spec, first, Source::c, cd.d), dot_step(spec, second, Source::step_0, cd.d)},
          evidence,
          {}};
}

inline constexpr Evidence r9700 = {
    Basis::documented,
    "AMD's emulator rocjitsu and answers of a Radeon AI PRO R9700 published with it, which tell neither 26 bits of C's grid from 27 nor the exponent of a zero C nor when a tiny negative C counts; no recording here"};
inline constexpr Evidence r9700_packed = {
    Basis::documented,
    "AMD's emulator rocjitsu and answers of a Radeon AI PRO R9700 published with it, of which only some were tried; FP16_OVFL = 0; no recording here"};
inline constexpr Evidence emulator_alone = {
    Basis::documented,
    "AMD's emulator rocjitsu, which names no recorded answers for it; no recording here"};

inline Instructions instructions() {
  Machine m("rdna4");
  const AccumulatorPair to_bf16 = rdna3::to_bf16;
  const OperandPair f16 = {fp16, fp16}, b16 = {bf16, bf16};
  const auto wmma = [&m](const std::string& name, const OperandPair& ab, const AccumulatorPair& cd,
                         const AccumulatorSpec& spec, const Evidence& evidence) {
    const Shape tile = {16, 16, 16};
    m.named(name + "_w32", Family::wmma, tile, ab, cd, in_waves_of_32(spec, cd, evidence));
    m.named(name + "_w64", Family::wmma, tile, ab, cd, native(spec, cd, evidence));
  };
  wmma("v_wmma_f32_16x16x16_f16", f16, to_fp32, to_fp32_by_four, r9700);
  wmma("v_wmma_f32_16x16x16_bf16", b16, to_fp32, to_fp32_by_four, r9700);
  wmma("v_wmma_f16_16x16x16_f16", f16, to_fp16, f16_to_f16, r9700_packed);
  wmma("v_wmma_bf16_16x16x16_bf16", b16, to_bf16, bf16_to_bf16, r9700_packed);

  const auto dot = [&m](const std::string& name, int k, const OperandPair& ab,
                        const AccumulatorPair& cd, const AccumulatorSpec& spec,
                        const Evidence& evidence) {
    m.named(name, Family::vector_dot, {1, 1, k}, ab, cd, native(spec, cd, evidence));
  };
  dot("v_dot2_f32_f16", 2, f16, to_fp32, by_two(to_fp32_by_four), r9700);
  dot("v_dot2_f32_bf16", 2, b16, to_fp32, by_two(to_fp32_by_four), r9700);
  dot("v_dot2_f16_f16", 2, f16, to_fp16, by_two(f16_to_f16), emulator_alone);
  dot("v_dot2_bf16_bf16", 2, b16, to_bf16, by_two(bf16_to_bf16), emulator_alone);
  const auto name_of_fp8 = [](const Format& f) { return std::string(f == e4m3 ? "fp8" : "bf8"); };
  for (const OperandPair& ab : every_pair({e4m3, e5m2}))
    dot("v_dot4_f32_" + name_of_fp8(ab.a) + "_" + name_of_fp8(ab.b), 4, ab, to_fp32, fp8_to_fp32,
        emulator_alone);
  rdna3::add_integers(m, "v_wmma_i32_16x16x16_iu8", Family::wmma, {16, 16, 16}, {int8, uint8});
  rdna3::add_integers(m, "v_wmma_i32_16x16x16_iu4", Family::wmma, {16, 16, 16}, {int4, uint4});
  rdna3::add_integers(m, "v_wmma_i32_16x16x32_iu4", Family::wmma, {16, 16, 32}, {int4, uint4});
  rdna3::add_integer_dots(m);
  return m.take();
}

}  // namespace guardbit::emulator::rdna4
