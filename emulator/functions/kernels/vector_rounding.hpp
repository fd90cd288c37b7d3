#pragma once

// Operations on vectors of FP32 that do not round to nearest. Included behind `#pragma GCC target`.
// Where instructions name their direction of rounding these are used. Elsewhere the result to
// nearest is put right by the sign of what it left, which FP64 has exactly
// (tests/claims/vector_rounding_test.cpp).

#include <cstdint>
#include <limits>

#include "formats/rounding.hpp"
#include "formats/support/vectors/vector.hpp"

namespace guardbit::emulator::kernels {

template <class Isa>
struct VectorRounding {
  using Floats = typename Isa::Floats;
  using Words = typename Isa::Words;
  using Doubles = typename Isa::Doubles;
  using Mask = typename Isa::Mask;
  using Rounding = formats::Rounding;
  static constexpr std::uint32_t sign = 0x80000000;

  [[gnu::always_inline]] static Floats fma_down(Floats x, Floats y, Floats z) {
    if constexpr (Isa::names_rounding) {
      return Isa::fma_down(x, y, z);
    } else {
      const Floats nearest = Isa::fma(x, y, z);
      // Where both are positive and within a factor of two, z - nearest is exact (Sterbenz), and
      // what is left has the right sign, even if it is too small to be anything but a zero.
      const Floats zero{};
      const Mask is_close = Isa::less(zero, nearest) & Isa::at_most(z, nearest + nearest) &
                            Isa::at_most(nearest, z + z);
      if (Isa::all(is_close)) [[likely]] {
        const Floats rest = Isa::fma(x, y, z - nearest);
        return of(words(nearest) - (words(rest) >> 31));
      }
      const Floats rest = in_doubles(
          [&](Doubles a, Doubles b, Doubles c, Doubles near) __attribute__((always_inline)) {
            const Doubles product = a * b;  // exact
            const Doubles sum = product + c, of_z = sum - product;
            const Doubles lost = (product - (sum - of_z)) + (c - of_z);
            return signed_like((sum - near), lost);
          },
          x, y, z, nearest);
      return below(nearest, Isa::less(rest, zero));
    }
  }

  [[gnu::always_inline]] static Floats add_toward_zero(Floats x, Floats y) {
    if constexpr (Isa::names_rounding) {
      return Isa::add_toward_zero(x, y);
    } else {
      const Floats sum = x + y, of_y = sum - x;
      const Floats rest = (x - (sum - of_y)) + (y - of_y);  // exact
      const Floats zero{};
      const Mask is_too_large = (Isa::less(zero, sum) & Isa::less(rest, zero)) |
                                (Isa::less(sum, zero) & Isa::less(zero, rest)) |
                                (is_infinite(sum) & is_finite(x) & is_finite(y));
      return toward_zero(sum, is_too_large);
    }
  }

  [[gnu::always_inline]] static Floats multiply_toward_zero(Floats x, Floats y) {
    if constexpr (Isa::names_rounding) {
      return Isa::multiply_toward_zero(x, y);
    } else {
      const Words signs = (words(x) ^ words(y)) & sign;
      const Floats a = of(words(x) & ~sign), b = of(words(y) & ~sign), nearest = a * b;
      // From 2^-100 on what a product leaves is exact, and a zero positive.
      const Words place = words(nearest) - 0x0d800000;
      const Mask is_usual = Isa::less_signed(
          place ^ sign, formats::vectors::fill<Words>((0x7f800000 - 0x0d800000) ^ sign));
      if (Isa::all(is_usual)) [[likely]] {
        const Floats rest = Isa::fma(a, b, of(words(nearest) ^ sign));
        return of((words(nearest) - (words(rest) >> 31)) | signs);
      }
      const Floats rest = in_doubles(
          [](Doubles p, Doubles q, Doubles near) __attribute__((always_inline)) {
            return p * q - near;  // the product is exact, and the difference has the right sign
          },
          a, b, nearest);
      const Floats cut = toward_zero(nearest, Isa::less(rest, Floats{}));
      return of(words(cut) | signs);
    }
  }

  [[gnu::always_inline]] static Floats divide(Floats x, Floats y, Rounding rounding) {
    const Floats nearest = x / y;
    if (rounding == Rounding::nearest_even) return nearest;
    if constexpr (Isa::names_rounding) {
      if (rounding == Rounding::toward_zero) return Isa::divide_toward_zero(x, y);
      return rounding == Rounding::upward ? Isa::divide_up(x, y) : Isa::divide_down(x, y);
    } else {
      const Floats rest = in_doubles(
          [](Doubles a, Doubles b, Doubles near) __attribute__((always_inline)) {
            return a - near * b;  // exact
          },
          x, y, nearest);
      const Words signs = (words(x) ^ words(y)) & sign;
      const Floats zero{};
      const Mask is_exact = Isa::equal(x, zero) | Isa::equal(y, zero) | is_infinite(x) |
                            is_infinite(y) | Isa::unlike(Isa::equal(nearest, nearest));
      return directed(nearest, signs, of(words(rest) ^ (words(y) & sign)), is_exact, rounding);
    }
  }

