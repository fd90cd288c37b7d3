#pragma once

#include "emulator/catalogue/compositions.hpp"
#include "emulator/catalogue/families.hpp"

// The matrix units of x86 CPUs: vector lanes that multiply and add a few products, and AMX's tiles
// (NUMERICS 5). One lane of a vector instruction is an output of a 1 x 1 matrix. What MXCSR can
// change (VFMADD231*) is listed as it is by default: nearest even, subnormals kept.
namespace guardbit::emulator::x86 {

using namespace formats;

/// One FMA or addition after the other: IEEE, nearest even, NaNs by operand order.
inline constexpr AccumulatorSpec ieee_chain = {.summation = Summation::fma_chain,
                                               .result = Rounding::nearest_even,
                                               .nan = NanPolicy::operand_abc};
/// The same with DAZ and FTZ, as the BF16 instructions have it wired in.
inline constexpr AccumulatorSpec flushing_chain = {.summation = Summation::fma_chain,
                                                   .result = Rounding::nearest_even,
                                                   .input = Subnormals::daz_ftz,
                                                   .output = Subnormals::daz_ftz,
                                                   .nan = NanPolicy::operand_abc};
/// TDPFP16PS honours subnormal operands.
inline constexpr AccumulatorSpec half_chain = {.summation = Summation::fma_chain,
                                               .result = Rounding::nearest_even,
                                               .output = Subnormals::daz_ftz,
                                               .nan = NanPolicy::operand_abc};

constexpr AccumulatorSpec integer_sum(IntegerOverflow overflow) {
  AccumulatorSpec spec;
  spec.summation = Summation::integer;
  spec.integer_overflow = overflow;
  return spec;
}

inline constexpr Evidence sapphire_rapids = {
    Basis::measured, "own recordings on an Intel Xeon (Sapphire Rapids class)"};
inline constexpr Evidence manual = {
    Basis::documented,
    "Intel SDM: TDPBF16PS's shape with subnormal operands honoured; no CPU with AMX-FP16 at hand"};

inline constexpr Selection even_k = {2, 0b01};
inline constexpr Selection odd_k = {2, 0b10};

/// The pair of a lane: the odd product first.
constexpr Arithmetic odd_then_even(const AccumulatorSpec& spec, const Evidence& evidence) {
  return {{dot_step(spec, odd_k, Source::c, fp32), dot_step(spec, even_k, Source::step_0, fp32)},
          evidence,
          {}};
}

/// A tile's dot product: chains of the even and of the odd k from +0, their sum, then C plus that.
constexpr Arithmetic two_chains(const AccumulatorSpec& chain, const Evidence& evidence) {
  const auto addition = [](Source addend, Source other) {
    return Step{Operation::add, {}, addend, other, flushing_chain, fp32, {}};
  };
  return {{dot_step(chain, even_k, Source::positive_zero, fp32),
           dot_step(chain, odd_k, Source::positive_zero, fp32),
           addition(Source::step_0, Source::step_1), addition(Source::c, Source::step_2)},
          evidence,
          {}};
}

inline Instructions instructions() {
  Machine m("x86");
  const auto lane = [&m](std::string_view name, int k, const OperandPair& ab,
                         const AccumulatorPair& cd, const Arithmetic& arithmetic) {
    m.named(name, Family::avx, {1, 1, k}, ab, cd, arithmetic);
  };
  const auto tile = [&m](std::string_view name, int k, const OperandPair& ab,
                         const AccumulatorPair& cd, const Arithmetic& arithmetic) {
    m.named(name, Family::amx, {16, 16, k}, ab, cd, arithmetic);
  };
  const Evidence& measured = sapphire_rapids;
  lane("VFMADD231PD", 1, {fp64, fp64}, to_fp64, native(ieee_chain, to_fp64, measured));
  lane("VFMADD231PS", 1, {fp32, fp32}, to_fp32, native(ieee_chain, to_fp32, measured));
  lane("VFMADD231PH", 1, {fp16, fp16}, to_fp16, native(ieee_chain, to_fp16, measured));
  lane("VDPBF16PS", 2, {bf16, bf16}, to_fp32, odd_then_even(flushing_chain, measured));

  const Arithmetic wraps = native(integer_sum(IntegerOverflow::wrap), to_int32, measured);
  const Arithmetic saturates = native(integer_sum(IntegerOverflow::saturate), to_int32, measured);
  lane("VPDPBUSD", 4, {uint8, int8}, to_int32, wraps);
  lane("VPDPBUSDS", 4, {uint8, int8}, to_int32, saturates);
  lane("VPDPWSSD", 2, {int16, int16}, to_int32, wraps);
  lane("VPDPWSSDS", 2, {int16, int16}, to_int32, saturates);

  tile("TDPBF16PS", 32, {bf16, bf16}, to_fp32, two_chains(flushing_chain, measured));
  tile("TDPFP16PS", 32, {fp16, fp16}, to_fp32, two_chains(half_chain, manual));
  tile("TDPBSSD", 64, {int8, int8}, to_int32, wraps);
  tile("TDPBSUD", 64, {int8, uint8}, to_int32, wraps);
  tile("TDPBUSD", 64, {uint8, int8}, to_int32, wraps);
  tile("TDPBUUD", 64, {uint8, uint8}, to_int32, wraps);
  return m.take();
}

}  // namespace guardbit::emulator::x86
