#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "formats/conversion/kernels/conversion_kernels.hpp"
#include "formats/conversion/kernels/conversion_plan.hpp"
#include "formats/conversion/kernels/philox_keys.hpp"

// The kernels over any Lanes (PortableLanes says what those are). Every function is a template over
// them, so that each translation unit has its own, compiled for its own CPU.
namespace guardbit::formats::kernels {

/// Raises the exponent fields of FP32 magnitudes so that a subnormal's is its own exponent's, and
/// moves its leading bit to where a normal number's is. An integer below 2^23 is an FP32 number
/// exactly, 2^149 times the subnormal. Zero has neither field nor significand.
template <class Lanes>
[[gnu::always_inline]] inline void normalise(typename Lanes::Word magnitude,
                                             typename Lanes::Word& field,
                                             typename Lanes::Word& significand) {
  const auto as_float = Lanes::float_of(magnitude);
  const auto subnormal_field =
      (as_float >> Lanes::set(23)) + Lanes::set(raised_field) - Lanes::set(149);
  const auto subnormal = (as_float & Lanes::set(0x7FFFFF)) | Lanes::set(0x800000);
  const auto is_normal = Lanes::at_least(magnitude, Lanes::set(0x800000));
  const auto is_zero = Lanes::equal(magnitude, Lanes::set(0));
  field = Lanes::select(is_normal, field + Lanes::set(raised_field), subnormal_field);
  field = Lanes::select(is_zero, Lanes::set(0), field);
  significand = Lanes::select(is_normal, significand, subnormal);
  significand = Lanes::select(is_zero, Lanes::set(0), significand);
}

/// A Narrowing in registers.
template <class Lanes, Alignment alignment, RoundingClass rounding, Signs signs>
class Narrower {
 public:
  using Word = typename Lanes::Word;
  using Mask = typename Lanes::Mask;

  explicit Narrower(const Narrowing& plan)
      : plan_(plan),
        shift_(Lanes::set(plan.shift)),
        lowest_(Lanes::set(plan.lowest)),
        offset_lowest_(Lanes::set(plan.offset_lowest)),
        fraction_bits_(Lanes::set(plan.fraction_bits)),
        first_exceptional_(Lanes::set(plan.first_exceptional)),
        sign_shift_(Lanes::set(plan.sign_shift)),
        sign_mask_(Lanes::set(plan.sign_mask)) {}

  /// Another `lowest` than the plan's, as another scale has it.
  [[gnu::always_inline]] void set_lowest(Word lowest) {
    lowest_ = lowest;
    if constexpr (signs != Signs::complement) offset_lowest_ = lowest;
  }

  /// Magnitudes of words, before anything is made of those past the largest. The significand is
  /// shifted right by the distance from its last bit to the destination's unit at its exponent,
  /// after an addend that makes the truncation a rounding: with the kept bits' last bit `odd` and s
  /// bits lost, (significand + addend) >> s is one more than significand >> s exactly when the lost
  /// part plus the addend reaches 2^s. To nearest even the addend is 2^(s-1) - 1 + odd, to nearest
  /// away 2^(s-1), away from zero 2^s - 1, to odd 2^s - 1 where the last bit is even. Adding the
  /// kept bits to the exponent's field lets a carry move into it, as in `encode`.
  [[gnu::always_inline]] Word magnitude_code(Word word, Word random) const {
    if constexpr (signs == Signs::none) word = word & Lanes::set(plan_.read_mask);
    const Word magnitude = word & Lanes::set(0x7FFFFFFF);
    if constexpr (alignment == Alignment::same_exponents) {
      return round(magnitude, shift_, word, random);
    } else {
      Word field = magnitude >> Lanes::set(23);
      Word significand = (magnitude & Lanes::set(0x7FFFFF)) | Lanes::set(0x800000);
      if constexpr (alignment == Alignment::any) {
        normalise<Lanes>(magnitude, field, significand);
        significand = significand + significand;  // at least one bit lies below every unit
      }
      const Word below = Lanes::excess(lowest_, field);
      return round(significand, shift_ + below, word, random) +
             Lanes::shift_left(Lanes::excess(field, offset_lowest_), fraction_bits_);
    }
  }

