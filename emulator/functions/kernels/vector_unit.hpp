#pragma once

// The special function unit in vectors. Included behind `#pragma GCC target`.
//
// T = C0 + C1 x + C2 S(x) has up to 44 bits. Its lower 32 are sums of products modulo 2^32; the
// upper ones follow from C0 and C1 x to a few units, or from the CPU's own approximation, because
// the lower bits say which number it is. S(x) is the square of the upper 8 bits of x without its
// lowest bit, and for each of 7 lower bits the upper ones shifted as far
// (tests/claims/squarer_test.cpp).

#include <array>
#include <cstdint>

#include "emulator/functions/kernels/unit_tables.hpp"
#include "emulator/functions/kernels/vector_number.hpp"
#include "emulator/functions/unit/special_function_forms.hpp"
#include "formats/support/vectors/vector.hpp"

namespace guardbit::emulator::kernels {

/// S(x) in words, below 2^15. This way takes products of 16 bits: two of the 7 lower bits at a
/// time, as two halves whose sum it is.
template <class Isa>
struct TruncatedSquare {
  using Words = typename Isa::Words;

  [[gnu::always_inline]] static Words of(Words x) {
    const Words placed = x << 7;
    const Words upper = Isa::bytes_of_words(placed, 2, -1, 2, -1);
    const Words lower = Isa::bytes_of_words(placed, 0, 1, 0, 1);
    Words sum = Isa::sums_of_products(upper, upper) >> 2;  // twice the square, over 4
    for (const std::uint32_t pair : {0x40008000U, 0x10002000U, 0x04000800U, 0x00000200U})
      sum += Isa::high_halves_of_products(lower & pair, upper);
    return Isa::sums_of_products(sum, formats::vectors::fill<Words>(0x00010001));
  }
};

/// The functions of the unit, on vectors of an instruction set.
template <class Isa>
struct VectorUnit {
  using Lookup = CoefficientLookup<Isa>;
  using Number = VectorNumber<Isa>;
  using Word = VectorWords<Isa>;
  using Mask = VectorMask<Isa>;
  using Words = typename Isa::Words;
  using Signed = typename Isa::template Of<std::int32_t>;

  static constexpr std::uint32_t fraction_mask = 0x7fffff;
  static constexpr std::uint32_t offset_mask = 0x1ffff;

  /// A segment's coefficients, and the lower 32 bits of T in units of 2^-fraction U. The index is
  /// in the lower bits of its words.
  struct Sum {
    Words c0, slopes, low;
  };
  /// `factor_of_x` is x times what a binade's c1 has over the first one's.
  template <const mufu::UnitFunction& f>
  [[gnu::always_inline]] static Sum sum(Words index, Words x, Words factor_of_x) {
    static_assert(f.squarer.lowest_column == 19);
    static_assert(fits_coefficient_table<f>());
    constexpr CoefficientScale scale = coefficient_scale(f);
    constexpr int k = scale.fraction;
    static_assert(mufu::offset_bits - f.binades[0].grid.c1 == k);
    static constexpr std::size_t count =
        static_cast<std::size_t>(f.binade_count) * f.binades[0].segments.size();
    static constexpr CoefficientTable<count> table = coefficient_table<f, count>();
    Sum sum;
    Lookup::find(table, index, sum.c0, sum.slopes);
    const Words rise = Isa::low_words_of_products(sum.slopes >> 16, factor_of_x);
    // The square's upper halves are 0, so that c1 does not count.
    const Words curve = Isa::sums_of_products(TruncatedSquare<Isa>::of(x), sum.slopes);
    const Words start = (sum.c0 << (k + scale.c0)) + static_cast<std::uint32_t>(scale.bias);
    sum.low = (scale.is_falling ? start - rise : start + rise) + curve;
    return sum;
  }

  /// T in units of U, cut, and what is below as a fraction of that many bits.
  struct Interpolated {
    Words whole, low;
  };
  template <const mufu::UnitFunction& f>
  [[gnu::always_inline]] static Interpolated interpolate(Words index, Words x) {
    constexpr CoefficientScale scale = coefficient_scale(f);
    constexpr int k = scale.fraction;
    const Sum t = sum<f>(index, x, x);
    // The upper halves of words: 16 bits of x times c1.
    const Words near_rise =
        Isa::high_halves_of_products(t.slopes, x << 15) >> 16 << (mufu::offset_bits - k);
    const Words near_start = t.c0 >> -scale.c0;
    const Words near = scale.is_falling ? near_start - near_rise : near_start + near_rise;
    return {near + signed_shift<k>(t.low - (near << k)), t.low};
  }

