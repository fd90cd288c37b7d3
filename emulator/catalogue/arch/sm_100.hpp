#pragma once

#include "emulator/catalogue/arch/sm_90.hpp"

// Blackwell data centre: B200 (sm_100), B300 (sm_103), Thor (sm_110). Hopper's warp-level units;
// tcgen05 with wide FP8, FP6 and FP4 accumulators and block scales (NUMERICS 1.2, 1.5, 1.6, 3.5). K
// = 96 of sm_103 has no numerical source and is no entry.
namespace guardbit::emulator::sm_100 {

using namespace formats;

inline constexpr AccumulatorSpec narrow_to_fp32 = {
    .terms = 32, .kept_fraction_bits = 25, .min_exponent = -133, .result = Rounding::toward_zero};
inline constexpr AccumulatorSpec narrow_to_fp16 = {
    .terms = 32, .kept_fraction_bits = 25, .min_exponent = -21, .result = Rounding::nearest_even};
inline constexpr AccumulatorSpec fp4_block_scaled = {.terms = 64,
                                                     .exact_group = 16,
                                                     .kept_fraction_bits = 35,
                                                     .min_exponent = -139,
                                                     .result = Rounding::toward_zero};

inline constexpr Evidence b200 = {
    Basis::documented, "MATLAB-tensor-core B200 recordings reproduced; MMA-Sim, arXiv 2511.10909"};
inline constexpr Evidence tensor_memory = {Basis::documented,
                                           "MMA-Sim, arXiv 2511.10909 (B200); no recording here"};
inline constexpr Evidence sparse = {Basis::inferred,
                                    "the dense rule over the stored products; no recording"};
inline constexpr Evidence like_hopper = {Basis::inferred, "as measured on Hopper; no recording"};
inline constexpr Evidence exact = {Basis::documented, "PTX ISA: exact integer arithmetic"};
inline constexpr Evidence emulated_fp64 = {Basis::inferred,
                                           "SASS: the same chain as 2, 4 or 8 DMMA.884"};

inline constexpr sm_80::WarpAccumulators blackwell = [] {
  sm_80::WarpAccumulators x = sm_90::hopper;
  x.floating = b200;
  x.floating_to_fp16 = f16_results;
  x.sparse = x.quad = x.mixed = like_hopper;
  x.double_precision = sm_80::fma;
  x.integer = x.four_bit_integer = x.xor_bits = x.and_bits = exact;
  return x;
}();

inline const Pairs& narrow_pairs() {
  static const Pairs pairs = every_pair({e4m3, e5m2, e2m3, e3m2, e2m1});
  return pairs;
}

/// Sparse products count as many to a block as dense ones: twice the K.
inline void add_tensor_memory_instructions(Machine& m) {
  for (const bool is_sparse : {false, true}) {
    const int k = is_sparse ? 2 : 1;
    const Evidence& evidence = is_sparse ? sparse : tensor_memory;
    m.tcgen05("f16", 16 * k, {{fp16, fp16}, {bf16, bf16}}, to_fp32,
              native(sm_90::f16_to_fp32, to_fp32, evidence), is_sparse);
    m.tcgen05("f16", 16 * k, {{fp16, fp16}}, to_fp16,
              native(sm_90::f16_to_fp16, to_fp16, f16_results), is_sparse);
    m.tcgen05("tf32", 8 * k, {{tf32, tf32}}, to_fp32,
              native(sm_90::tf32_to_fp32, to_fp32, evidence), is_sparse);
    m.tcgen05("f8f6f4", 32 * k, narrow_pairs(), to_fp32, native(narrow_to_fp32, to_fp32, evidence),
              is_sparse);
    m.tcgen05("f8f6f4", 32 * k, narrow_pairs(), to_fp16, native(narrow_to_fp16, to_fp16, evidence),
              is_sparse);
    for (const IntegerOverflow overflow : {IntegerOverflow::wrap, IntegerOverflow::saturate}) {
      AccumulatorSpec spec;
      spec.summation = Summation::integer;
      spec.integer_overflow = overflow;
      m.tcgen05("i8", 32 * k, every_pair({int8, uint8}), to_int32, native(spec, to_int32, exact),
                is_sparse, {}, overflow == IntegerOverflow::saturate ? ".satfinite" : "");
    }
    m.tcgen05("mxf8f6f4", 32 * k, narrow_pairs(), to_fp32,
              native(narrow_to_fp32, to_fp32, evidence), is_sparse, {e8m0, 1});
    const Pairs fp4 = {{e2m1, e2m1}};
    m.tcgen05("mxf4", 64 * k, fp4, to_fp32, native(fp4_block_scaled, to_fp32, evidence), is_sparse,
              {e8m0, 2});
    m.tcgen05("mxf4nvf4", 64 * k, fp4, to_fp32, native(fp4_block_scaled, to_fp32, evidence),
              is_sparse, {e8m0, 2});
    m.tcgen05("mxf4nvf4", 64 * k, fp4, to_fp32, native(fp4_block_scaled, to_fp32, evidence),
              is_sparse, {e8m0, 4});
    m.tcgen05("mxf4nvf4", 64 * k, fp4, to_fp32, native(fp4_block_scaled, to_fp32, evidence),
              is_sparse, {ue4m3, 4});
  }
}

inline void add_fp64_tiles(Machine& m) {
  for (const auto& [qualifier, rounding] : fp64_roundings) {
    m.mma({{16, 8, 4}, {16, 8, 8}, {16, 8, 16}}, {{fp64, fp64}}, to_fp64,
          native(fp64_chain(rounding), to_fp64, emulated_fp64), qualifier);
  }
}

inline Instructions instructions() {
  Machine m("sm_100");
  sm_80::add_warp_instructions(m, blackwell);
  add_fp64_tiles(m);
  sm_90::add_fp8_instructions(m, b200, {});
  for (const AccumulatorPair& cd : {to_fp32, to_fp16}) {
    const AccumulatorSpec& hmma = cd.d == fp32 ? sm_90::f16_to_fp32 : sm_90::f16_to_fp16;
    m.mma_kind("f8f6f4", {{16, 8, 32}}, every_pair({e4m3, e5m2}), cd,
               fp8_chained(hmma, cd.d, like_hopper, {}), false);
  }
  add_tensor_memory_instructions(m);
  return m.take();
}

/// B300: the same instructions, on weaker evidence.
inline Instructions sm_103_instructions() {
  Instructions all = instructions();
  for (MatrixInstruction& instruction : all) {
    instruction.arch = "sm_103";
    const bool from_b200 = instruction.evidence.source == b200.source ||
                           instruction.evidence.source == tensor_memory.source;
    if (from_b200) instruction.evidence = {Basis::inferred, "as on sm_100 (B200); no recording"};
  }
  return all;
}

}  // namespace guardbit::emulator::sm_100
