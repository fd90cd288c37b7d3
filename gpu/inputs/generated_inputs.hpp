#pragma once

// Generated operands: each element is a function of seed, family, execution t and its indices
// alone, so that a device makes operands in place and a host makes the same ones again. Words are
// as registers hold them (register_words.hpp).
//
//   a [T, M, stored K], b [T, K, N], c [T, M, N], e [T, M, stored K] (sparse A only)
//   a_scale [T, M, scales], b_scale [T, scales, N] (block-scaled kinds only)

#include <cstdint>

#include "gpu/inputs/floating_inputs.hpp"
#include "gpu/inputs/integer_inputs.hpp"

namespace guardbit::gpu {

/// The key of a family's random numbers.
constexpr std::uint64_t stream_key(InputFamily family, std::uint64_t seed) {
  return mixed(seed + 0x9E3779B97F4A7C15U * (static_cast<std::uint64_t>(family) + 1));
}

/// The metadata of stored value s of row i: two different positions of four (ascending unless the
/// instruction takes them unordered), or one of two.
constexpr int e_position(const InputShape& x, InputFamily family, std::uint64_t seed,
                         std::int64_t t, int i, int s) {
  if (!x.sparse) return 0;
  const int group = s & ~(x.group_stored - 1);
  Draw draw(stream_key(family, seed), t, Place::position, i * x.stored_k + group);
  if (x.group_positions == 2) return static_cast<int>(draw.take(1));
  // Two different positions: 01 02 03 12 13 23.
  const int pair = draw.below(6);
  int first = pair < 3 ? 0 : pair < 5 ? 1 : 2;
  int second = pair < 3 ? pair + 1 : pair < 5 ? pair - 1 : 3;
  if (x.unordered && draw.coin()) {
    const int swap = first;
    first = second;
    second = swap;
  }
  return s - group < x.group_stored / 2 ? first : second;
}

/// The k of stored value s of row i.
constexpr int dense_place(const InputShape& x, InputFamily family, std::uint64_t seed,
                          std::int64_t t, int i, int s) {
  if (!x.sparse) return s;
  const int e = e_position(x, family, seed, t, i, s);
  if (x.group_stored == 4) return s / 4 * 8 + e * 2 + s % 2;
  return x.group_stored == 1 ? s * 2 + e : s / 2 * 4 + e;
}

constexpr std::uint64_t floating_a(const InputShape& x, InputFamily family, std::uint64_t key,
                                   std::int64_t t, int i, int s, Draw& draw) {
  switch (family) {
    case InputFamily::raw_bits: return raw_word(x.a, draw);
    case InputFamily::finite_bits: return finite_word(x.a, draw);
    case InputFamily::narrow_exponents: return narrow_word(x.a, draw);
    case InputFamily::dominant_term: {
      const bool dominant = special_place(key, t, Place::row, i, 255, x.stored_k) == s;
      return dominant ? between_word(x.a, 4, x.kept_bits + 4, draw) : narrow_word(x.a, draw);
    }
    case InputFamily::subnormal_operands: {
      const bool either = (execution_window(x, family, key, t).variant & 1) != 0;
      return subnormal_or_large(x.a, either ? draw.coin() : t % 2 == 0, draw);
    }
    case InputFamily::sparse_zeros: return mostly_zero_word(x.a, 200, draw);
    case InputFamily::addend_alone: return signed_zero(x.a, draw);
    case InputFamily::exact_zeros: return t % 4 == 0 ? x.a.sign : zero_or_power(x.a, 128, draw);
    case InputFamily::small_integers: return small_integer_word(x.a, 8, draw);
    case InputFamily::many_specials:
      if (draw.chance(t % 2 == 0 ? 13 : 3)) return special_word(x.a, draw, false);
      return aimed_a(x, family, key, t, i, s, draw);
    case InputFamily::one_special:
    case InputFamily::infinities:
    case InputFamily::nan_payloads:
      return special_factor(x, x.a, family, key, t, Place::row, i, s, draw);
    default: return aimed_a(x, family, key, t, i, s, draw);
  }
}

constexpr std::uint64_t floating_b(const InputShape& x, InputFamily family, std::uint64_t key,
                                   std::int64_t t, int k, int j, Draw& draw) {
  switch (family) {
    case InputFamily::raw_bits: return raw_word(x.b, draw);
    case InputFamily::addend_alone:
    case InputFamily::finite_bits: return finite_word(x.b, draw);
    case InputFamily::narrow_exponents:
    case InputFamily::dominant_term: return narrow_word(x.b, draw);
    case InputFamily::subnormal_operands: {
      const bool either = (execution_window(x, family, key, t).variant & 1) != 0;
      return subnormal_or_large(x.b, either ? draw.coin() : t % 2 != 0, draw);
    }
    case InputFamily::sparse_zeros: return mostly_zero_word(x.b, 64, draw);
    case InputFamily::exact_zeros:
      if (t % 4 == 0) return j % 2 != 0 ? 0 : word_with_exponent(x.b, false, 0, 0);
      return zero_or_power(x.b, 160, draw);
    case InputFamily::small_integers: return small_integer_word(x.b, 8, draw);
    case InputFamily::many_specials:
      if (draw.chance(t % 2 == 0 ? 13 : 3)) return special_word(x.b, draw, false);
      return aimed_b(x, family, key, t, k, j, draw);
    case InputFamily::one_special:
    case InputFamily::infinities:
    case InputFamily::nan_payloads:
      return special_factor(x, x.b, family, key, t, Place::column, j, k, draw);
    default: return aimed_b(x, family, key, t, k, j, draw);
  }
}

/// The word of stored value s of row i of A.
constexpr std::uint64_t a_word(const InputShape& x, InputFamily family, std::uint64_t seed,
                               std::int64_t t, int i, int s) {
  const std::uint64_t key = stream_key(family, seed);
  if (x.kind != InputKind::floating) return integer_a(x, family, key, t, i, s);
  Draw draw(key, t, Place::a, i * x.stored_k + s);
  const std::uint64_t word = floating_a(x, family, key, t, i, s, draw);
  return x.a.ignored == 0 ? word : word ^ draw.take(x.a.ignored);
}

/// The word of B at (k, j).
constexpr std::uint64_t b_word(const InputShape& x, InputFamily family, std::uint64_t seed,
                               std::int64_t t, int k, int j) {
  const std::uint64_t key = stream_key(family, seed);
  if (x.kind != InputKind::floating) return integer_b(x, family, key, t, k, j);
  Draw draw(key, t, Place::b, k * x.n + j);
  const std::uint64_t word = floating_b(x, family, key, t, k, j, draw);
  return x.b.ignored == 0 ? word : word ^ draw.take(x.b.ignored);
}

/// Minus the product of stored value s and its element of B, rounded to double.
constexpr double minus_product(const InputShape& x, InputFamily family, std::uint64_t seed,
                               std::int64_t t, int i, int j, int s) {
  const int k = dense_place(x, family, seed, t, i, s);
  const double product = double_of(x.a, a_word(x, family, seed, t, i, s)) *
                         double_of(x.b, b_word(x, family, seed, t, k, j));
  return x.negated ? product : -product;
}

/// Minus the sum of all products, rounded to double.
constexpr double minus_sum(const InputShape& x, InputFamily family, std::uint64_t seed,
                           std::int64_t t, int i, int j) {
  double sum = 0;
  for (int s = 0; s < x.stored_k; ++s) sum += minus_product(x, family, seed, t, i, j, s);
  return sum;
}

/// C in families of planned rows: zero, minus the large term, or a term of its own.
constexpr std::uint64_t planned_c(const InputShape& x, InputFamily family, std::uint64_t seed,
                                  std::int64_t t, int i, int j, Draw& draw) {
  const std::uint64_t key = stream_key(family, seed);
  const ExecutionWindow window = execution_window(x, family, key, t);
  const RowPlan plan = row_plan(x, window, key, t, i);
  const auto form = static_cast<int>(draw.take(3));
  if (family == InputFamily::tiny_terms) {
    if (form != 0) return signed_zero(x.c, draw);
    const int exponent = x.c.lowest + draw.between(0, 2);
    return word_with_exponent(x.c, draw.coin(), exponent, 0);
  }
  if (form < 2) return signed_zero(x.c, draw);
  if (form < 4 && family != InputFamily::carries && plan.large_place() < x.stored_k) {
    const double value = minus_product(x, family, seed, t, i, j, plan.large_place());
    const std::uint64_t word = word_of_double(x.c, value);
    return draw.take(2) == 0 ? nudged(x.c, word, draw.between(-2, 2)) : word;
  }
  int exponent = plan.exponent;
  bool negative = draw.coin();
  if (family == InputFamily::carries) negative = plan.negative;
  if (form == 4 || form == 5) exponent -= plan.distance + draw.between(-1, 1);
  if (form == 6) exponent -= draw.between(0, x.kept_bits + 3);
  if (family == InputFamily::ties && form == 5) {
    const int bits = plan.alternative ? x.result_bits : x.final_bits;
    exponent = plan.exponent - bits - draw.between(-1, 2);
  }
  if (exponent < x.c.lowest) return signed_zero(x.c, draw);
  return word_with_exponent(x.c, negative, exponent, simple_fraction(x.c, draw));
}

/// C in the families of infinities and NaNs: special only if neither row of A nor column of B is.
constexpr std::uint64_t c_beside_specials(const InputShape& x, std::uint64_t key, std::int64_t t,
                                          int i, int j, Draw& draw) {
  const bool free = special_place(key, t, Place::row, i, 128, x.stored_k) < 0 &&
                    special_place(key, t, Place::column, j, 64, x.k) < 0;
  if (free && draw.chance(128)) return special_word(x.c, draw, true);
  return between_word(x.c, -4, 2, draw);
}

constexpr std::uint64_t floating_c(const InputShape& x, InputFamily family, std::uint64_t seed,
                                   std::int64_t t, int i, int j, Draw& draw) {
  const std::uint64_t key = stream_key(family, seed);
  const ExecutionWindow window = execution_window(x, family, key, t);
  switch (family) {
    case InputFamily::raw_bits: return raw_word(x.c, draw);
    case InputFamily::finite_bits: return finite_word(x.c, draw);
    case InputFamily::dominant_term:
      if (draw.chance(64)) return signed_zero(x.c, draw);
      return between_word(x.c, -16, (window.variant & 1) != 0 ? 0 : x.kept_bits + 4, draw);
    case InputFamily::wide_exponents:
    case InputFamily::staggered_terms:
      if (draw.chance(32)) return signed_zero(x.c, draw);
      return between_word(x.c, window.low - 4, window.high + 4, draw);
    case InputFamily::sum_cancellation:
      return nudged(x.c, word_of_double(x.c, minus_sum(x, family, seed, t, i, j)),
                    draw.coin() ? 0 : draw.between(-3, 3));
    case InputFamily::pair_cancellation:
      if (draw.chance(96)) return signed_zero(x.c, draw);
      return between_word(x.c, window.low - (draw.coin() ? 30 : 4), window.high, draw);
    case InputFamily::ladder:
    case InputFamily::ties:
    case InputFamily::carries:
    case InputFamily::tiny_terms: return planned_c(x, family, seed, t, i, j, draw);
    case InputFamily::subnormal_operands:
      if (draw.coin()) return between_word(x.c, x.c.lowest, x.c.least_normal + 2, draw);
      return between_word(x.c, x.a.least_normal - 8, x.a.least_normal + x.b.highest, draw);
    case InputFamily::subnormal_results:
      if (draw.chance(64)) return signed_zero(x.c, draw);
      return between_word(x.c, x.c.lowest, x.c.least_normal + 2, draw);
    case InputFamily::near_overflow: return between_word(x.c, x.c.highest - 8, x.c.highest, draw);
    case InputFamily::huge_products:
      if (draw.chance(80)) return signed_zero(x.c, draw);
      return between_word(x.c, x.c.highest - 30, x.c.highest, draw);
    case InputFamily::sparse_zeros: return mostly_zero_word(x.c, 180, draw);
    case InputFamily::addend_alone: {
      const bool tiny = draw.coin();
      return between_word(x.c, x.c.lowest, tiny ? x.c.least_normal + 1 : x.c.highest, draw);
    }
    case InputFamily::exact_zeros: return draw.chance(180) ? x.c.sign : 0;
    case InputFamily::one_special: return c_beside_specials(x, key, t, i, j, draw);
    case InputFamily::many_specials:
    case InputFamily::infinities:
      if (draw.chance(80)) {
        return family == InputFamily::infinities ? infinite_word(x.c, draw)
                                                 : special_word(x.c, draw, false);
      }
      return between_word(x.c, window.low, window.high + 2, draw);
    case InputFamily::nan_payloads:
      if (draw.chance(80)) return nan_word(x.c, draw);
      return between_word(x.c, -4, 2, draw);
    case InputFamily::small_integers: return small_integer_word(x.c, 64, draw);
    default: return between_word(x.c, -4, 2, draw);
  }
}

/// The word of C at (i, j); +0 if the instruction ignores C.
constexpr std::uint64_t c_word(const InputShape& x, InputFamily family, std::uint64_t seed,
                               std::int64_t t, int i, int j) {
  if (x.ignore_c) return 0;
  if (x.kind != InputKind::floating) return integer_c(x, family, stream_key(family, seed), t, i, j);
  Draw draw(stream_key(family, seed), t, Place::c, i * x.n + j);
  return floating_c(x, family, seed, t, i, j, draw);
}

/// The word of scale factor `index` of one operand and execution. It is around one in families that
/// choose exponents, so that these stay as chosen, and far from one in the others.
constexpr std::uint64_t scale_word(const InputShape& x, InputFamily family, std::uint64_t seed,
                                   std::int64_t t, Place place, int index) {
  Draw draw(stream_key(family, seed), t, place, index);
  const bool specials = family == InputFamily::many_specials || family == InputFamily::one_special;
  if (family == InputFamily::raw_bits || (specials && draw.chance(4)))
    return draw.take(8) & x.scale.mask;
  if (family == InputFamily::sparse_zeros && draw.chance(16)) return 0;
  const bool far = family == InputFamily::finite_bits || family == InputFamily::wide_exponents;
  const int reach = far ? 40 : 3;
  const int exponent = draw.between(-reach, reach);
  return word_with_exponent(x.scale, false, exponent, draw.take(x.scale.fraction_bits));
}

}  // namespace guardbit::gpu