  /// The code of T times a power of 2, from that of a number that is closer than 2^-11 of it.
  template <const mufu::UnitFunction& f>
  [[gnu::always_inline]] static Words code_beside(Words near, Words low) {
    constexpr int k = coefficient_scale(f).fraction;
    static_assert(k <= 17);  // the lower 15 bits of the code are known
    return near + signed_shift<k>(low - (near << k));
  }

  template <int n>
  [[gnu::always_inline]] static Words signed_shift(Words x) {
    return formats::vectors::as<Words>(formats::vectors::as<Signed>(x) >> n);
  }

  /// whole + low / 2^n cut to 24 significant bits, in units of 2^unit; `low` has n bits that count
  /// and above them those of `whole`.
  template <int n>
  [[gnu::always_inline]] static Number cut(Words whole, Words low, float unit) {
    constexpr int upper_bits = 24 - n;
    const Number high = Number::of_integer(Word(whole & ~((1U << upper_bits) - 1)));
    const Number rest = Number::of_integer(Word(low & 0xffffff));
    const Number step = 1.0F / static_cast<float>(1U << n);
    if constexpr (Isa::names_rounding) {
      return Number::of_floats(Isa::fma_toward_zero(rest.floats(), step.floats(), high.floats())) *
             unit;
    } else {
      // `high` is 0 or more than the rest: what the sum loses is exact, and a zero positive.
      const Number nearest = fma(rest, step, high);
      const Number lost = fma(rest, step, high - nearest);
      return Number::of(bits(nearest) - (bits(lost) >> 31)) * unit;
    }
  }

  [[gnu::always_inline]] static Words code_of(Number x) { return bits(x).words; }
  [[gnu::always_inline]] static Words pick(Mask mask, Words yes, Words no) {
    return Isa::select(mask.lanes, yes, no);
  }
  [[gnu::always_inline]] static bool all(Mask mask) { return Isa::all(mask.lanes); }
  [[gnu::always_inline]] static Words all(std::uint32_t x) {
    return formats::vectors::fill<Words>(x);
  }
  [[gnu::always_inline]] static Number with_nan(Number result, Number x) {
    return select(x == x, result, Number::of(mufu::nan_code));
  }
  /// Signed words below a bound.
  [[gnu::always_inline]] static Mask is_below(Words x, std::uint32_t bound) {
    return {Isa::less_signed(x, all(bound))};
  }
  /// Codes of positive normal numbers.
  [[gnu::always_inline]] static Mask is_positive_normal(Words code) {
    return is_below(code + 0x7f800000, 0xff000000);
  }

  // Each function has a short form for arguments that are nothing special, and one for all.

  template <bool is_usual>
  [[gnu::always_inline]] static Number ex2_of(Number x) {
    // All results beyond are infinite or 0.
    const Number limited = is_usual ? x : select(x < 200, select(x > -200, x, -200), Number(200));
    // In units of 2^-23, cut; a negative number's fraction is its ones' complement, unless it is 0.
    const Words fixed = Isa::to_signed((limited * 0x1p23F).floats());
    const Mask is_whole = Word(fixed & fraction_mask) == Word(0U);
    const Words value = fixed + pick(is_whole, Words{}, signed_shift<31>(fixed));
    const Words whole = signed_shift<23>(value), offset = value & offset_mask;
    const Words t = interpolate<mufu::ex2>(value >> 17, offset).whole;
    Words result = t + ((whole + 126) << 23);
    if (is_usual) return Number::of(Word(result));
    result = pick(is_below(whole, 0U - 126), Words{}, result);
    result = pick(is_below(whole, 128), result, all(mufu::infinity_code));
    return with_nan(Number::of(Word(result)), x);
  }
  [[gnu::always_inline]] static Mask is_usual_for_ex2(Number x) {
    return is_below(code_of(abs(x)), 0x42fc0000);  // 126
  }
  [[gnu::always_inline]] static Number ex2(Number x) {
    return all(is_usual_for_ex2(x)) ? ex2_of<true>(x) : ex2_of_any(x);
  }
  [[gnu::noinline]] static Number ex2_of_any(Number x) { return ex2_of<false>(x); }