  /// Which magnitudes `judge` must see.
  [[gnu::always_inline]] Mask is_exceptional(Word word, Word kept) const {
    const Mask large = Lanes::at_least(kept, first_exceptional_);
    if constexpr (signs != Signs::none) return large;
    const Word negative = word & Lanes::set(plan_.negative_is_exceptional);
    return Lanes::either(large, Lanes::at_least(negative, Lanes::set(1)));
  }

  [[gnu::always_inline]] Word with_sign(Word word, Word kept) const {
    if constexpr (signs == Signs::none) return kept;
    if constexpr (signs == Signs::complement) {
      const Word negative = Lanes::negative(word);
      return ((kept ^ negative) - negative) & Lanes::set(plan_.code_mask);
    }
    const Word sign = Lanes::shift_right(word, sign_shift_) & sign_mask_;
    if constexpr (signs == Signs::bit) return kept | sign;
    return Lanes::select(Lanes::equal(kept, Lanes::set(0)), kept, kept | sign);
  }

  /// The codes where some magnitude may be none of the format's.
  [[gnu::always_inline]] Word judge(Word word, Word kept) const {
    if constexpr (signs == Signs::none) word = word & Lanes::set(plan_.read_mask);
    const Word magnitude = word & Lanes::set(0x7FFFFFFF);
    const Word negative = Lanes::negative(word);
    const auto by_sign = [&](const std::array<std::uint32_t, 2>& pair) {
      return Lanes::set(pair[0]) ^ (negative & Lanes::set(pair[0] ^ pair[1]));
    };
    const Word past_largest = by_sign(plan_.largest) + Lanes::set(1);
    Word result = Lanes::select(Lanes::at_least(kept, past_largest), by_sign(plan_.overflow),
                                with_sign(word, kept));
    if constexpr (signs == Signs::none) {
      const Word below_zero =
          negative & magnitude & Lanes::negative(Lanes::set(plan_.negative_is_exceptional));
      result = Lanes::select(Lanes::at_least(below_zero, Lanes::set(1)),
                             Lanes::set(plan_.negative_finite), result);
    }
    const Word infinity = Lanes::set(0x7F800000);
    result = Lanes::select(Lanes::at_least(magnitude, infinity), by_sign(plan_.infinity), result);
    const Word payload = Lanes::shift_right(magnitude, Lanes::set(23) - fraction_bits_) &
                         Lanes::set(plan_.payload_mask);
    return Lanes::select(Lanes::at_least(magnitude, infinity + Lanes::set(1)),
                         by_sign(plan_.nan) + payload, result);
  }

 private:
  [[gnu::always_inline]] Word round(Word significand, Word shift, Word word, Word random) const {
    const Word one = Lanes::set(1);
    if constexpr (rounding == RoundingClass::nearest_even) {
      const Word odd = Lanes::shift_right(significand, shift) & one;
      // -2^(s-1), or 0 past the word: then every significand lies below half.
      const Word minus_half = Lanes::shift_left(Lanes::set(~0U), shift - one);
      return Lanes::shift_right(significand - minus_half - (one - odd), shift);
    } else if constexpr (rounding == RoundingClass::directed) {
      // Significands have at most 31 bits: past that a longer shift tells nothing new.
      const Word s = Lanes::smaller(shift, Lanes::set(31));
      const Word ones = Lanes::shift_left(one, s) - one;
      const Word odd = Lanes::shift_right(significand, s) & one;
      const Word away =
          ((Lanes::negative(word) ^ Lanes::set(plan_.flip_sign)) & Lanes::set(plan_.by_sign)) |
          ((odd - one) & Lanes::set(plan_.to_odd));
      const Word half =
          (ones & Lanes::set(plan_.add_half)) - ((ones & Lanes::set(plan_.add_half)) >> one);
      return Lanes::shift_right(significand + (half | (ones & away)), s);
    } else if constexpr (rounding == RoundingClass::stochastic) {
      // The first 32 bits below the unit, plus the random ones at their top: random_carry asks
      // whether the sum leaves the word, and bits below the random ones cannot change that.
      const Word lost = Lanes::shift_left(significand, Lanes::set(32) - shift) |
                        Lanes::shift_right(significand, shift - Lanes::set(32));
      const Word bits = random & Lanes::set(plan_.random_mask);
      const Word kept = Lanes::shift_right(significand, shift);
      return Lanes::select(Lanes::at_least(lost + bits, bits), kept, kept + one);
    } else {
      return Lanes::shift_right(significand, shift);
    }
  }

