#pragma once

#include <array>
#include <string_view>

#include "emulator/catalogue/families.hpp"
#include "emulator/model/instruction.hpp"

// Instructions that are more than one accumulation: what ptxas (or the hardware's decoder) makes of
// one PTX instruction, as steps (NUMERICS 1.5). Scalar additions and FFMA of these sequences round
// to nearest even and keep subnormals.
namespace guardbit::emulator {

struct Fp64Rounding {
  std::string_view qualifier;
  Rounding rounding;
};
inline constexpr std::array fp64_roundings = {
    Fp64Rounding{"", Rounding::nearest_even}, Fp64Rounding{".rz", Rounding::toward_zero},
    Fp64Rounding{".rm", Rounding::downward}, Fp64Rounding{".rp", Rounding::upward}};

/// A chain of IEEE fused multiply-adds, as DMMA (NUMERICS 3.2).
constexpr AccumulatorSpec fp64_chain(Rounding rounding) {
  AccumulatorSpec spec;
  spec.summation = Summation::fma_chain;
  spec.result = rounding;
  spec.nan = NanPolicy::operand_bca;
  return spec;
}

/// Scalar FP32 or FP16 arithmetic of the CUDA cores: round to nearest even, canonical NaN.
constexpr AccumulatorSpec scalar_arithmetic() {
  AccumulatorSpec spec;
  spec.summation = Summation::fma_chain;
  spec.result = Rounding::nearest_even;
  return spec;
}

constexpr Step dot_step(const AccumulatorSpec& spec, Selection selection, Source addend,
                        const Format& result) {
  return {Operation::dot, selection, addend, Source::positive_zero, spec, result, {}};
}
/// An accumulation on operands that the compiler has unpacked to f16.
constexpr Step unpacked_dot_step(const AccumulatorSpec& spec, Selection selection, Source addend,
                                 const Format& result) {
  return {Operation::dot, selection, addend, Source::positive_zero, spec, result, formats::fp16};
}
constexpr Step add_step(Source addend, Source other, const Format& result) {
  return {Operation::add, {}, addend, other, scalar_arithmetic(), result, {}};
}
constexpr Step convert_step(Source from, const Format& result) {
  return {Operation::convert, {}, from, Source::positive_zero, scalar_arithmetic(), result, {}};
}

inline constexpr Selection every_k = {1, 0b1};
inline constexpr Selection low_half_of_four = {4, 0b0011};
inline constexpr Selection high_half_of_four = {4, 0b1100};

/// An accumulation in a wide format whose result alone is rounded to D.
constexpr Arithmetic narrowed_after(const AccumulatorSpec& spec, const Format& wide,
                                    const Format& d, const Evidence& evidence) {
  return {
      {dot_step(spec, every_k, Source::c, wide), convert_step(Source::step_0, d)}, evidence, {}};
}

/// A narrow C that is widened before the accumulation, which changes the exponent of a subnormal C.
constexpr Arithmetic widened_before(const AccumulatorSpec& spec, const Format& wide,
                                    const Evidence& evidence) {
  return {
      {convert_step(Source::c, wide), dot_step(spec, every_k, Source::step_0, wide)}, evidence, {}};
}

/// mma.m8n8k4 to f32 without HMMA.884: an FFMA chain from +0, the addend last.
constexpr Arithmetic quad_to_fp32(const Evidence& evidence) {
  return {{dot_step(scalar_arithmetic(), every_k, Source::positive_zero, formats::fp32),
           add_step(Source::c, Source::step_0, formats::fp32)},
          evidence,
          {}};
}

/// mma.m8n8k4 to f16 without HMMA.884: two pairs in f32, (c + first) + second, rounded to f16 at
/// the end. Starting a chain from -0 is the same as starting it with a plain product.
constexpr Arithmetic quad_to_fp16(const Evidence& evidence) {
  return {{dot_step(scalar_arithmetic(), low_half_of_four, Source::negative_zero, formats::fp32),
           dot_step(scalar_arithmetic(), high_half_of_four, Source::negative_zero, formats::fp32),
           add_step(Source::c, Source::step_0, formats::fp32),
           add_step(Source::step_2, Source::step_1, formats::fp32),
           convert_step(Source::step_3, formats::fp16)},
          evidence,
          {}};
}

/// FP8 mma without QMMA, from toolkit 13.0 on: operands widen to f16; two HMMAs chained from zero,
/// the addend last. The byte unpacking deals k % 4 in {0, 1} to the first HMMA.
constexpr Arithmetic fp8_chained(const AccumulatorSpec& hmma, const Format& d,
                                 const Evidence& evidence, const Toolkit& toolkit) {
  return {{unpacked_dot_step(hmma, low_half_of_four, Source::positive_zero, d),
           unpacked_dot_step(hmma, high_half_of_four, Source::step_0, d),
           add_step(Source::c, Source::step_1, d)},
          evidence,
          toolkit};
}

/// The same from toolkit 12.4: the two HMMAs side by side, then two additions.
constexpr Arithmetic fp8_parallel(const AccumulatorSpec& hmma, const Format& d,
                                  const Evidence& evidence, const Toolkit& toolkit) {
  return {{unpacked_dot_step(hmma, low_half_of_four, Source::positive_zero, d),
           unpacked_dot_step(hmma, high_half_of_four, Source::positive_zero, d),
           add_step(Source::step_0, Source::step_1, d), add_step(Source::c, Source::step_2, d)},
          evidence,
          toolkit};
}

}  // namespace guardbit::emulator
