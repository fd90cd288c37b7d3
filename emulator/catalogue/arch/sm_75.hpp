#pragma once

#include "emulator/catalogue/arch/evidence.hpp"
#include "emulator/catalogue/compositions.hpp"
#include "emulator/catalogue/families.hpp"

// Turing: T4. Eight products per block, one extra alignment bit; first integer and single-bit kinds
// (NUMERICS 1.2, 3.1).
namespace guardbit::emulator::sm_75 {

using namespace formats;

inline constexpr AccumulatorSpec f16_to_fp32 = {
    .terms = 8, .kept_fraction_bits = 24, .min_exponent = -132, .result = Rounding::toward_zero};
inline constexpr AccumulatorSpec f16_to_fp16 = {
    .terms = 8, .kept_fraction_bits = 24, .min_exponent = -20, .result = Rounding::nearest_even};

inline constexpr Evidence t4 = {
    Basis::documented, "MMA-Sim, arXiv 2511.10909 (T4); extra bit also in PeerJ CS 7:e330"};
inline constexpr Evidence quad = {
    Basis::inferred, "HMMA.884 on Turing: one block of four taken with Turing's alignment"};
inline constexpr Evidence mixed = {
    Basis::inferred, "C and D of different widths composed as recorded on Hopper; no recording"};
inline constexpr Evidence exact = {Basis::documented, "PTX ISA: exact integer arithmetic"};

inline Instructions instructions() {
  Machine m("sm_75");
  const Pairs f16 = {{fp16, fp16}};
  m.mma({{16, 8, 8}}, f16, to_fp32, native(f16_to_fp32, to_fp32, t4));
  m.mma({{16, 8, 8}}, f16, to_fp16, native(f16_to_fp16, to_fp16, f16_results));
  m.mma({{8, 8, 4}}, f16, to_fp32, native(f16_to_fp32, to_fp32, quad));
  m.mma({{8, 8, 4}}, f16, to_fp16, native(f16_to_fp16, to_fp16, quad));
  m.mma({{8, 8, 4}}, f16, {fp16, fp32}, native(f16_to_fp32, to_fp32, quad));

  const auto tiles = {Shape{16, 16, 16}, Shape{32, 8, 16}, Shape{8, 32, 16}};
  m.wmma(tiles, f16, to_fp32, native(f16_to_fp32, to_fp32, t4));
  m.wmma(tiles, f16, to_fp16, native(f16_to_fp16, to_fp16, f16_results));
  m.wmma(tiles, f16, {fp16, fp32}, widened_before(f16_to_fp32, fp32, mixed));
  m.wmma(tiles, f16, {fp32, fp16}, narrowed_after(f16_to_fp32, fp32, fp16, mixed));

  m.mma_integer({{8, 8, 16}}, every_pair({int8, uint8}), exact);
  m.mma_integer({{8, 8, 32}}, every_pair({int4, uint4}), exact);
  m.mma_bits({{8, 8, 128}}, Product::bit_xor, exact);
  m.wmma_integer(tiles, {int8, uint8}, exact);
  m.wmma_integer({{8, 8, 32}}, {int4, uint4}, exact);
  m.wmma_bits({{8, 8, 128}}, Product::bit_xor, exact);
  return m.take();
}

}  // namespace guardbit::emulator::sm_75