  /// Of normal numbers below 2^125.
  [[gnu::always_inline]] static Mask is_usual_for_rcp(Number x) {
    const Words magnitude = code_of(abs(x));
    return is_below(magnitude + (0x80000000 - mufu::smallest_normal), 0x80000000 + (251U << 23));
  }
  /// The lower 32 bits of T.
  [[gnu::always_inline]] static Words rcp_sum(Words code) {
    const Words offset = (code << 1) & offset_mask;
    return sum<mufu::rcp>(code >> 16, offset, offset).low;
  }
  [[gnu::always_inline]] static Number usual_rcp(Number x) {
    const Words near = formats::vectors::as<Words>(Isa::near_reciprocals(x.floats()));
    return Number::of(Word(code_beside<mufu::rcp>(near, rcp_sum(code_of(x)))));
  }
  [[gnu::always_inline]] static Number rcp(Number x) {
    return all(is_usual_for_rcp(x)) ? usual_rcp(x) : rcp_of_any(x);
  }
  [[gnu::noinline]] static Number rcp_of_any(Number x) {
    const Words code = code_of(x), magnitude = code & ~mufu::sign_bit;
    // Of the significand alone; its exponent's place is 127.
    const Words significand = (code & fraction_mask) | mufu::one_code;
    const Words of_significand = code_of(usual_rcp(Number::of(Word(significand))));
    Words result = of_significand + (127U << 23) - (magnitude & ~fraction_mask);
    // also of infinities
    result = pick(is_below(result, mufu::smallest_normal), Words{}, result);
    result = pick(is_below(magnitude, mufu::smallest_normal), all(mufu::infinity_code), result);
    return with_nan(Number::of(Word(result | (code & mufu::sign_bit))), x);
  }

  [[gnu::always_inline]] static Number usual_rsqrt(Number x) {
    const Words code = code_of(x), offset = code & offset_mask;
    const Words low = sum<mufu::rsqrt>(code >> 17, offset, offset).low;
    // 4^k: the binade of even exponents begins there
    const Mask is_exact = Word(code & 0xffffff) == Word(0x800000U);
    const Words near = formats::vectors::as<Words>(Isa::near_reciprocal_roots(x.floats()));
    return Number::of(Word(code_beside<mufu::rsqrt>(near, pick(is_exact, Words{}, low))));
  }
  [[gnu::always_inline]] static Number rsqrt(Number x) {
    const Number result = usual_rsqrt(x);
    if (all(is_positive_normal(code_of(x)))) [[likely]]
      return result;
    return with_specials(x, code_of(result), mufu::infinity_code, 0);
  }

  [[gnu::always_inline]] static Number usual_sqrt(Number x) {
    const Words code = code_of(x), offset = code & offset_mask;
    // c1 of odd exponents lies on a grid twice as coarse.
    const Mask is_even = Word(code & 0x800000) != Word(0U);
    const Words factor = pick(is_even, offset, offset + offset);
    const Words low = sum<mufu::sqrt>(code >> 17, offset, factor).low;
    const Number near = x * Number::of_floats(Isa::near_reciprocal_roots(x.floats()));
    return Number::of(Word(code_beside<mufu::sqrt>(code_of(near), low)));
  }
  [[gnu::always_inline]] static Number sqrt(Number x) {
    const Number result = usual_sqrt(x);
    if (all(is_positive_normal(code_of(x)))) [[likely]]
      return result;
    return with_specials(x, code_of(result), 0, mufu::infinity_code);
  }

  /// A result where x is positive and normal. Of what is below the normal range `zero` with x's
  /// sign, of infinity `infinite`.
  [[gnu::noinline]] static Number with_specials(Number x, Words result, std::uint32_t zero,
                                                std::uint32_t infinite) {
    const Words code = code_of(x), magnitude = code & ~mufu::sign_bit;
    result = pick(is_positive_normal(code), result, all(mufu::nan_code));
    result = pick(Word(code) == Word(mufu::infinity_code), all(infinite), result);
    const Words of_zero = all(zero) | (code & mufu::sign_bit);
    return Number::of(Word(pick(is_below(magnitude, mufu::smallest_normal), of_zero, result)));
  }