  [[gnu::always_inline]] static Floats square_root(Floats x, Rounding rounding) {
    const Floats nearest = Isa::square_root(x);
    if (rounding == Rounding::nearest_even) return nearest;
    if constexpr (Isa::names_rounding) {
      return rounding == Rounding::upward ? Isa::square_root_up(x) : Isa::square_root_down(x);
    } else {
      const Floats rest = in_doubles(
          [](Doubles a, Doubles near) __attribute__((always_inline)) { return a - near * near; }, x,
          nearest);
      const Floats zero{};
      const Mask is_exact = Isa::unlike(Isa::less(zero, nearest)) | is_infinite(nearest);
      return directed(nearest, Words{}, rest, is_exact, rounding);
    }
  }

 private:
  [[gnu::always_inline]] static Words words(Floats x) { return formats::vectors::as<Words>(x); }
  [[gnu::always_inline]] static Floats of(Words x) { return formats::vectors::as<Floats>(x); }

  /// A function of doubles, of both halves of vectors, with numbers of FP32 that have the same sign
  /// or are zero with it: differences of FP32 numbers and their products are never below 2^-300.
  template <class Function, class... Each>
  [[gnu::always_inline]] static Floats in_doubles(const Function& function, Each... x) {
    using formats::vectors::half_of;
    const auto half = [](Doubles y) __attribute__((always_inline)) {
      const Doubles scale = Isa::all(0x1p240);
      return Isa::floats(y * scale);
    };
    const auto low = half(function(Isa::doubles(half_of<0>(x))...));
    const auto high = half(function(Isa::doubles(half_of<1>(x))...));
    return __builtin_shufflevector(low, high, 0, 1, 2, 3, 4, 5, 6, 7);
  }
  /// A difference, or where that is 0 what was lost of one side.
  [[gnu::always_inline]] static Doubles signed_like(Doubles difference, Doubles lost) {
    return difference == Doubles{} ? lost : difference;
  }

  [[gnu::always_inline]] static Mask is_infinite(Floats x) {
    return Isa::equal(words(x) & ~sign, formats::vectors::fill<Words>(0x7f800000));
  }
  [[gnu::always_inline]] static Mask is_finite(Floats x) {
    return Isa::unlike(Isa::at_least(words(x) & ~sign, formats::vectors::fill<Words>(0x7f800000)));
  }
  /// The next number toward zero of those in the mask.
  [[gnu::always_inline]] static Floats toward_zero(Floats x, Mask mask) {
    return of(words(x) - Isa::select(mask, formats::vectors::fill<Words>(1), Words{}));
  }
  /// The next number below.
  [[gnu::always_inline]] static Floats below(Floats x, Mask mask) {
    const Words code = words(x);
    const Mask is_negative = Isa::at_least(code, formats::vectors::fill<Words>(sign));
    const Words one = formats::vectors::fill<Words>(1);
    Words next = Isa::select(is_negative, code + one, code - one);
    next = Isa::select(Isa::equal(code, Words{}), one | sign, next);
    return of(Isa::select(mask, next, code));
  }
  /// The nearest number, or its neighbour where `rest`, the exact one less the nearest, has the
  /// other direction's sign.
  [[gnu::always_inline]] static Floats directed(Floats nearest, Words signs, Floats rest,
                                                Mask is_exact, Rounding rounding) {
    const Floats zero{};
    const Mask is_negative = Isa::equal(signs, formats::vectors::fill<Words>(sign));
    const Mask is_below = Isa::less(zero, rest), is_above = Isa::less(rest, zero);
    const auto chosen = [&](bool upward_of_positive, bool upward_of_negative) {
      const Mask is_upward = (upward_of_positive ? Isa::unlike(is_negative) : Mask{}) |
                             (upward_of_negative ? is_negative : Mask{});
      return is_upward;
    };
    const Mask is_upward = rounding == Rounding::upward     ? chosen(true, true)
                           : rounding == Rounding::downward ? chosen(false, false)
                                                            : chosen(false, true);
    const Mask moves =
        ((is_upward & is_below) | (Isa::unlike(is_upward) & is_above)) & Isa::unlike(is_exact);
    const Mask is_away = is_upward ^ is_negative;
    const Words one = formats::vectors::fill<Words>(1);
    const Words step = Isa::select(is_away, one, Words{} - one);
    return of(words(nearest) + Isa::select(moves, step, Words{}));
  }
};

}  // namespace guardbit::emulator::kernels
