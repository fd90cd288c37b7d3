#pragma once

// The common plan of one execution of floating inputs: the window of exponents of its products,
// which of them cancel, and how exponents are split between A and B. floating_inputs.hpp makes
// words from it.

#include <cstdint>

#include "gpu/inputs/input_shape.hpp"

namespace guardbit::gpu {

struct ExecutionWindow {
  /// exponents of the products
  int low = 0, high = 0;
  /// products s and s ^ partner cancel in families that cancel
  int partner = 1;
  /// eight random bits that choose between forms of a family
  int variant = 0;

  /// If no exponent of B lets A reach the whole window, B has two: `b_large`, for large terms,
  /// where this bit of s is set, and `b_small` elsewhere. -1: B has one exponent.
  int split_bit = -1;
  int b_large = 0, b_small = 0;

  /// Large products have a subnormal factor. It is not normalised, so such a product is aligned
  /// with a larger exponent than that of its value.
  constexpr bool large_are_subnormal() const { return (variant & 0xC0) == 0; }
};

/// A random exponent of a product that leaves D finite and nonzero.
constexpr int any_exponent(const InputShape& x, Draw& draw) {
  const int low = larger(x.lowest_product, x.d.lowest - 8);
  return draw.between(low, larger(low, smaller(x.highest_product, x.d.highest)));
}

/// A large exponent with products `below` it; less often any, even one that only C reaches.
constexpr int large_exponent(const InputShape& x, const ExecutionWindow& window, int below,
                             Draw& draw) {
  const int form = static_cast<int>(draw.take(2));
  if (window.large_are_subnormal()) {
    const bool in_a = draw.coin();
    const OperandWords &subnormal = in_a ? x.a : x.b, &large = in_a ? x.b : x.a;
    const int least = smaller(subnormal.least_normal - subnormal.lowest, 4);
    return subnormal.least_normal - 1 - draw.below(least) + large.highest;
  }
  if (form == 0) return any_exponent(x, draw);
  int high = smaller(x.highest_product, x.d.highest - 1);
  if (form == 1) high = smaller(x.highest_product + below, x.d.highest - 1);
  return draw.between(smaller(high, x.lowest_product + below + 2), high);
}

/// Families that plan a few terms of each row. The fractions of B are equal along a column, so that
/// factors of A that cancel give products that cancel.
constexpr bool has_planned_rows(InputFamily family) {
  return family == InputFamily::ladder || family == InputFamily::ties ||
         family == InputFamily::carries || family == InputFamily::tiny_terms;
}

constexpr int window_below(const InputShape& x) {
  return larger(x.kept_bits, larger(x.result_bits, x.final_bits)) + 3;
}

constexpr void set_window(const InputShape& x, InputFamily family, Draw& draw,
                          ExecutionWindow& window) {
  const bool odd = (window.variant & 1) != 0;
  switch (family) {
    case InputFamily::sum_cancellation:
    case InputFamily::pair_cancellation:
    case InputFamily::wide_exponents: {
      const int centre = any_exponent(x, draw);
      const int width =
          family == InputFamily::wide_exponents ? 2 << draw.take(2) : window.variant & 15;
      window.low = centre - width;
      window.high = centre + width;
      break;
    }
    case InputFamily::staggered_terms:
      window.high = large_exponent(x, window, window_below(x), draw);
      window.low = window.high - x.kept_bits - 12;
      break;
    case InputFamily::ladder:
    case InputFamily::ties:
    case InputFamily::carries:
      window.high = large_exponent(x, window, window_below(x), draw);
      window.low = window.high - window_below(x);
      break;
    case InputFamily::subnormal_results: {
      const int aim = odd ? x.d.least_normal : x.d.lowest;
      window.low = aim - 6;
      window.high = aim + 4;
      break;
    }
    case InputFamily::tiny_terms:
      window.low = x.zero_exponent - x.kept_bits - 3;
      window.high = larger(x.zero_exponent + 3, x.d.lowest + 1);
      break;
    case InputFamily::many_specials:
    case InputFamily::near_overflow:
      window.low = x.d.highest - (odd ? 4 : 2) - x.stored_k_bits;
      window.high = x.d.highest - 1;
      break;
    case InputFamily::huge_products:
      window.low = x.d.highest - 1;
      window.high = x.d.highest + 6;
      break;
    default:
      window.low = -4;
      window.high = 0;
      break;
  }
  const bool planned = has_planned_rows(family);
  if (!planned) window.high = clamped(window.high, x.lowest_product, x.highest_product);
  window.low = clamped(window.low, x.lowest_product, smaller(window.high, x.highest_product));
}

/// Families whose roles 0 and 1 are large terms and all others small ones.
constexpr bool has_large_and_small_terms(InputFamily family) {
  return family == InputFamily::ladder || family == InputFamily::ties ||
         family == InputFamily::tiny_terms;
}

constexpr void split_exponents(const InputShape& x, InputFamily family, Draw& draw,
                               ExecutionWindow& window) {
  const int reaches_low = window.low - x.a.lowest, reaches_high = window.high - x.a.highest;
  const bool is_tiny = family == InputFamily::tiny_terms;
  const bool subnormal = window.large_are_subnormal() && !is_tiny;
  if (!subnormal && !is_tiny && reaches_high <= reaches_low) return;
  window.split_bit = x.stored_shift + draw.below(x.stored_k_bits - x.stored_shift);
  if (window.split_bit == x.group_bit) {
    window.split_bit = x.group_bit == x.stored_shift ? x.stored_k_bits - 1 : x.stored_shift;
  }
  window.b_small = clamped(reaches_low, x.b.lowest, x.b.highest);
  window.b_large = clamped(reaches_high, x.b.lowest, x.b.highest);
  if (subnormal) window.b_large = (window.variant & 1) != 0 ? x.b.highest : x.b.least_normal - 1;
  // Only normal factors: a product with a subnormal one is aligned with an exponent above a zero's.
  if (is_tiny) window.b_large = clamped(x.d.lowest / 2, x.b.least_normal, x.b.highest);
}

constexpr ExecutionWindow execution_window(const InputShape& x, InputFamily family,
                                           std::uint64_t key, std::int64_t t) {
  Draw draw(key, t, Place::execution, 0);
  ExecutionWindow window;
  window.variant = static_cast<int>(draw.take(8));
  window.partner = 1 << draw.below(x.stored_k_bits);
  set_window(x, family, draw, window);
  if (has_large_and_small_terms(family)) split_exponents(x, family, draw, window);
  return window;
}

/// The exponent of B in one sparse group of k: one with which A reaches the window, all of it if
/// there is such an exponent.
constexpr int b_exponent(const InputShape& x, const ExecutionWindow& window, std::uint64_t key,
                         std::int64_t t, int group) {
  if (window.split_bit >= 0) {
    const bool large = ((group >> (window.split_bit - x.stored_shift)) & 1) != 0;
    return large ? window.b_large : window.b_small;
  }
  Draw draw(key, t, Place::group, group);
  const int reaches_low = window.low - x.a.lowest, reaches_high = window.high - x.a.highest;
  int exponent = 0;
  if (reaches_high <= reaches_low) {
    const int low = clamped(reaches_high, x.b.lowest, x.b.highest);
    exponent = draw.between(low, larger(low, smaller(reaches_low, x.b.highest)));
  } else {
    exponent = draw.coin() ? reaches_low : reaches_high;
  }
  return clamped(exponent, x.b.lowest, x.b.highest);
}

/// Removes one bit of a number, and inserts it again.
constexpr int without_bit(int s, int bit) {
  const int low = (1 << bit) - 1;
  return ((s >> 1) & ~low) | (s & low);
}
constexpr int with_bit(int s, int bit, int value) {
  const int low = (1 << bit) - 1;
  return ((s & ~low) << 1) | (value << bit) | (s & low);
}

/// The plan of a row of A in families with planned rows. A permutation gives each position a role:
/// role(s) is 0 for the large term, 1 for its partner, and so on.
struct RowPlan {
  int scramble = 0, stride = 1;
  /// which accumulation takes the first roles
  int group = 0;
  /// of the large term
  int exponent = 0;
  /// of the small terms below it
  int distance = 0;
  int small_terms = 0;
  bool negative = false, cancels = false, alternative = false;
  /// of the large term's factor in A
  std::uint64_t fraction = 0;

