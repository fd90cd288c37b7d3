#pragma once

// Words of A and B of the floating input families. A family chooses the exponent of each product; B
// is drawn first, and A gets the exponent that gives the product. generated_inputs.hpp calls this.

#include <cstdint>

#include "emulator/inputs/special_words.hpp"
#include "gpu/inputs/floating_window.hpp"

namespace guardbit::gpu {

/// The sign, exponent and fraction of a factor of A; a zero if `zero`.
struct FactorAim {
  bool zero = false;
  bool negative = false;
  /// of the product
  int exponent = 0;
  std::uint64_t fraction = 0;
};

constexpr FactorAim random_factor(const OperandWords& f, int low, int high, Draw& draw) {
  FactorAim aim;
  aim.negative = draw.coin();
  aim.exponent = draw.between(low, high);
  aim.fraction = draw.wide(f.fraction_bits);
  return aim;
}

constexpr FactorAim simple_factor(const OperandWords& f, int exponent, Draw& draw) {
  FactorAim aim;
  aim.negative = draw.coin();
  aim.exponent = exponent;
  aim.fraction = simple_fraction(f, draw);
  return aim;
}

constexpr std::uint64_t between_word(const OperandWords& f, int low, int high, Draw& draw) {
  const FactorAim aim = random_factor(f, low, high, draw);
  return word_with_exponent(f, aim.negative, aim.exponent, aim.fraction);
}

/// A number near one, for families whose subject is not the exponent.
constexpr std::uint64_t narrow_word(const OperandWords& f, Draw& draw) {
  return between_word(f, -2, 0, draw);
}

/// A large term, its negative at times, and small terms `distance` below it.
constexpr FactorAim ladder_factor(const InputShape& x, const RowPlan& plan, int role, Draw& draw) {
  if (role == 0 || (role == 1 && plan.cancels))
    return {false, plan.negative != (role == 1), plan.exponent, plan.fraction};
  const int first = plan.cancels ? 2 : 1;
  if (role < first + plan.small_terms) {
    return simple_factor(x.a, plan.exponent - plan.distance + draw.between(-1, 1), draw);
  }
  return {true, draw.coin(), 0, 0};
}

/// A large term, terms of half an ulp of the result, and terms that break the tie.
constexpr FactorAim tie_factor(const InputShape& x, const RowPlan& plan, int role, Draw& draw) {
  const int bits = plan.alternative ? x.result_bits : x.final_bits;
  FactorAim aim{true, draw.coin(), 0, 0};
  if (role == 0 && (plan.distance & 3) != 0)
    return {false, plan.negative, plan.exponent, plan.fraction};
  if (role == 1 || (role == 2 && plan.small_terms > 2)) {
    aim.zero = false;
    aim.exponent = plan.exponent - bits - draw.between(-1, 2);
  } else if (role > 2 && role < 3 + plan.small_terms / 2) {
    aim = simple_factor(x.a, 0, draw);
    const int tail = draw.coin() ? x.kept_bits : x.result_bits;
    aim.exponent = plan.exponent - tail - draw.between(-1, 2);
  }
  return aim;
}

/// Terms of one sign around the largest, and a few at the last bits that are kept, or the last bits
/// of the result.
constexpr FactorAim carry_factor(const InputShape& x, const RowPlan& plan, int role, Draw& draw) {
  FactorAim aim{role > 3 + plan.small_terms, plan.negative, plan.exponent, 0};
  const bool small = role >= 2 && role < 2 + (plan.distance & 3);
  const int below = plan.alternative ? x.kept_bits : x.result_bits;
  aim.exponent -= small ? below + draw.between(-2, 1) : static_cast<int>(draw.take(1));
  aim.fraction =
      draw.coin() ? simple_fraction(x.a, draw) : (std::uint64_t{1} << x.a.fraction_bits) - 1;
  return aim;
}

/// Terms around half of the smallest result, and terms at the last bits that a zero's exponent
/// leaves.
constexpr FactorAim tiny_factor(const InputShape& x, const ExecutionWindow& window,
                                const RowPlan& plan, int role, Draw& draw) {
  if (plan.alternative && (plan.distance & 1) != 0) {
    const int low = (window.variant & 1) != 0 ? window.low : x.zero_exponent - 12;
    return random_factor(x.a, low, window.high, draw);
  }
  FactorAim aim{true, draw.coin(), 0, 0};
  if (role == 0 || (role == 1 && (plan.distance & 3) == 0)) {
    aim.zero = false;
    aim.exponent = x.d.lowest - (draw.chance(80) ? 0 : 1);
  } else if (role > 1 && role < 2 + (plan.small_terms + 1) / 2) {
    aim.zero = false;
    aim.exponent = x.zero_exponent - x.kept_bits + draw.between(-2, 2);
  }
  return aim;
}

/// A factor of two products that cancel: the second is drawn like the first, with the other sign.
constexpr FactorAim paired_factor(const InputShape& x, const ExecutionWindow& window,
                                  std::uint64_t key, std::int64_t t, int i, int s) {
  Draw draw(key, t, Place::a, i * x.stored_k + (s & ~window.partner));
  FactorAim aim = random_factor(x.a, window.low, window.high, draw);
  aim.negative = aim.negative != ((s & window.partner) != 0);
  return aim;
}

constexpr bool has_paired_products(InputFamily family) {
  return family == InputFamily::pair_cancellation || family == InputFamily::huge_products;
}

/// The stored value (i, s) of A in families that choose the exponents of products.
constexpr std::uint64_t aimed_a(const InputShape& x, InputFamily family, std::uint64_t key,
                                std::int64_t t, int i, int s, Draw& draw) {
  const ExecutionWindow window = execution_window(x, family, key, t);
  int group = s >> x.stored_shift;
  FactorAim aim;
  if (has_paired_products(family)) {
    aim = paired_factor(x, window, key, t, i, s);
    group &= ~(window.partner >> x.stored_shift);
  } else if (has_planned_rows(family)) {
    const RowPlan plan = row_plan(x, window, key, t, i);
    const int role = plan.role(s);
    switch (family) {
      case InputFamily::ladder: aim = ladder_factor(x, plan, role, draw); break;
      case InputFamily::ties: aim = tie_factor(x, plan, role, draw); break;
      case InputFamily::carries: aim = carry_factor(x, plan, role, draw); break;
      default: aim = tiny_factor(x, window, plan, role, draw); break;
    }
  } else {
    aim = random_factor(x.a, window.low, window.high, draw);
    // Every other near-overflow execution adds products of one sign in each output.
    if (family == InputFamily::near_overflow && (window.variant & 2) != 0)
      aim.negative = i % 2 != 0;
  }
  const int wanted = aim.exponent - b_exponent(x, window, key, t, group);
  const int exponent = clamped(wanted, x.a.lowest, x.a.highest);
  // A term of another exponent would decide the sum instead of the planned ones.
  const bool unreachable = has_planned_rows(family) && wanted != exponent;
  if (aim.zero || unreachable) return aim.negative ? x.a.sign : 0;
  const std::uint64_t word = word_with_exponent(x.a, aim.negative, exponent, aim.fraction);
  const bool off = has_paired_products(family) && (window.variant & 0x30) != 0 && draw.chance(48);
  return off ? nudged(x.a, word, draw.between(-2, 2)) : word;
}

/// Element (k, j) of B in the same families.
constexpr std::uint64_t aimed_b(const InputShape& x, InputFamily family, std::uint64_t key,
                                std::int64_t t, int k, int j, Draw& draw) {
  const ExecutionWindow window = execution_window(x, family, key, t);
  int group = k >> x.dense_shift;
  if (has_paired_products(family)) {
    group &= ~(window.partner >> x.stored_shift);
    Draw pair(key, t, Place::b, group * x.n + j);
    const int exponent = b_exponent(x, window, key, t, group);
    const bool negative = pair.coin();
    const std::uint64_t word =
        word_with_exponent(x.b, negative, exponent, pair.wide(x.b.fraction_bits));
    const bool off = (window.variant & 0x30) != 0 && draw.chance(32);
    return off ? nudged(x.b, word, draw.between(-2, 2)) : word;
  }
  const int exponent = b_exponent(x, window, key, t, group);
  if (has_planned_rows(family)) {
    Draw column(key, t, Place::column, j);
    const int form = static_cast<int>(column.take(2));
    const bool any_sign = column.take(2) == 0;
    const bool negative = any_sign ? draw.coin() : column.coin();
    const std::uint64_t fraction = form < 2    ? 0
                                   : form == 2 ? simple_fraction(x.b, column)
                                               : simple_fraction(x.b, draw);
    return word_with_exponent(x.b, negative, exponent, fraction);
  }
  const bool one_sign = family == InputFamily::near_overflow && (window.variant & 2) != 0;
  const bool negative = one_sign ? j % 2 != 0 : draw.coin();
  const bool lower = family != InputFamily::huge_products && draw.coin();
  return word_with_exponent(x.b, negative, exponent - (lower ? 1 : 0),
                            draw.wide(x.b.fraction_bits));
}

/// A subnormal factor, or a large one to multiply a subnormal one with.
constexpr std::uint64_t subnormal_or_large(const OperandWords& f, bool subnormal, Draw& draw) {
  return subnormal ? between_word(f, f.lowest, f.least_normal, draw)
                   : between_word(f, -6, f.highest, draw);
}

constexpr std::uint64_t small_integer_word(const OperandWords& f, int reach, Draw& draw) {
  return word_of_double(f, static_cast<double>(draw.between(-reach, reach)));
}

/// Zero in `count` of 256 draws, else a number near one.
constexpr std::uint64_t mostly_zero_word(const OperandWords& f, int count, Draw& draw) {
  return draw.chance(count) ? signed_zero(f, draw) : between_word(f, -4, 2, draw);
}

constexpr std::uint64_t zero_or_power(const OperandWords& f, int count, Draw& draw) {
  const std::uint64_t sign = signed_zero(f, draw);
  return draw.chance(count) ? sign : word_with_exponent(f, sign != 0, 0, 0);
}

/// The position of the infinity or NaN in a row of A or column of B; -1 if it has none.
constexpr int special_place(std::uint64_t key, std::int64_t t, Place place, int index, int count,
                            int length) {
  Draw draw(key, t, place, index);
  return draw.chance(count) ? draw.below(length) : -1;
}

/// The chance, of 256, of an infinity or NaN at each position, for about one or two in a row of A.
constexpr int two_in_a_row(const InputShape& x) {
  return x.stored_k <= 8 ? 40 : x.stored_k <= 16 ? 24 : 8;
}

/// An element of A or B: `line` is its row or column, `at` its position in it.
constexpr std::uint64_t special_factor(const InputShape& x, const OperandWords& f,
                                       InputFamily family, std::uint64_t key, std::int64_t t,
                                       Place lines, int line, int at, Draw& draw) {
  const bool is_a = lines == Place::row;
  const int length = is_a ? x.stored_k : x.k;
  switch (family) {
    case InputFamily::one_special:
      if (special_place(key, t, lines, line, is_a ? 128 : 64, length) == at)
        return special_word(f, draw, true);
      break;
    case InputFamily::infinities:
      if (special_place(key, t, lines, line, is_a ? 160 : 64, length) == at)
        return infinite_word(f, draw);
      if (draw.chance(is_a ? two_in_a_row(x) / 2 : 32))
        return is_a ? infinite_word(f, draw) : signed_zero(f, draw);
      break;
    default:
      if (draw.chance(two_in_a_row(x))) return nan_word(f, draw);
      break;
  }
  return narrow_word(f, draw);
}

}  // namespace guardbit::gpu