  const Narrowing& plan_;
  Word shift_, lowest_, offset_lowest_, fraction_bits_, first_exceptional_, sign_shift_, sign_mask_;
};

/// Completes the codes of four vectors: one look decides whether any number among them is
/// exceptional.
template <class Lanes, class Narrower>
[[gnu::always_inline]] inline void settle(const Narrower& narrower,
                                          const std::array<typename Lanes::Word, 4>& word,
                                          std::array<typename Lanes::Word, 4>& code) {
  const auto exceptional = [&](std::size_t part) {
    return narrower.is_exceptional(word[part], code[part]);
  };
  const bool any = Lanes::any(Lanes::either(Lanes::either(exceptional(0), exceptional(1)),
                                            Lanes::either(exceptional(2), exceptional(3))));
  for (std::size_t part = 0; part < 4; ++part) {
    code[part] =
        any ? narrower.judge(word[part], code[part]) : narrower.with_sign(word[part], code[part]);
  }
}

template <class Lanes, Alignment alignment, RoundingClass rounding, Signs signs, int container>
void narrow_loop(const Narrowing& plan, const std::byte* words, const std::uint32_t* random,
                 std::byte* codes, std::size_t count, bool stream) {
  using Word = typename Lanes::Word;
  const Narrower<Lanes, alignment, rounding, signs> narrower(plan);
  constexpr std::size_t step = 4 * Lanes::count;
  constexpr std::size_t bytes = Lanes::count * sizeof(std::uint32_t);
  for (std::size_t i = 0; i < count; i += step) {
    std::array<Word, 4> word;
    std::array<Word, 4> code;
    for (std::size_t part = 0; part < 4; ++part) {
      Word bits{};
      if constexpr (rounding == RoundingClass::stochastic)
        std::memcpy(&bits, random + i + part * Lanes::count, sizeof bits);
      word[part] = Lanes::load(words + i * sizeof(std::uint32_t) + part * bytes);
      code[part] = narrower.magnitude_code(word[part], bits);
    }
    settle<Lanes>(narrower, word, code);
    const auto [x0, x1, x2, x3] = code;
    std::byte* const at = codes + i * (container / 8);
    if constexpr (container == 8) {
      Lanes::store8(at, x0, x1, x2, x3, stream);
    } else if constexpr (container == 16) {
      Lanes::store16(at, x0, x1, x2, x3, stream);
    } else {
      const Word up = Lanes::set(plan.container_shift);
      Lanes::store32(at, Lanes::shift_left(x0, up), Lanes::shift_left(x1, up),
                     Lanes::shift_left(x2, up), Lanes::shift_left(x3, up), stream);
    }
  }
}

using NarrowFunction = decltype(Kernels::narrow);

template <class Lanes, Alignment alignment, RoundingClass rounding, Signs signs>
NarrowFunction narrow_for_container(int container) {
  if (container == 8) return narrow_loop<Lanes, alignment, rounding, signs, 8>;
  if (container == 16) return narrow_loop<Lanes, alignment, rounding, signs, 16>;
  return narrow_loop<Lanes, alignment, rounding, signs, 32>;
}

template <class Lanes, Alignment alignment, RoundingClass rounding>
NarrowFunction narrow_for_signs(const Narrowing& plan) {
  switch (plan.signs) {
    case Signs::bit:
      return narrow_for_container<Lanes, alignment, rounding, Signs::bit>(plan.container);
    case Signs::bit_not_zero:
      return narrow_for_container<Lanes, alignment, rounding, Signs::bit_not_zero>(plan.container);
    case Signs::complement:
      return narrow_for_container<Lanes, alignment, rounding, Signs::complement>(plan.container);
    case Signs::none: break;
  }
  return narrow_for_container<Lanes, alignment, rounding, Signs::none>(plan.container);
}

template <class Lanes, Alignment alignment>
NarrowFunction narrow_for_rounding(const Narrowing& plan) {
  switch (plan.rounding) {
    case RoundingClass::nearest_even:
      return narrow_for_signs<Lanes, alignment, RoundingClass::nearest_even>(plan);
    case RoundingClass::toward_zero:
      return narrow_for_signs<Lanes, alignment, RoundingClass::toward_zero>(plan);
    case RoundingClass::directed:
      // Never where the tiny vanish: they may round to the smallest number.
      if constexpr (alignment != Alignment::tiny_vanish)
        return narrow_for_signs<Lanes, alignment, RoundingClass::directed>(plan);
      break;
    case RoundingClass::stochastic: break;
  }
  return narrow_for_signs<Lanes, alignment, RoundingClass::stochastic>(plan);
}

template <class Lanes>
void narrow(const Narrowing& plan, const std::byte* words, const std::uint32_t* random,
            std::byte* codes, std::size_t count, bool stream) {
  const NarrowFunction function = plan.alignment == Alignment::same_exponents
                                      ? narrow_for_rounding<Lanes, Alignment::same_exponents>(plan)
                                  : plan.alignment == Alignment::tiny_vanish
                                      ? narrow_for_rounding<Lanes, Alignment::tiny_vanish>(plan)
                                      : narrow_for_rounding<Lanes, Alignment::any>(plan);
  function(plan, words, random, codes, count, stream);
}

/// FP32 words of codes. A floating code below its sign, moved to where FP32 has exponent and
/// fraction, is the number's word but for the bias; a subnormal code is an integer, which FP32
/// holds, times a power of two. Both corrections are additions to the exponent field.
template <class Lanes, Widening::Kind kind>
[[gnu::always_inline]] inline typename Lanes::Word widened(const Widening& plan,
                                                           typename Lanes::Word container) {
  using Word = typename Lanes::Word;
  const Word code =
      Lanes::shift_right(container, Lanes::set(plan.container_shift)) & Lanes::set(plan.code_mask);
  const Word sign = code & Lanes::set(plan.sign_mask);
  if constexpr (kind == Widening::Kind::shifted) {
    return Lanes::shift_left(code, Lanes::set(plan.fraction_shift));
  } else if constexpr (kind == Widening::Kind::integer) {
    return Lanes::float_of((code ^ Lanes::set(plan.sign_mask)) - Lanes::set(plan.sign_mask));
  } else {
    const Word magnitude = code ^ sign;
    const Word moved = Lanes::shift_left(magnitude, Lanes::set(plan.fraction_shift));
    const Word subnormal =
        Lanes::select(Lanes::equal(magnitude, Lanes::set(0)), Lanes::set(0),
                      Lanes::float_of(magnitude) + Lanes::set(plan.subnormal_offset));
    Word word = Lanes::select(Lanes::at_least(magnitude, Lanes::set(plan.least_normal)),
                              moved + Lanes::set(plan.exponent_offset), subnormal);
    word = Lanes::select(Lanes::at_least(magnitude, Lanes::set(plan.first_special)),
                         moved + Lanes::set(plan.special_offset), word);
    word = word | Lanes::shift_left(sign, Lanes::set(plan.sign_shift));
    return Lanes::select(Lanes::equal(code, Lanes::set(plan.lone_nan)), Lanes::set(0x7FC00000),
                         word);
  }
}

template <class Lanes, Widening::Kind kind>
void widen_loop(const Widening& plan, const std::byte* codes, std::byte* words, std::size_t count) {
  const Widening here = plan;  // so that no store seems to change it
  for (std::size_t i = 0; i < count; i += Lanes::count) {
    const std::byte* const at = codes + i * static_cast<std::size_t>(here.container / 8);
    const auto container = here.container == 8    ? Lanes::load8(at)
                           : here.container == 16 ? Lanes::load16(at)
                                                  : Lanes::load(at);
    Lanes::store(words + i * sizeof(std::uint32_t), widened<Lanes, kind>(here, container));
  }
}

template <class Lanes>
void widen(const Widening& plan, const std::byte* codes, std::byte* words, std::size_t count) {
  switch (plan.kind) {
    case Widening::Kind::shifted:
      return widen_loop<Lanes, Widening::Kind::shifted>(plan, codes, words, count);
    case Widening::Kind::floating:
      return widen_loop<Lanes, Widening::Kind::floating>(plan, codes, words, count);
    case Widening::Kind::integer:
      return widen_loop<Lanes, Widening::Kind::integer>(plan, codes, words, count);
  }
}

/// FP32 words of products. high_product gives 32 bits of a significand's product with the factor,
/// the last one set if any below is: rounded to odd, with more than two bits below FP32's last
/// place, so that rounding it gives what rounding the product itself does.
template <class Lanes, bool nearest>
void multiply_loop(const Multiplication& plan, const std::byte* words, std::byte* products,
                   std::size_t count) {
  using Word = typename Lanes::Word;
  const Multiplication here = plan;  // so that no store seems to change it
  const Word one = Lanes::set(1);
  const Word sign_bit = Lanes::set(0x80000000);
  const Word infinity = Lanes::set(0x7F800000);
  for (std::size_t i = 0; i < count; i += Lanes::count) {
    const Word word = Lanes::load(words + i * sizeof(std::uint32_t));
    const Word magnitude = word & Lanes::set(0x7FFFFFFF);
    Word field = magnitude >> Lanes::set(23);
    Word significand = (magnitude & Lanes::set(0x7FFFFF)) | Lanes::set(0x800000);
    normalise<Lanes>(magnitude, field, significand);
    Word product = Lanes::high_product(significand, Lanes::set(here.high), Lanes::set(here.low));
    // From 2^30 to 2^32: the leading bit moves to bit 31, then makes room for sums.
    const auto is_low = Lanes::equal(product & sign_bit, Lanes::set(0));
    product = Lanes::select(is_low, product + product, product);
    field = field + Lanes::set(here.field_offset) - Lanes::select(is_low, one, Lanes::set(0));
    product = (product >> one) | (product & one);
    const Word shift = Lanes::set(7) + Lanes::excess(Lanes::set(here.lowest), field);
    Word kept;
    if constexpr (nearest) {
      const Word odd = Lanes::shift_right(product, shift) & one;
      const Word minus_half = Lanes::shift_left(Lanes::set(~0U), shift - one);
      kept = Lanes::shift_right(product - minus_half - (one - odd), shift);
    } else {
      const Word s = Lanes::smaller(shift, Lanes::set(31));
      const Word lost = product & (Lanes::shift_left(one, s) - one);
      kept = Lanes::shift_right(product, s) | Lanes::smaller(lost, one);
    }
    const Word binades =
        Lanes::smaller(Lanes::excess(field, Lanes::set(here.lowest)), Lanes::set(256));
    Word result = Lanes::smaller(kept + (binades << Lanes::set(23)), infinity);
    result = Lanes::select(Lanes::equal(magnitude, Lanes::set(0)), Lanes::set(0), result);
    result = Lanes::select(Lanes::at_least(magnitude, infinity), magnitude, result);
    result = result | ((word ^ Lanes::set(here.negates)) & sign_bit);
    result = Lanes::select(Lanes::at_least(magnitude, infinity + one), word, result);
    Lanes::store(products + i * sizeof(std::uint32_t), result);
  }
}

template <class Lanes>
void multiply(const Multiplication& plan, const std::byte* words, std::byte* products,
              std::size_t count) {
  if (plan.nearest) return multiply_loop<Lanes, true>(plan, words, products, count);
  multiply_loop<Lanes, false>(plan, words, products, count);
}

template <class Lanes>
void random_words(std::uint64_t seed, std::uint64_t first, std::uint32_t* words,
                  std::size_t count) {
  const PhiloxKeys keys = philox_keys(seed);
  for (std::size_t i = 0; i < count; i += Lanes::random_step)
    Lanes::random_words(keys, first + i, words + i);
}

}  // namespace guardbit::formats::kernels
