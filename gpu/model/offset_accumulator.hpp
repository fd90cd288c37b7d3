#pragma once

// A block of a fused instruction (NUMERICS 1.1) as a chain of FP64 multiply-adds that round down.
// This is the arithmetic of the device's matrix multiplication (gpu/cuda/product/multiply.cuh);
// plain C++ here, so that a machine without a GPU can test it against the model
// (tests/claims/offset_accumulator_test.cpp).
//
// Let E be the block's largest exponent, F the kept fraction bits, u = 2^(E-F) the grid's step. The
// accumulator starts at X = 1.5 * 2^(E-F+52), whose last place is u. Every partial sum stays within
// 2^51 u of X, hence in X's binade, so that fma(a, b, accumulator) rounded down is exactly
// accumulator + u * floor(a*b/u): one instruction multiplies, aligns, cuts and adds. On an H200 the
// FP64 tensor core does it: DMMA rounds after every product (NUMERICS 3.2) and rounds down on
// request (.rm). The order of the products does not matter: all sums are exact.
//
// The unit cuts magnitudes, toward zero; floor differs for negative products that are not on the
// grid. B is stored as b' = b * (1 + eps), 0 < eps <= 2^-30 (`nudge`), which puts every nonzero
// product just off the grid:
//
//   Claim. Let p = |a*b|/u > 0. Then floor(p(1+eps)) = floor(p), and p(1+eps) is no integer.
//   Proof. a*b is a product of integers sa*sb < 2^24 (tuned_instruction admits operands of at most
//   12 bits) times a power of two. Let m be the finer of that power of two, in units of u, and 1. p
//   is a multiple of m, and so is every integer. If m < 1: p*eps = m*sa*sb*eps < m. If m = 1: p <
//   2^(F+2), as significands are below 2 and E is at least the product's exponent, so p*eps < 1 for
//   F <= 27. Either way no multiple of m, and so no integer, lies in (p, p + p*eps].
//
// So floor is exact for positive products and one u too low for each negative one, and the
// accumulator starts at X + u * (number of negative products), which costs nothing: X's low word is
// zero, and the number *is* the low word. B's zeros carry the nudge too, as a subnormal FP64 far
// below any u; they count as products of their sign. A's zeros are exact, and do not count.
// The addend c goes the same way, as c * (1 + 2^-30): 24 bits, at most F+1 of them above u.
//
// E comes from the tensor core as well. Per block, the exponents of each row of A and column of B
// are taken relative to the line's largest; a nonzero factor of relative exponent r <= 0 gets the
// weight 2^(B*r), 2^B = 2L, times powers of two chosen for range and, in B, times 1.5. Of the L
// products of weights in the sum S, n >= 1 are w = 1.5 * 2^(B*r_max), r_max the largest sum of two
// relative exponents, and each other is at most w/2^B, so S/w lies between 1 and n + (L-n)/(2L) <=
// L. Hence 1.5 <= S / 2^(B*r_max) <= 0.75 * 2^B, and floor(log2(S) / B) is r_max whatever the order
// and the last bits of the sum. Weights too small for BF16 count as zero; r_max is then exact where
// it comes out at -depth or more, and is else known to be below.

#include <bit>
#include <cstdint>
#include <optional>

#include "emulator/engine/kernels/shared/block_sum.hpp"
#include "emulator/model/instruction.hpp"
#include "emulator/model/terms.hpp"

namespace guardbit::gpu {

/// What the accumulator is rounded to after each block.
enum class Accumulated : int {
  /// toward zero
  fp32,
  /// toward zero, 13 fraction bits
  e8m13,
  /// to nearest even
  fp16,
};

/// An instruction whose blocks the offset accumulator can sum.
struct TunedInstruction {
  /// products per block (L): 4, 8, 16 or 32
  int terms = 0;
  /// products per execution of the instruction
  int execution_k = 0;
  Accumulated accumulated{};
  /// two blocks from +0, chained; then added to C (FP8 as two HMMAs)
  bool composed = false;
  /// F
  int kept_fraction_bits = 0;
  /// e0
  int zero_exponent = 0;
  /// products may fall below FP32's normal range, or rise above it
  bool any_exponents = false;
  /// of every block; of a composed instruction, the first
  emulator::Step step{};
  emulator::Format a{}, b{}, d{};
};

/// The instruction as the tuned kernel takes it; empty when it does not.
std::optional<TunedInstruction> tuned_instruction(const emulator::MatrixInstruction& instruction);

/// The k of product `i` of block `block`. A composed instruction takes k % 4 in {0, 1} first
/// (NUMERICS 1.5).
constexpr std::int64_t source_k(const TunedInstruction& instruction, std::int64_t block, int i) {
  if (!instruction.composed) return block * instruction.terms + i;
  return block / 2 * instruction.execution_k + i / 2 * 4 + block % 2 * 2 + i % 2;
}

// ---- The largest exponent ----

/// How relative exponents become weights for a block of `terms` products.
struct ExponentWindow {
  /// B: weights are powers of 2^B
  int base_bits;
  /// biased exponent of S over B, where r_max = 0
  int top;
  /// biased exponents of the weight of r = 0
  int a_bias, b_bias;
  /// the smallest weight is that of r = -depth
  int depth;
  /// high word of bits(S) * factor: (biased exponent / B) << 20 | anything
  std::uint32_t factor;

