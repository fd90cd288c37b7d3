#pragma once

// What the elements of one execution of floating inputs have in common: the window of exponents
// that its products fall in, which of them cancel, and how the exponents are split between A and B.

#include <cstdint>

#include "gpu/input_draw.hpp"
#include "gpu/input_families.hpp"

namespace guardbit::gpu {

struct FloatingTile {
  int low = 0, high = 0;  ///< exponents of the products
  int partner = 1;        ///< products s and s ^ partner cancel, where the family lets them
  int variant = 0;        ///< eight random bits that choose between forms of a family

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
    const int of_a = x.a.least_normal - 1 + x.b.highest, of_b = x.b.least_normal - 1 + x.a.highest;
    return (draw.coin() ? of_a : of_b) - form;
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

constexpr FloatingTile floating_tile(const InputShape& x, InputFamily family, std::uint64_t key,
                                     std::int64_t t) {
  Draw draw(key, t, Place::tile, 0);
  FloatingTile tile;
  tile.variant = static_cast<int>(draw.take(8));
  tile.partner = 1 << draw.below(x.stored_k_bits);
  set_window(x, family, draw, tile);
  return tile;
}

/// Exponent of B at the k's of a unit: such that A reaches the window with it, anywhere; where no
/// exponent lets A reach all of the window, one that reaches its lower or its upper end.
constexpr int b_exponent(const InputShape& x, InputFamily family, const FloatingTile& tile,
                         std::uint64_t key, std::int64_t t, int unit) {
  Draw draw(key, t, Place::unit, unit);
  if (tile.large_are_subnormal() && has_planned_rows(family)) {
    // The large term needs all of one factor's range; small terms meet the middle of it.
    const auto form = static_cast<int>(draw.take(2));
    if (form == 0) return x.b.highest;
    if (form == 1) return x.b.least_normal - 1;
  }
  // A product of normal factors: a subnormal one's exponent would lie above that of a zero.
  if (family == InputFamily::tiny_terms && draw.coin())
    return clamped(x.d.lowest / 2, x.b.least_normal, x.b.highest);
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

/// What is special about a row of A in the families that place few terms. The order in which
/// places take roles is a permutation of the row: role(s) is 0 for the large term, 1 for its
/// partner, and so on.
struct RowPlan {
  int scramble = 0, stride = 1;
  int group = 0;         ///< which accumulation takes the first half of the roles
  bool grouped = false;  ///< roles stay together
  int exponent = 0;      ///< of the large term
  int distance = 0;      ///< of the small terms below it
  int small_terms = 0;
  bool negative = false, cancels = false, alternative = false;
  std::uint64_t fraction = 0;  ///< of the large term's factor in A

  constexpr int role(const InputShape& x, int s) const {
    if (!grouped) return ((s ^ scramble) * stride) & ((1 << x.stored_k_bits) - 1);
    const int half = 1 << (x.stored_k_bits - 1), low = (1 << x.group_bit) - 1;
    const int within = ((s >> 1) & ~low) | (s & low);
    const int role_within = ((within ^ scramble) * stride) & (half - 1);
    return ((s >> x.group_bit) & 1) == group ? role_within : role_within + half;
  }
  /// Where the role is 0.
  constexpr int large_place(const InputShape& x) const {
    if (!grouped) return scramble;
    const int low = (1 << x.group_bit) - 1;
    return ((scramble & ~low) << 1) | (group << x.group_bit) | (scramble & low);
  }
};

constexpr RowPlan row_plan(const InputShape& x, const FloatingTile& tile, std::uint64_t key,
                           std::int64_t t, int i) {
  Draw draw(key, t, Place::row, i);
  RowPlan plan;
  plan.grouped = draw.take(2) != 0 && x.group_bit >= 0;
  plan.group = static_cast<int>(draw.take(1));
  plan.scramble = static_cast<int>(draw.take(x.stored_k_bits - (plan.grouped ? 1 : 0)));
  plan.stride = static_cast<int>(draw.take(6)) * 2 + 1;
  plan.exponent = tile.high - static_cast<int>(draw.take(2));
  plan.distance = draw.below(x.kept_bits + 13);
  plan.small_terms = 1 << draw.take(2);
  plan.negative = draw.coin();
  plan.cancels = draw.coin();
  plan.alternative = draw.coin();
  plan.fraction = simple_fraction(x.a, draw);
  return plan;
}

}  // namespace guardbit::gpu