  template <const mufu::UnitFunction& f, bool is_usual>
  [[gnu::always_inline]] static Number sine_of(Number turns) {
    const Words code = code_of(turns);
    // In units of 2^-25, cut; whole turns do not count.
    Words fixed;
    if constexpr (is_usual) {
      fixed = Isa::to_signed((abs(turns) * 0x1p25F).floats());
    } else {
      const Words significand = (code & fraction_mask) | 0x800000;
      const Words shift = ((code >> 23) & 0xff) - 125;
      fixed = Isa::shift_left(significand, shift) | Isa::shift_right(significand, -shift);
    }
    const Words quadrant = (fixed >> 23) + static_cast<std::uint32_t>(f.quadrant);
    const Words part = fixed ^ (Words{} - (quadrant & 1)), offset = part & offset_mask;
    const Interpolated t = interpolate<f>(part >> 17, offset);
    const Number magnitude = cut<coefficient_scale(f).fraction>(t.whole, t.low, 0x1p-24F);
    Words sign = (quadrant & 2) << 30;
    if (f.is_odd) sign ^= code & mufu::sign_bit;
    const Number result = Number::of(Word(code_of(magnitude) | sign));
    if (is_usual) return result;
    const Mask is_finite = is_below(code & ~mufu::sign_bit, mufu::infinity_code);
    return select(is_finite, result, Number::of(mufu::nan_code));
  }
  template <const mufu::UnitFunction& f>
  [[gnu::always_inline]] static Number sine(Number turns) {
    const Mask is_usual = is_below(code_of(abs(turns)), 0x42000000);  // 32
    return all(is_usual) ? sine_of<f, true>(turns) : sine_of_any<f>(turns);
  }
  template <const mufu::UnitFunction& f>
  [[gnu::noinline]] static Number sine_of_any(Number turns) {
    return sine_of<f, false>(turns);
  }

  [[gnu::always_inline]] static Number usual_lg2(Number x) {
    const Words code = code_of(x), offset = code & offset_mask;
    const Interpolated t = interpolate<mufu::lg2>(code >> 17, offset);
    constexpr int k = coefficient_scale(mufu::lg2).fraction, sum_bits = 13;
    // log2(x) in units of 2^-23 and, below, 2^-36; ones' complements of negative sums
    const Words whole = t.whole + (((code >> 23) - 128) << 23);
    const Words is_negative = signed_shift<31>(whole);
    const Words low = ((t.low >> (k - sum_bits)) & ((1U << sum_bits) - 1)) | (whole << sum_bits);
    Number result = cut<sum_bits>(whole ^ is_negative, low ^ is_negative, 0x1p-23F);
    result = Number::of(Word(code_of(result) | (is_negative & mufu::sign_bit)));
    return select(Word(code) == Word(mufu::one_code), 0, result);
  }
  [[gnu::always_inline]] static Number lg2(Number x) {
    const Number result = usual_lg2(x);
    if (all(is_positive_normal(code_of(x)))) [[likely]]
      return result;
    const Words code = code_of(x);
    const Number of_zero = Number::of(mufu::sign_bit | mufu::infinity_code);
    const Mask is_zero = is_below(code & ~mufu::sign_bit, mufu::smallest_normal);
    return select(is_zero, of_zero, with_specials(x, code_of(result), 0, mufu::infinity_code));
  }

