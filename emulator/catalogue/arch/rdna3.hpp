#pragma once

#include <string>

#include "emulator/catalogue/families.hpp"

// AMD RDNA3: the matrix instructions of Radeon RX 7000 and PRO W7000 are chains of DOT2. The grid
// is chosen from sums of the factors' exponents; a term whose sign is not C's is subtracted by
// inverting its bits, without the one that would make it exact (NUMERICS 4.2). This project has
// measured nothing of AMD.
namespace guardbit::emulator::rdna3 {

using namespace formats;

inline constexpr AccumulatorPair to_bf16 = {bf16, bf16};

inline constexpr AccumulatorSpec f16_to_fp32 = {.summation = Summation::two_grids,
                                                .terms = 2,
                                                .kept_fraction_bits = 24,
                                                .min_exponent = -126,
                                                .result = Rounding::nearest_even,
                                                .output = Subnormals::daz_ftz,
                                                .nan = NanPolicy::products_addend,
                                                .zero_product_exponent = -999,
                                                .addend_kept_fraction_bits = 26,
                                                .subtraction = Subtraction::ones_complement};
/// BF16 factors and C are flushed; a factor of F16 is not.
inline constexpr AccumulatorSpec bf16_to_fp32 = [] {
  AccumulatorSpec spec = f16_to_fp32;
  spec.input = Subnormals::daz_ftz;
  return spec;
}();
/// Every step's sum is rounded straight to F16, subnormals kept.
inline constexpr AccumulatorSpec f16_to_f16 = [] {
  AccumulatorSpec spec = f16_to_fp32;
  spec.min_exponent = -14;
  spec.output = Subnormals::keep;
  return spec;
}();
/// Every step's sum is rounded to FP32, whose upper half is kept.
inline constexpr AccumulatorSpec bf16_to_bf16 = [] {
  AccumulatorSpec spec = bf16_to_fp32;
  spec.result_fraction_bits = 23;
  return spec;
}();

inline constexpr Evidence w7900 = {
    Basis::documented,
    "AMD's emulator rocjitsu and answers of a Radeon PRO W7900 published with it, which do not tell 26 bits of C's grid from 27; RDNA3.5 is inferred; no recording here"};
inline constexpr Evidence w7900_packed = {
    Basis::documented,
    "AMD's emulator rocjitsu and answers of a Radeon PRO W7900 published with it, of which only some were tried; FP16_OVFL = 0; RDNA3.5 is inferred; no recording here"};

inline constexpr Evidence manual = {
    Basis::documented,
    "AMD's instruction set manual: exact, NEG tells which operands are signed, CLAMP saturates the sum; no recording here"};

/// An instruction on integers of one width, for every pairing of signs, wrapping and clamped. The
/// mnemonic has neither: NEG and CLAMP are bits of the instruction, here qualifiers.
inline void add_integers(Machine& m, const std::string& name, Family family, const Shape& shape,
                         const OperandPair& signed_and_unsigned) {
  for (const OperandPair& ab : every_pair({signed_and_unsigned.a, signed_and_unsigned.b})) {
    for (const IntegerOverflow overflow : {IntegerOverflow::wrap, IntegerOverflow::saturate}) {
      const AccumulatorSpec spec = {.summation = Summation::integer, .integer_overflow = overflow};
      m.named(name + "." + std::string(ptx_type(ab.a)) + "." + std::string(ptx_type(ab.b)) +
                  (overflow == IntegerOverflow::wrap ? "" : ".clamp"),
              family, shape, ab, to_int32, native(spec, to_int32, manual));
    }
  }
}

/// V_DOT4 and V_DOT8 on integers, the same on RDNA3 and RDNA4. C and D of the unsigned ones are
/// unsigned, too: modulo 2^32 their bits are those of signed ones. Their CLAMP is not listed.
inline void add_integer_dots(Machine& m) {
  add_integers(m, "v_dot4_i32_iu8", Family::vector_dot, {1, 1, 4}, {int8, uint8});
  add_integers(m, "v_dot8_i32_iu4", Family::vector_dot, {1, 1, 8}, {int4, uint4});
  const AccumulatorSpec wraps = {.summation = Summation::integer};
  m.named("v_dot4_u32_u8", Family::vector_dot, {1, 1, 4}, {uint8, uint8}, to_int32,
          native(wraps, to_int32, manual));
  m.named("v_dot8_u32_u4", Family::vector_dot, {1, 1, 8}, {uint4, uint4}, to_int32,
          native(wraps, to_int32, manual));
}

inline Instructions instructions() {
  Machine m("rdna3");
  const OperandPair f16 = {fp16, fp16}, b16 = {bf16, bf16};
  const Shape tile = {16, 16, 16}, lane = {1, 1, 2};
  m.named("v_wmma_f32_16x16x16_f16", Family::wmma, tile, f16, to_fp32,
          native(f16_to_fp32, to_fp32, w7900));
  m.named("v_wmma_f32_16x16x16_bf16", Family::wmma, tile, b16, to_fp32,
          native(bf16_to_fp32, to_fp32, w7900));
  m.named("v_wmma_f16_16x16x16_f16", Family::wmma, tile, f16, to_fp16,
          native(f16_to_f16, to_fp16, w7900_packed));
  m.named("v_wmma_bf16_16x16x16_bf16", Family::wmma, tile, b16, to_bf16,
          native(bf16_to_bf16, to_bf16, w7900_packed));
  m.named("v_dot2_f32_f16", Family::vector_dot, lane, f16, to_fp32,
          native(f16_to_fp32, to_fp32, w7900));
  m.named("v_dot2_f32_bf16", Family::vector_dot, lane, b16, to_fp32,
          native(bf16_to_fp32, to_fp32, w7900));
  add_integers(m, "v_wmma_i32_16x16x16_iu8", Family::wmma, tile, {int8, uint8});
  add_integers(m, "v_wmma_i32_16x16x16_iu4", Family::wmma, tile, {int4, uint4});
  add_integer_dots(m);
  return m.take();
}

}  // namespace guardbit::emulator::rdna3
