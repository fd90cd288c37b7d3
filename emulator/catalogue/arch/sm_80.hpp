#pragma once

#include "emulator/catalogue/arch/evidence.hpp"
#include "emulator/catalogue/compositions.hpp"
#include "emulator/catalogue/families.hpp"

// Ampere: A100 (sm_80), A2 and the RTX 30 cards (sm_86), Orin (sm_87). Turing's block of 16 bytes
// for f16, bf16 and tf32; FP64 and 2:4 sparse kinds (NUMERICS 1.2, 3). The pages of later machines
// call `add_warp_instructions` with their own accumulators.
namespace guardbit::emulator::sm_80 {

using namespace formats;

/// What differs between Ampere and its successors for the same warp-level instructions.
struct WarpAccumulators {
  AccumulatorSpec f16_to_fp32, f16_to_fp16, tf32_to_fp32;
  /// WMMA compiles TF32 to k4 instructions on every machine (NUMERICS 3.6)
  AccumulatorSpec wmma_tf32_to_fp32;
  /// f16, bf16, tf32
  Evidence floating;
  /// f16 into f16
  Evidence floating_to_fp16;
  Evidence sparse;
  Evidence double_precision;
  Evidence integer, four_bit_integer, xor_bits, and_bits;
  /// mma.m8n8k4, which the compiler emulates
  Evidence quad;
  /// WMMA with C and D of different widths
  Evidence mixed;
};

inline constexpr AccumulatorSpec f16_to_fp32 = {
    .terms = 8, .kept_fraction_bits = 24, .min_exponent = -132, .result = Rounding::toward_zero};
inline constexpr AccumulatorSpec f16_to_fp16 = {
    .terms = 8, .kept_fraction_bits = 24, .min_exponent = -20, .result = Rounding::nearest_even};
inline constexpr AccumulatorSpec tf32_to_fp32 = {
    .terms = 4, .kept_fraction_bits = 24, .min_exponent = -132, .result = Rounding::toward_zero};

inline constexpr Evidence a100 = {
    Basis::documented,
    "MATLAB-tensor-core A100 and A2 recordings reproduced; MMA-Sim, arXiv 2511.10909"};
inline constexpr Evidence exact = {Basis::documented, "PTX ISA: exact integer arithmetic"};
inline constexpr Evidence fma = {Basis::documented,
                                 "PTX ISA: IEEE fma; chain order from MMA-Sim, arXiv 2511.10909"};
inline constexpr Evidence sparse_like_dense = {
    Basis::inferred,
    "the dense rule over the stored products, as recorded on Hopper; no Ampere recording"};
inline constexpr Evidence emulated_quad = {Basis::inferred,
                                           "composition read from SASS (FFMA chain); no recording"};
inline constexpr Evidence mixed = {
    Basis::inferred, "C and D of different widths composed as recorded on Hopper; no recording"};

inline constexpr WarpAccumulators ampere = {.f16_to_fp32 = f16_to_fp32,
                                            .f16_to_fp16 = f16_to_fp16,
                                            .tf32_to_fp32 = tf32_to_fp32,
                                            .wmma_tf32_to_fp32 = tf32_to_fp32,
                                            .floating = a100,
                                            .floating_to_fp16 = f16_results,
                                            .sparse = sparse_like_dense,
                                            .double_precision = fma,
                                            .integer = exact,
                                            .four_bit_integer = exact,
                                            .xor_bits = exact,
                                            .and_bits = exact,
                                            .quad = emulated_quad,
                                            .mixed = mixed};

/// mma.sync, mma.sp and wmma of sm_80 and later.
inline void add_warp_instructions(Machine& m, const WarpAccumulators& x) {
  const Pairs f16 = {{fp16, fp16}};
  const Pairs b16 = {{bf16, bf16}};
  const Pairs t32 = {{tf32, tf32}};
  const Pairs f64 = {{fp64, fp64}};
  const Pairs bytes = every_pair({int8, uint8});
  const Pairs nibbles = every_pair({int4, uint4});

  const Arithmetic f16_sum = native(x.f16_to_fp32, to_fp32, x.floating);
  const Arithmetic f16_narrow_sum = native(x.f16_to_fp16, to_fp16, x.floating_to_fp16);
  const Arithmetic tf32_sum = native(x.tf32_to_fp32, to_fp32, x.floating);
  m.mma({{16, 8, 8}, {16, 8, 16}}, f16, to_fp32, f16_sum);
  m.mma({{16, 8, 8}, {16, 8, 16}}, f16, to_fp16, f16_narrow_sum);
  m.mma({{16, 8, 8}, {16, 8, 16}}, b16, to_fp32, f16_sum);
  m.mma({{16, 8, 4}, {16, 8, 8}}, t32, to_fp32, tf32_sum);
  m.mma({{8, 8, 4}}, f16, to_fp32, quad_to_fp32(x.quad));
  m.mma({{8, 8, 4}}, f16, {fp16, fp32}, quad_to_fp32(x.quad));
  m.mma({{8, 8, 4}}, f16, to_fp16, quad_to_fp16(x.quad));

  for (const auto& [qualifier, rounding] : fp64_roundings) {
    m.mma({{8, 8, 4}}, f64, to_fp64, native(fp64_chain(rounding), to_fp64, x.double_precision),
          qualifier);
    m.wmma({{8, 8, 4}}, f64, to_fp64, native(fp64_chain(rounding), to_fp64, x.double_precision),
           qualifier);
  }

  m.mma_integer({{8, 8, 16}, {16, 8, 16}, {16, 8, 32}}, bytes, x.integer);
  m.mma_integer({{8, 8, 32}, {16, 8, 32}, {16, 8, 64}}, nibbles, x.four_bit_integer);
  m.mma_bits({{8, 8, 128}, {16, 8, 128}, {16, 8, 256}}, Product::bit_xor, x.xor_bits);
  m.mma_bits({{8, 8, 128}, {16, 8, 128}, {16, 8, 256}}, Product::bit_and, x.and_bits);

  const Arithmetic sparse_f16 = native(x.f16_to_fp32, to_fp32, x.sparse);
  m.mma_sparse({{16, 8, 16}, {16, 8, 32}}, f16, to_fp32, sparse_f16);
  m.mma_sparse({{16, 8, 16}, {16, 8, 32}}, f16, to_fp16, native(x.f16_to_fp16, to_fp16, x.sparse));
  m.mma_sparse({{16, 8, 16}, {16, 8, 32}}, b16, to_fp32, sparse_f16);
  m.mma_sparse({{16, 8, 8}, {16, 8, 16}}, t32, to_fp32, native(x.tf32_to_fp32, to_fp32, x.sparse));
  m.mma_sparse_integer({{16, 8, 32}, {16, 8, 64}}, bytes, x.integer);
  m.mma_sparse_integer({{16, 8, 64}, {16, 8, 128}}, nibbles, x.four_bit_integer);

  const auto tiles = {Shape{16, 16, 16}, Shape{32, 8, 16}, Shape{8, 32, 16}};
  m.wmma(tiles, f16, to_fp32, f16_sum);
  m.wmma(tiles, f16, to_fp16, f16_narrow_sum);
  m.wmma(tiles, f16, {fp16, fp32}, widened_before(x.f16_to_fp32, fp32, x.mixed));
  m.wmma(tiles, f16, {fp32, fp16}, narrowed_after(x.f16_to_fp32, fp32, fp16, x.mixed));
  m.wmma(tiles, b16, to_fp32, f16_sum);
  m.wmma({{16, 16, 8}}, t32, to_fp32, native(x.wmma_tf32_to_fp32, to_fp32, x.floating));
  m.wmma_integer(tiles, {int8, uint8}, x.integer);
  m.wmma_integer({{8, 8, 32}}, {int4, uint4}, x.four_bit_integer);
  m.wmma_bits({{8, 8, 128}}, Product::bit_xor, x.xor_bits);
  m.wmma_bits({{8, 8, 128}}, Product::bit_and, x.and_bits);
}

inline Instructions instructions(std::string_view arch = "sm_80") {
  Machine m(arch);
  add_warp_instructions(m, ampere);
  return m.take();
}

}  // namespace guardbit::emulator::sm_80