  [[gnu::always_inline]] static Number tanh(Number x) {
    static constexpr TanhTable table = tanh_table();
    constexpr int k = TanhTable::fraction;
    constexpr std::uint32_t first_exponent = 127 + mufu::tanh.first_exponent,
                            above = first_exponent + mufu::most_binades;
    const Words code = code_of(x), magnitude = code & ~mufu::sign_bit;
    const Words binade = ((magnitude >> 23) - first_exponent) & 15;
    const Words index_bits = Isa::bytes_looked_up(table.index_bits.data(), binade);
    const Words placed = code << 9;
    const Words index = Isa::bytes_looked_up(table.first.data(), binade) +
                        Isa::shift_right(placed, all(32) - index_bits);
    const Words offset = Isa::shift_left(placed, index_bits) >> 15;
    Words first, second;
    Lookup::find(table.coefficients, index, first, second);
    const Words c0 = first & 0xffffff, c1 = (first >> 24) | (second & 0x7ff) << 8,
                c2 = signed_shift<14>(second);
    const Words square = TruncatedSquare<Isa>::of(offset);
    const Words low =
        (c0 << k) + Isa::low_words_of_products(c1, offset) + Isa::low_words_of_products(c2, square);
    const Number units = 1.0F / (1 << k);
    const Number rise = Number::of_integer(Word(c1)) * Number::of_integer(Word(offset));
    const Number curve = fma(Number::of_integer(Word(c2)), Number::of_integer(Word(square)), rise);
    const Words near = c0 + Isa::to_signed((curve * units).floats());
    const Words whole = near + signed_shift<k>(low - (near << k));
    const Words sign = code & mufu::sign_bit;
    const Words result = code_of(cut<k>(whole, low, 0x1p-24F));
    const Mask is_interpolated = is_below(magnitude + (0x80000000 - (first_exponent << 23)),
                                          0x80000000 + (mufu::most_binades << 23));
    if (all(is_interpolated)) [[likely]]
      return Number::of(Word(result | sign));
    Words special = pick(is_below(magnitude, first_exponent << 23), magnitude, result);
    special = pick(is_below(magnitude, above << 23), special, all(mufu::one_code));
    return with_nan(Number::of(Word(special | sign)), x);
  }

  [[gnu::always_inline]] static Number evaluate(const mufu::UnitFunction& f, Number x) {
    if (&f == &mufu::ex2) return ex2(x);
    if (&f == &mufu::lg2) return lg2(x);
    if (&f == &mufu::rcp) return rcp(x);
    if (&f == &mufu::rsqrt) return rsqrt(x);
    if (&f == &mufu::sqrt) return sqrt(x);
    if (&f == &mufu::sin) return sine<mufu::sin>(x);
    if (&f == &mufu::cos) return sine<mufu::cos>(x);
    return tanh(x);
  }

  /// Of functions that have forms with a scaling: arguments in its short form, which none of their
  /// scalings takes.
  [[gnu::always_inline]] static Mask is_usual(const mufu::UnitFunction& f, Number x) {
    if (&f == &mufu::ex2) return is_usual_for_ex2(x);
    if (&f == &mufu::rcp) return is_usual_for_rcp(x);
    return is_positive_normal(code_of(x));
  }
  [[gnu::always_inline]] static Number usual(const mufu::UnitFunction& f, Number x) {
    if (&f == &mufu::ex2) return ex2_of<true>(x);
    if (&f == &mufu::rcp) return usual_rcp(x);
    if (&f == &mufu::lg2) return usual_lg2(x);
    return &f == &mufu::sqrt ? usual_sqrt(x) : usual_rsqrt(x);
  }

  [[gnu::always_inline]] static Number evaluate(const mufu::SpecialFunctionForm& form, Number x) {
    if (form.scalings[0].to == 0) return evaluate(*form.function, mufu::apply(form.before, x));
    if (all(is_usual(*form.function, x))) [[likely]]
      return usual(*form.function, x);
    return with_scaling(form, x);
  }
  [[gnu::noinline]] static Number with_scaling(const mufu::SpecialFunctionForm& form, Number x) {
    const Word magnitude = bits(abs(x));
    const auto taken = [&](const mufu::Scaling& scaling) __attribute__((always_inline)) {
      Mask mask = is_below(magnitude.words, scaling.to);
      if (scaling.from != 0) mask = mask & !is_below(magnitude.words, scaling.from);
      return scaling.negative_only ? mask & is_below(bits(x).words, 0) : mask;
    };
    Number argument = mufu::apply(form.before, x);
    for (const mufu::Scaling& scaling : form.scalings) {
      if (scaling.to == 0) continue;
      const Mask mask = taken(scaling);
      if (any(mask)) argument = select(mask, mufu::apply(scaling.before, x), argument);
    }
    Number result = evaluate(*form.function, argument);
    for (const mufu::Scaling& scaling : form.scalings) {
      if (scaling.to == 0) continue;
      const Mask mask = taken(scaling);
      if (any(mask)) result = select(mask, mufu::apply(scaling.after, result), result);
    }
    return result;
  }
};

}  // namespace guardbit::emulator::kernels
