// Mixed rows of floating operands: eight kinds of columns of B, and a family for each row of A and
// C.

#include <algorithm>

#include "formats/format_catalogue.hpp"
#include "gpu/inputs/mixed_rows.hpp"

namespace guardbit::gpu {

namespace {

/// Exponents of the columns of small and of large elements of B: the rows of small (large) elements
/// of A reach the smallest subnormal (the largest finite) result with them.
int small_exponent(const TensorCoreInstruction& instruction) {
  const int last = min_exponent(instruction.d) - instruction.d.fraction_bits;
  return std::max(last / 2, min_exponent(instruction.b) - instruction.b.fraction_bits + 1);
}
/// The power of two at odd k of the small column.
int smaller_exponent(const TensorCoreInstruction& instruction) {
  return std::max(small_exponent(instruction) - 11,
                  min_exponent(instruction.b) - instruction.b.fraction_bits);
}
/// The powers of two at even and at odd k of the ladder column.
constexpr int ladder_top = 8;
int ladder_bottom(const TensorCoreInstruction& instruction) {
  return std::max(-12, min_exponent(instruction.b) - instruction.b.fraction_bits);
}
int large_exponent(const TensorCoreInstruction& instruction) {
  return std::min(max_exponent(instruction.d) / 2, max_exponent(instruction.b));
}

template <class Make>
void fill_column(Execution& x, int j, Make make) {
  for (int k = 0; k < x.instruction.k; ++k) x.b(k, j) = make(k);
}
template <class Make>
void fill_a(Execution& x, int i, Make make) {
  for (int s = 0; s < x.instruction.stored_k(); ++s) x.a(i, s) = make(s);
}
template <class Make>
void fill_c(Execution& x, int i, Make make) {
  for (int j = 0; j < x.instruction.n; ++j) x.c(i, j) = make(j);
}

/// A word a few ulps from the one before it, so that the pairs of a row nearly cancel.
std::uint64_t neighbour(Execution& x, const Format& type, std::uint64_t word) {
  const std::uint64_t moved = (word + x.nudge(type)) & word_mask(type);
  return is_finite(type, moved) ? moved : word;
}

void make_columns(Execution& x) {
  const Format& type = x.instruction.b;
  const int small = small_exponent(x.instruction), large = large_exponent(x.instruction);
  // In a row of a sparse A two stored neighbours belong to any of four k.
  const int group = x.instruction.sparse ? 4 : 2;
  const auto paired = [&](int j, int low, int high) {
    fill_column(x, j, [&](int k) {
      return k % group == 0 ? x.value(type, low, high) : neighbour(x, type, x.b(k - 1, j));
    });
  };
  const auto alternate = [&](int j, int even, int odd) {
    fill_column(x, j, [&](int k) { return compose(type, false, k % 2 == 0 ? even : odd, 0); });
  };
  for (int j = 0; j < x.instruction.n; ++j) {
    switch (j % 8) {
      case 0: fill_column(x, j, [&](int) { return x.value(type, -2, 0); }); break;
      case 1: paired(j, -2, 0); break;
      case 2:
        fill_column(
            x, j, [&](int) { return x.index() % 2 == 0 ? x.value(type, -12, 8) : x.finite(type); });
        break;
      case 3: alternate(j, small, smaller_exponent(x.instruction)); break;
      case 4:
        paired(j, large - 1, large);
        fill_column(x, j, [&](int k) { return x.b(k, j) & ~sign_bit(type); });
        break;
      case 5:
        fill_column(x, j, [&](int) {
          return x.random.chance(50) ? x.zero(type) : x.value(type, -1, 1, 0);
        });
        break;
      case 6:
        fill_column(x, j, [&](int) { return x.value(type, -2, 0); });
        x.b(x.random.range(0, x.instruction.k - 1), j) = x.special(type);
        break;
      default: alternate(j, ladder_top, ladder_bottom(x.instruction)); break;
    }
  }
}

void set_a(Execution& x, int i, int low, int high) {
  fill_a(x, i, [&](int) { return x.value(x.instruction.a, low, high); });
}
void set_c(Execution& x, int i, int low, int high) {
  fill_c(x, i, [&](int) { return x.value(x.instruction.c, low, high); });
}
void set_zeros_or_c(Execution& x, int i, int percent, int low, int high) {
  fill_c(x, i, [&](int) {
    return x.random.chance(percent) ? x.zero(x.instruction.c) : x.value(x.instruction.c, low, high);
  });
}
std::uint64_t& any_a(Execution& x, int i) {
  return x.a(i, x.random.range(0, x.instruction.stored_k() - 1));
}

void pair_a(Execution& x, int i) {
  for (int s = 1; s < x.instruction.stored_k(); s += 2)
    if (x.random.chance(85))
      x.a(i, s) = neighbour(x, x.instruction.a, x.a(i, s - 1) ^ sign_bit(x.instruction.a));
}

bool all_finite(Execution& x, int i, int j) {
  for (int s = 0; s < x.instruction.stored_k(); ++s)
    if (!is_finite(x.instruction.a, x.a(i, s)) ||
        !is_finite(x.instruction.b, x.b(x.column(i, s), j)))
      return false;
  return true;
}

void raw_bits(Execution& x, int i) {
  fill_a(x, i, [&](int) { return x.raw(x.instruction.a); });
  fill_c(x, i, [&](int) { return x.raw(x.instruction.c); });
}

void finite_bits(Execution& x, int i) {
  fill_a(x, i, [&](int) { return x.finite(x.instruction.a); });
  fill_c(x, i, [&](int) { return x.finite(x.instruction.c); });
}

void near_one(Execution& x, int i) { set_a(x, i, -2, 0), set_c(x, i, -2, 2); }
void wide_exponents(Execution& x, int i) { set_a(x, i, -12, 8), set_c(x, i, -16, 12); }
void staggered_terms(Execution& x, int i) { set_a(x, i, -13, 0), set_c(x, i, -13, 1); }
void wide_addend(Execution& x, int i) { set_a(x, i, -2, 0), set_c(x, i, -30, 30); }

/// One product near one above many around the last kept bits.
void trailing_terms(Execution& x, int i) {
  set_a(x, i, -28, -8);
  any_a(x, i) = x.value(x.instruction.a, 0, 1);
  set_zeros_or_c(x, i, 50, -28, 0);
}

/// c = -(sum of products) plus a few ulps.
void cancellation(Execution& x, int i) {
  near_one(x, i);
  for (int j = 0; j < x.instruction.n; ++j) {
    if (!all_finite(x, i, j)) continue;
    x.c(i, j) = 0;
    const std::uint64_t word =
        word_of(x.instruction.c, -exact_total(x.instruction, x.batch(), x.index(), i, j));
    x.c(i, j) = neighbour(x, x.instruction.c, word);
  }
}

void pair_cancellation(Execution& x, int i) {
  set_a(x, i, -2, 0), pair_a(x, i);
  set_zeros_or_c(x, i, 30, -30, 0);
}

void subnormal(Execution& x, int i) {
  const int target = min_exponent(x.instruction.d) - small_exponent(x.instruction);
  set_a(x, i, target - 6, target + 6);
  set_c(x, i, min_exponent(x.instruction.c) - x.instruction.c.fraction_bits,
        min_exponent(x.instruction.c) + 2);
}

void tiny_zero_addend(Execution& x, int i) {
  const int last = min_exponent(x.instruction.d) - x.instruction.d.fraction_bits,
            target = last - small_exponent(x.instruction);
  x.random.chance(50) ? set_a(x, i, target - 8, target + 2) : set_a(x, i, target - 16, target + 8);
  set_zeros_or_c(x, i, 85, last, last + 2);
}

/// Products of one sign with the large column.
void near_overflow(Execution& x, int i) {
  const int high = max_exponent(x.instruction.d), target = high - large_exponent(x.instruction);
  const std::uint64_t sign = x.zero(x.instruction.a);
  fill_a(x, i, [&](int) {
    return (x.value(x.instruction.a, target - 6, target - 1) & ~sign_bit(x.instruction.a)) | sign;
  });
  set_c(x, i, high - 8, high);
}

void huge_products(Execution& x, int i) {
  const int high = max_exponent(x.instruction.d), target = high - large_exponent(x.instruction);
  set_a(x, i, target - 1, target + 6), pair_a(x, i);
  set_zeros_or_c(x, i, 30, high - 30, high);
}

void sparse_zeros(Execution& x, int i) {
  fill_a(x, i, [&](int) {
    return x.random.chance(70) ? x.zero(x.instruction.a) : x.value(x.instruction.a, -4, 2);
  });
  set_zeros_or_c(x, i, 70, -4, 2);
}

void dominant_product(Execution& x, int i) {
  set_a(x, i, -2, 0), set_zeros_or_c(x, i, 30, -16, 0);
  any_a(x, i) = x.value(x.instruction.a, 4, 14);
}

void short_fractions(Execution& x, int i) {
  fill_a(x, i, [&](int) { return x.value(x.instruction.a, -4, 1, 2); });
  set_c(x, i, -3, 4);
}

void exact_zeros(Execution& x, int i) {
  fill_a(x, i, [&](int) {
    return x.random.chance(60) ? x.zero(x.instruction.a) : x.value(x.instruction.a, 0, 0, 0);
  });
  fill_c(x, i, [&](int) { return x.random.chance(70) ? sign_bit(x.instruction.c) : 0; });
}

void negative_zeros(Execution& x, int i) {
  fill_a(x, i, [&](int) { return sign_bit(x.instruction.a); });
  fill_c(x, i, [&](int) { return x.random.chance(70) ? sign_bit(x.instruction.c) : 0; });
}

void single_special(Execution& x, int i) {
  near_one(x, i), any_a(x, i) = x.special(x.instruction.a);
}
void infinity_times_zero(Execution& x, int i) {
  near_one(x, i), any_a(x, i) = x.infinite(x.instruction.a);
}

void infinity_minus_infinity(Execution& x, int i) {
  near_one(x, i);
  for (int n = x.random.range(1, 2); n > 0; --n) any_a(x, i) = x.infinite(x.instruction.a);
  fill_c(x, i,
         [&](int j) { return x.random.chance(30) ? x.infinite(x.instruction.c) : x.c(i, j); });
}

void special_addend(Execution& x, int i) {
  near_one(x, i);
  fill_c(x, i, [&](int) { return x.special(x.instruction.c); });
}

void overflow_and_special_addend(Execution& x, int i) {
  const int target = max_exponent(x.instruction.d) - large_exponent(x.instruction);
  set_a(x, i, target - 2, target + 3);
  fill_c(x, i, [&](int) { return x.special(x.instruction.c, true); });
}

void mixed_specials(Execution& x, int i) {
  near_one(x, i);
  fill_a(x, i, [&](int s) { return x.random.chance(5) ? x.special(x.instruction.a) : x.a(i, s); });
  fill_c(x, i, [&](int j) { return x.random.chance(30) ? x.special(x.instruction.c) : x.c(i, j); });
}

void nan_payloads(Execution& x, int i) {
  near_one(x, i);
  for (int n = x.random.range(1, 2); n > 0; --n) any_a(x, i) = x.any_nan(x.instruction.a);
  fill_c(x, i, [&](int j) { return x.random.chance(40) ? x.any_nan(x.instruction.c) : x.c(i, j); });
}

/// The n-th stored value whose k has the given remainder modulo `modulus`; the last such value, or
/// any, if there are fewer.
std::uint64_t& a_at(Execution& x, int i, int modulus, int remainder, int n) {
  int found = 0;
  for (int s = 0; s < x.instruction.stored_k(); ++s) {
    if (x.column(i, s) % modulus != remainder) continue;
    found = s;
    if (n-- == 0) break;
  }
  return x.a(i, found);
}

void clear(Execution& x, int i) {
  fill_a(x, i, [](int) { return std::uint64_t{0}; });
  fill_c(x, i, [&](int) { return x.zero(x.instruction.c); });
}

/// 2^8 - 2^8 +- 2^(8 - distance) with the ladder column: the sum is the last term if that is kept.
/// All products have k = 0, 1, 4, 5, … (which FP8 mma.sync adds together) if there are enough.
void distant_term(Execution& x, int i, int distance) {
  clear(x, i);
  const int modulus = x.instruction.stored_k() >= 8 ? 4 : 2;
  a_at(x, i, modulus, 0, 0) = compose(x.instruction.a, false, 0, 0);
  a_at(x, i, modulus, 0, 1) = compose(x.instruction.a, true, 0, 0);
  a_at(x, i, modulus, 1, 0) =
      compose(x.instruction.a, x.random.chance(50), 8 - distance - ladder_bottom(x.instruction), 0);
}

/// F, the number of bits kept below the largest exponent: 13 for FP8 wgmma, 25 elsewhere on Hopper.
int last_kept_bit(const TensorCoreInstruction& instruction) {
  return instruction.unit == Unit::wgmma && bits(instruction.a) == 8 ? 13 : 25;
}
void last_kept_term(Execution& x, int i) { distant_term(x, i, last_kept_bit(x.instruction)); }
void first_lost_term(Execution& x, int i) { distant_term(x, i, last_kept_bit(x.instruction) + 1); }

/// With the small column and a zero addend: what one ulp of the result (half of one where results
/// are rounded to nearest) becomes when a term `distance` below the smallest subnormal result joins
/// it.
void tiny_pair(Execution& x, int i, int distance) {
  clear(x, i);
  const bool nearest = x.instruction.d == formats::fp16;
  const int last = min_exponent(x.instruction.d) - x.instruction.d.fraction_bits;
  a_at(x, i, 2, 0, 0) =
      compose(x.instruction.a, false, last - (nearest ? 1 : 0) - small_exponent(x.instruction), 0);
  a_at(x, i, 2, 1, 0) =
      compose(x.instruction.a, !nearest, last - distance - smaller_exponent(x.instruction), 0);
}

/// A zero addend's exponent sets the grid: terms down to 2^-158 (2^-46 for FP16 results) count on
/// Hopper.
void last_term_beside_zero(Execution& x, int i) {
  tiny_pair(x, i, x.instruction.d == formats::fp16 ? 22 : 9);
}
void lost_term_beside_zero(Execution& x, int i) {
  tiny_pair(x, i, x.instruction.d == formats::fp16 ? 23 : 10);
}

/// Large terms of the ladder column in the first and the last block of k, which cancel only
/// together.
void split_cancellation(Execution& x, int i) {
  clear(x, i);
  fill_a(x, i, [&](int s) {
    return x.column(i, s) % 2 == 0 ? 0
                                   : x.value(x.instruction.a, -22 - ladder_bottom(x.instruction),
                                             -6 - ladder_bottom(x.instruction));
  });
  a_at(x, i, 2, 0, 0) = compose(x.instruction.a, false, 0, 0);
  a_at(x, i, 2, 0, x.instruction.k) = compose(x.instruction.a, true, 0, 0);
}

constexpr RowFamily families_in_order[] = {
    {"near_one", near_one},
    {"staggered_terms", staggered_terms},
    {"wide_exponents", wide_exponents},
    {"trailing_terms", trailing_terms},
    {"wide_addend", wide_addend},
    {"cancellation", cancellation},
    {"pair_cancellation", pair_cancellation},
    {"split_cancellation", split_cancellation},
    {"dominant_product", dominant_product},
    {"subnormal", subnormal},
    {"tiny_zero_addend", tiny_zero_addend},
    {"near_overflow", near_overflow},
    {"huge_products", huge_products},
    {"sparse_zeros", sparse_zeros},
    {"exact_zeros", exact_zeros},
    {"negative_zeros", negative_zeros},
    {"single_special", single_special},
    {"infinity_times_zero", infinity_times_zero},
    {"infinity_minus_infinity", infinity_minus_infinity},
    {"special_addend", special_addend},
    {"overflow_and_special_addend", overflow_and_special_addend},
    {"mixed_specials", mixed_specials},
    {"nan_payloads", nan_payloads},
    {"last_kept_term", last_kept_term},
    {"first_lost_term", first_lost_term},
    {"last_term_beside_zero", last_term_beside_zero},
    {"lost_term_beside_zero", lost_term_beside_zero},
    {"tiny_zero_addend", tiny_zero_addend},
    {"trailing_terms", trailing_terms},
    {"short_fractions", short_fractions},
    {"finite_bits", finite_bits},
    {"raw_bits", raw_bits},
};

}  // namespace

MixedRows mixed_floats() { return {"mixed_floats", make_columns, families_in_order}; }

}  // namespace guardbit::gpu