  /// Exact where the quotient is at least this.
  constexpr int lowest() const { return top - depth; }
};

constexpr ExponentWindow exponent_window(int terms) {
  ExponentWindow w{};
  w.base_bits = terms == 4 ? 3 : terms == 8 ? 4 : terms == 16 ? 5 : 6;
  w.top = (254 - (w.base_bits - 1)) / w.base_bits;
  w.a_bias = 127 + (w.base_bits * w.top - 127) / 2;
  w.b_bias = w.base_bits * w.top - w.a_bias + 127;
  w.depth = (w.a_bias - 1) / w.base_bits;
  const std::uint64_t divisor = 8 * static_cast<std::uint64_t>(w.base_bits);
  w.factor = static_cast<std::uint32_t>(((std::uint64_t{1} << 32) + divisor - 1) / divisor);
  return w;
}

/// infinity: S is infinity or NaN
constexpr std::uint16_t special_weight = 0x7F80;

/// BF16 weight of a nonzero finite factor; +0 below the window.
constexpr std::uint16_t a_weight(const ExponentWindow& w, int relative) {
  if (relative < -w.depth) return 0;
  return static_cast<std::uint16_t>((w.a_bias + w.base_bits * relative) << 7);
}
constexpr std::uint16_t b_weight(const ExponentWindow& w, int relative) {
  if (relative < -w.depth) return 0;
  return static_cast<std::uint16_t>((w.b_bias + w.base_bits * relative) << 7 | 0x40);  // * 1.5
}

/// The exponent of a block's row of A or column of B without a nonzero number: so low that the
/// addend decides E.
constexpr int no_exponent = -300;

/// of FP64's exponent field in its high word
constexpr int exponent_shift = 20;
constexpr std::uint32_t exponent_field = 0x7FF00000;

/// Added to a row's exponent (A's side), so that quotient + both exponents is the biased exponent
/// of X.
constexpr int offset_bias(const ExponentWindow& w, int kept_fraction_bits) {
  return 1023 + 52 - kept_fraction_bits - w.top;
}

/// (biased exponent of S / B) << 20, with anything below.
constexpr std::uint32_t quotient_of(const ExponentWindow& w, float sum_of_weights) {
  const std::uint64_t product =
      std::uint64_t{std::bit_cast<std::uint32_t>(sum_of_weights)} * w.factor;
  return static_cast<std::uint32_t>(product >> 32);
}

constexpr bool is_special_quotient(const ExponentWindow& w, std::uint32_t quotient) {
  return quotient >= static_cast<std::uint32_t>(w.top + 1) << exponent_shift;
}
constexpr bool is_exact_quotient(const ExponentWindow& w, std::uint32_t quotient) {
  return quotient >= static_cast<std::uint32_t>(w.lowest()) << exponent_shift;
}

// ---- Packed factors ----

/// The high word of a finite value as FP64; precision at most 21 bits, so the low word is zero.
constexpr std::uint32_t high_word(const formats::Value& v) {
  const std::uint32_t sign = v.negative ? 0x80000000U : 0;
  if (v.kind != formats::Kind::finite) return sign;
  const int top = formats::leading_bit(v.significand);
  const auto fraction = static_cast<std::uint32_t>(v.significand << (20 - top)) & 0xFFFFF;
  return sign | static_cast<std::uint32_t>(v.exponent + top + 1023) << 20 | fraction;
}

/// The low word of every factor of B: adds 2^-30 to a significand in [1, 2).
inline constexpr std::uint32_t nudge = std::uint32_t{1} << 22;
/// c * this is c with its nudge.
inline constexpr double addend_nudge = 1 + 0x1p-30;

/// The pairs of small integers whose products over a block sum to the number of negative products.
/// A: (is negative, is positive); B: (is not negative, is negative).
constexpr std::uint16_t a_signs(const formats::Value& v) {
  if (v.kind != formats::Kind::finite) return 0;
  return v.negative ? 0x0001 : 0x0100;
}
constexpr std::uint16_t b_signs(const formats::Value& v) { return v.negative ? 0x0100 : 0x0001; }

/// Factors whose exponents may be this far below their line's largest cannot push r_max below the
/// window.
constexpr bool is_low(const ExponentWindow& w, const formats::Value& v, int relative) {
  return v.kind != formats::Kind::finite || 2 * relative < -w.depth;
}

/// E from which on no FP32 sum can be subnormal: u is at least 2^-126 for every F up to 26.
inline constexpr int lowest_safe_exponent = -100;
/// Exponents of lines that keep E within lowest_safe_exponent and twice the highest.
constexpr int lowest_line_exponent(const ExponentWindow& w) {
  return (lowest_safe_exponent + w.depth) / 2;
}
inline constexpr int highest_line_exponent = 45;
/// An addend of this magnitude is left to the model. Below it, `most_blocks` blocks of 32 products
/// below 2^(2 * highest_line_exponent + 2) cannot reach 2^128.
inline constexpr int addend_limit = 120;
/// Blocks that a call may chain, see addend_limit.
inline constexpr std::int64_t most_blocks = std::int64_t{1} << 20;

// ---- A block ----

/// Constants of an instruction, in fields of FP64's high word.
struct OffsetRule {
  /// 52 - F
  std::uint32_t addend_shift = 0;
  /// of a zero addend, FP16 only
  std::uint32_t zero_exponent = 0;
  /// of a nonzero one, FP16 only
  std::uint32_t lowest_exponent = 0;
  /// of X; 0 where products of the formats are always safe
  std::int32_t lowest_offset = 0;
  std::int32_t highest_products = 0;
};

constexpr OffsetRule offset_rule(const TunedInstruction& instruction) {
  OffsetRule r;
  r.addend_shift = static_cast<std::uint32_t>(52 - instruction.kept_fraction_bits)
                   << exponent_shift;
  r.zero_exponent = static_cast<std::uint32_t>(instruction.zero_exponent + 1023) << exponent_shift;
  r.lowest_exponent = static_cast<std::uint32_t>(formats::min_exponent(instruction.d) + 1023)
                      << exponent_shift;
  const int bias = 1023 + 52 - instruction.kept_fraction_bits;
  if (instruction.any_exponents) r.lowest_offset = (lowest_safe_exponent + bias) << exponent_shift;
  r.highest_products = (2 * highest_line_exponent + bias + 1) << exponent_shift;
  return r;
}

/// High word of |c| in which only the exponent counts: FP16's subnormals and zeros are aligned by
/// exponents of their own. For FP32 results they never decide a bit (see `tuned_instruction`).
template <Accumulated kind>
constexpr std::uint32_t addend_field(const OffsetRule& rule, std::uint32_t c_high) {
  const std::uint32_t magnitude = c_high & 0x7FFFFFFF;
  if constexpr (kind != Accumulated::fp16) return magnitude;
  const std::uint32_t nonzero = magnitude > rule.lowest_exponent ? magnitude : rule.lowest_exponent;
  return magnitude == 0 ? rule.zero_exponent : nonzero;
}

/// High word of X. `products` is the quotient of S plus the exponents of the lines (with
/// offset_bias), its exponent field that of the X of the products alone.
template <Accumulated kind>
constexpr std::uint32_t offset_high(const OffsetRule& rule, std::uint32_t c_high,
                                    std::int32_t products) {
  const auto addend =
      static_cast<std::int32_t>(addend_field<kind>(rule, c_high) + rule.addend_shift);
  const std::int32_t largest = addend > products ? addend : products;
  return (static_cast<std::uint32_t>(largest) & exponent_field) | 0x80000;
}

/// Low word of the accumulator's start.
constexpr std::uint32_t offset_low(std::uint32_t c_high, std::uint32_t negative_products) {
  return negative_products + (c_high >> 31);
}

constexpr double double_of(std::uint32_t high, std::uint32_t low) {
  return std::bit_cast<double>(std::uint64_t{high} << 32 | low);
}
constexpr std::uint32_t high_of(double x) {
  return static_cast<std::uint32_t>(std::bit_cast<std::uint64_t>(x) >> 32);
}
constexpr std::uint32_t low_of(double x) {
  return static_cast<std::uint32_t>(std::bit_cast<std::uint64_t>(x));
}

/// The exact sum, rounded. +0 when it is zero or underflows; FP16 results of 2^16 or more stand for
/// infinities. Needs round to nearest.
template <Accumulated kind>
constexpr double rounded_sum(double sum) {
  const std::uint32_t high = high_of(sum), low = low_of(sum);
  if constexpr (kind == Accumulated::fp32) return double_of(high, low & 0xE0000000);
  if constexpr (kind == Accumulated::e8m13) return double_of(high & ~0x7FU, 0);
  // Adding and taking away 1.5 * 2^(e + 42) leaves multiples of 2^(e - 10), e at least -14.
  const std::uint32_t magnitude = high & exponent_field;
  const std::uint32_t lowest = (1023 - 14) << exponent_shift;
  const std::uint32_t e = magnitude > lowest ? magnitude : lowest;
  const double magic = double_of((e + (42 << exponent_shift)) | 0x80000, 0);
  return (sum + magic) - magic;
}

/// From this high word on, |c| is not one the chain may take: an infinity, a NaN, or too large.
template <Accumulated kind>
inline constexpr std::uint32_t first_excluded = kind == Accumulated::fp16
                                                    ? (1023 + 16) << exponent_shift
                                                    : (1023 + addend_limit) << exponent_shift;

/// How an output takes a block.
enum class Route : int {
  chain,
  /// the chain cannot
  model,
  /// D is C: a NaN, an infinity among finite products, or no products but zeros
  keep,
};

/// `sum` is the quotient of S; `lines` the exponents of both lines as packed; `any_products`
/// whether any product is nonzero; c never -0.
template <Accumulated kind>
constexpr Route route_of(const ExponentWindow& w, const OffsetRule& rule, std::uint32_t quotient,
                         std::int32_t lines, bool any_products, double c) {
  const std::uint32_t magnitude = high_of(c) & 0x7FFFFFFF;
  const bool special = is_special_quotient(w, quotient);
  const bool infinite = magnitude == exponent_field && low_of(c) == 0;
  const bool nan = magnitude >= exponent_field && !infinite;
  if (nan || (!special && (infinite || !any_products))) return Route::keep;
  if (special || magnitude >= first_excluded<kind>) return Route::model;
  const auto addend =
      static_cast<std::int32_t>(addend_field<kind>(rule, high_of(c)) + rule.addend_shift);
  const auto products = static_cast<std::int32_t>(quotient) + lines;
  // Where the quotient says no more than "below the window", the addend must be above that.
  const std::int32_t bound = lines + (w.lowest() << exponent_shift);
  const bool known = is_exact_quotient(w, quotient) || addend >= bound;
  const std::int32_t offset = addend > products ? addend : products;
  const bool safe = offset >= rule.lowest_offset && products < rule.highest_products;
  return known && safe ? Route::chain : Route::model;
}

// ---- Any block, by the model's own terms ----

/// The model's fused block (emulator::fused_block) over operands read one by one: `a(i)` and `b(i)`
/// give codes. Returns D's code.
template <class A, class B>
constexpr std::uint64_t model_block(const TunedInstruction& instruction, int count, A a, B b,
                                    std::uint64_t addend) {
  const emulator::AccumulatorSpec& spec = instruction.step.spec;
  const emulator::Format a_format =
      instruction.step.widened ? *instruction.step.widened : instruction.a;
  const emulator::Format b_format =
      instruction.step.widened ? *instruction.step.widened : instruction.b;
  const formats::Value c = formats::decode(instruction.d, addend);
  const auto factor_a = [&](int i) { return emulator::decode_input(spec, instruction.a, a(i)); };
  const auto factor_b = [&](int i) { return emulator::decode_input(spec, instruction.b, b(i)); };
  const auto widened = [&](const formats::Value& v, const emulator::Format& f) {
    return instruction.step.widened ? formats::decode(f, formats::encode(f, v)) : v;
  };
  emulator::SpecialSum specials;
  specials.include(formats::exactly(c));
  const emulator::Term addend_term = emulator::addend_term(c, instruction.d, spec);
  int largest = addend_term.exponent;
  for (int i = 0; i < count; ++i) {
    const formats::Value x = widened(factor_a(i), a_format), y = widened(factor_b(i), b_format);
    const bool finite = x.kind <= formats::Kind::finite && y.kind <= formats::Kind::finite;
    if (!finite) {
      specials.include(formats::multiply(x, y));
      continue;
    }
    const int e = emulator::product_term(x, a_format, y, b_format, spec).exponent;
    largest = e > largest ? e : largest;
  }
  if (specials.any()) return emulator::encode_result(spec, instruction.d, specials.value());
  const int grid = largest - spec.kept_fraction_bits;
  std::int64_t sum = emulator::align(addend_term, grid, spec.alignment);
  for (int i = 0; i < count; ++i) {
    const formats::Value x = widened(factor_a(i), a_format), y = widened(factor_b(i), b_format);
    sum += emulator::align(emulator::product_term(x, a_format, y, b_format, spec), grid,
                           spec.alignment);
  }
  return emulator::encode_sum(spec, emulator::AccumulatorFormat(instruction.d, spec), sum, grid);
}

}  // namespace guardbit::gpu
