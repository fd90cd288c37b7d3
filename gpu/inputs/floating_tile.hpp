#pragma once

// What the elements of one execution of floating inputs have in common: the window of exponents
// that its products fall in, which of them cancel, and how the exponents are split between A and B.

#include <cstdint>

#include "gpu/inputs/input_draw.hpp"
#include "gpu/inputs/input_families.hpp"

namespace guardbit::gpu {

struct FloatingTile {
  int low = 0, high = 0;  ///< exponents of the products
  int partner = 1;        ///< products s and s ^ partner cancel, where the family lets them
  int variant = 0;        ///< eight random bits that choose between forms of a family

  /// Where no exponent of B lets A reach the whole window, B has two: `b_large` where this bit of
  /// s is set, which is where large terms go, and `b_small` elsewhere. -1: B needs no such split.
  int split_bit = -1;
  int b_large = 0, b_small = 0;

  /// Large products have a subnormal factor: its significand is not normalised, so the grid of the
  /// sum lies higher than the product's value says.
  constexpr bool large_are_subnormal() const { return (variant & 0xC0) == 0; }
};

/// Between the smallest and the largest exponent of a product that leaves D finite and nonzero.
constexpr int any_exponent(const InputShape& x, Draw& draw) {
  const int low = larger(x.lowest_product, x.d.lowest - 8);
  return draw.between(low, larger(low, smaller(x.highest_product, x.d.highest)));
}

/// An exponent with products `below` it, or, less often, any up to where only C reaches it.
constexpr int large_exponent(const InputShape& x, const FloatingTile& tile, int below, Draw& draw) {
  const int form = static_cast<int>(draw.take(2));
  if (tile.large_are_subnormal()) {
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

/// Families that place a few terms by role: B's fractions are the same along a column, so that
/// what cancels in A cancels.
constexpr bool has_planned_rows(InputFamily family) {
  return family == InputFamily::ladder || family == InputFamily::ties ||
         family == InputFamily::carries || family == InputFamily::tiny_terms;
}

constexpr int window_below(const InputShape& x) {
  return larger(x.kept_bits, larger(x.result_bits, x.final_bits)) + 3;
}

constexpr void set_window(const InputShape& x, InputFamily family, Draw& draw, FloatingTile& tile) {
  const bool odd = (tile.variant & 1) != 0;
  switch (family) {
    case InputFamily::sum_cancellation:
    case InputFamily::pair_cancellation:
    case InputFamily::wide_exponents: {
      const int centre = any_exponent(x, draw);
      const int width =
          family == InputFamily::wide_exponents ? 2 << draw.take(2) : tile.variant & 15;
      tile.low = centre - width;
      tile.high = centre + width;
      break;
    }
    case InputFamily::staggered_terms:
      tile.high = large_exponent(x, tile, window_below(x), draw);
      tile.low = tile.high - x.kept_bits - 12;
      break;
    case InputFamily::ladder:
    case InputFamily::ties:
    case InputFamily::carries:
      tile.high = large_exponent(x, tile, window_below(x), draw);
      tile.low = tile.high - window_below(x);
      break;
    case InputFamily::subnormal_results: {
      const int aim = odd ? x.d.least_normal : x.d.lowest;
      tile.low = aim - 6;
      tile.high = aim + 4;
      break;
    }
    case InputFamily::tiny_terms:
      tile.low = x.zero_exponent - x.kept_bits - 3;
      tile.high = larger(x.zero_exponent + 3, x.d.lowest + 1);
      break;
    case InputFamily::many_specials:
    case InputFamily::near_overflow:
      tile.low = x.d.highest - (odd ? 4 : 2) - x.stored_k_bits;
      tile.high = x.d.highest - 1;
      break;
    case InputFamily::huge_products:
      tile.low = x.d.highest - 1;
      tile.high = x.d.highest + 6;
      break;
    default:
      tile.low = -4;
      tile.high = 0;
      break;
  }
  const bool planned = has_planned_rows(family);
  if (!planned) tile.high = clamped(tile.high, x.lowest_product, x.highest_product);
  tile.low = clamped(tile.low, x.lowest_product, smaller(tile.high, x.highest_product));
}

/// Families whose roles 0 and 1 are large terms and all others small ones.
constexpr bool has_large_and_small_terms(InputFamily family) {
  return family == InputFamily::ladder || family == InputFamily::ties ||
         family == InputFamily::tiny_terms;
}

constexpr void split_exponents(const InputShape& x, InputFamily family, Draw& draw,
                               FloatingTile& tile) {
  const int reaches_low = tile.low - x.a.lowest, reaches_high = tile.high - x.a.highest;
  const bool is_tiny = family == InputFamily::tiny_terms;
  const bool subnormal = tile.large_are_subnormal() && !is_tiny;
  if (!subnormal && !is_tiny && reaches_high <= reaches_low) return;
  tile.split_bit = x.stored_unit + draw.below(x.stored_k_bits - x.stored_unit);
  if (tile.split_bit == x.group_bit) {
    tile.split_bit = x.group_bit == x.stored_unit ? x.stored_k_bits - 1 : x.stored_unit;
  }
  tile.b_small = clamped(reaches_low, x.b.lowest, x.b.highest);
  tile.b_large = clamped(reaches_high, x.b.lowest, x.b.highest);
  if (subnormal) tile.b_large = (tile.variant & 1) != 0 ? x.b.highest : x.b.least_normal - 1;
  // A product of normal factors: a subnormal one's exponent would lie above that of a zero.
  if (is_tiny) tile.b_large = clamped(x.d.lowest / 2, x.b.least_normal, x.b.highest);
}

constexpr FloatingTile floating_tile(const InputShape& x, InputFamily family, std::uint64_t key,
                                     std::int64_t t) {
  Draw draw(key, t, Place::tile, 0);
  FloatingTile tile;
  tile.variant = static_cast<int>(draw.take(8));
  tile.partner = 1 << draw.below(x.stored_k_bits);
  set_window(x, family, draw, tile);
  if (has_large_and_small_terms(family)) split_exponents(x, family, draw, tile);
  return tile;
}

/// Exponent of B at the k's of a unit: one with which A reaches the window, all of it where there
/// is such an exponent.
constexpr int b_exponent(const InputShape& x, const FloatingTile& tile, std::uint64_t key,
                         std::int64_t t, int unit) {
  if (tile.split_bit >= 0) {
    const bool large = ((unit >> (tile.split_bit - x.stored_unit)) & 1) != 0;
    return large ? tile.b_large : tile.b_small;
  }
  Draw draw(key, t, Place::unit, unit);
  const int reaches_low = tile.low - x.a.lowest, reaches_high = tile.high - x.a.highest;
  int exponent = 0;
  if (reaches_high <= reaches_low) {
    const int low = clamped(reaches_high, x.b.lowest, x.b.highest);
    exponent = draw.between(low, larger(low, smaller(reaches_low, x.b.highest)));
  } else {
    exponent = draw.coin() ? reaches_low : reaches_high;
  }
  return clamped(exponent, x.b.lowest, x.b.highest);
}

/// A number less one of its bits, and with it again.
constexpr int without_bit(int s, int bit) {
  const int low = (1 << bit) - 1;
  return ((s >> 1) & ~low) | (s & low);
}
constexpr int with_bit(int s, int bit, int value) {
  const int low = (1 << bit) - 1;
  return ((s & ~low) << 1) | (value << bit) | (s & low);
}

/// What is special about a row of A in the families that place few terms. The order in which
/// places take roles is a permutation of the row: role(s) is 0 for the large term, 1 for its
/// partner, and so on.
struct RowPlan {
  int scramble = 0, stride = 1;
  int group = 0;     ///< which accumulation takes the first roles
  int exponent = 0;  ///< of the large term
  int distance = 0;  ///< of the small terms below it
  int small_terms = 0;
  bool negative = false, cancels = false, alternative = false;
  std::uint64_t fraction = 0;  ///< of the large term's factor in A

  int bits = 0;        ///< of the numbers that are permuted
  int split_bit = -1;  ///< as the tile's
  int group_bit = -1;  ///< as the shape's, less the split bit; -1 where not grouped

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
  /// Where the role is 0.
  constexpr int large_place() const {
    int s = scramble;
    if (group_bit >= 0) s = with_bit(s, group_bit, group);
    return split_bit >= 0 ? with_bit(s, split_bit, 1) : s;
  }

  static constexpr int idle_roles = 256;  ///< no family gives these a term
};

constexpr RowPlan row_plan(const InputShape& x, const FloatingTile& tile, std::uint64_t key,
                           std::int64_t t, int i) {
  Draw draw(key, t, Place::row, i);
  RowPlan plan;
  plan.bits = x.stored_k_bits;
  plan.split_bit = tile.split_bit;
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
  plan.exponent = tile.high - (tile.large_are_subnormal() ? 0 : static_cast<int>(draw.take(2)));
  const int reach = clamped(tile.high - x.lowest_product + 1, 1, x.kept_bits + 13);
  plan.distance = draw.coin() ? draw.below(reach) : x.kept_bits + draw.between(-2, 3);
  plan.small_terms = 1 << draw.take(2);
  plan.negative = draw.coin();
  plan.cancels = draw.coin();
  plan.alternative = draw.coin();
  plan.fraction = simple_fraction(x.a, draw);
  return plan;
}

}  // namespace guardbit::gpu