  /// of the numbers that are permuted
  int bits = 0;
  /// as ExecutionWindow::split_bit
  int split_bit = -1;
  /// InputShape::group_bit without the split bit; -1 if not grouped
  int group_bit = -1;

  constexpr int role(int s) const {
    const bool large = split_bit >= 0 && ((s >> split_bit) & 1) != 0;
    if (split_bit >= 0) s = without_bit(s, split_bit);
    const bool other_group = group_bit >= 0 && ((s >> group_bit) & 1) != group;
    if (group_bit >= 0) s = without_bit(s, group_bit);
    int role = ((s ^ scramble) * stride) & ((1 << bits) - 1);
    if (other_group) role += 1 << bits;
    if (split_bit < 0) return role;
    if (!large) return role + 2;
    return role < 2 ? role : role + idle_roles;
  }
  /// The position of role 0.
  constexpr int large_place() const {
    int s = scramble;
    if (group_bit >= 0) s = with_bit(s, group_bit, group);
    return split_bit >= 0 ? with_bit(s, split_bit, 1) : s;
  }

  /// no family gives these a term
  static constexpr int idle_roles = 256;
};

constexpr RowPlan row_plan(const InputShape& x, const ExecutionWindow& window, std::uint64_t key,
                           std::int64_t t, int i) {
  Draw draw(key, t, Place::row, i);
  RowPlan plan;
  plan.bits = x.stored_k_bits;
  plan.split_bit = window.split_bit;
  if (plan.split_bit >= 0) --plan.bits;
  // Three rows of four keep the first roles in one accumulation.
  const bool grouped = draw.take(2) != 0 && x.group_bit >= 0;
  if (grouped) {
    const bool below = plan.split_bit >= 0 && plan.split_bit < x.group_bit;
    plan.group_bit = x.group_bit - (below ? 1 : 0);
    --plan.bits;
  }
  plan.group = static_cast<int>(draw.take(1));
  plan.scramble = static_cast<int>(draw.take(plan.bits));
  plan.stride = static_cast<int>(draw.take(6)) * 2 + 1;
  plan.exponent = window.high - (window.large_are_subnormal() ? 0 : static_cast<int>(draw.take(2)));
  const int reach = clamped(window.high - x.lowest_product + 1, 1, x.kept_bits + 13);
  plan.distance = draw.coin() ? draw.below(reach) : x.kept_bits + draw.between(-2, 3);
  plan.small_terms = 1 << draw.take(2);
  plan.negative = draw.coin();
  plan.cancels = draw.coin();
  plan.alternative = draw.coin();
  plan.fraction = simple_fraction(x.a, draw);
  return plan;
}

}  // namespace guardbit::gpu
