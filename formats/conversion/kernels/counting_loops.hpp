#pragma once

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "formats/conversion/kernels/conversion_kernels.hpp"
#include "formats/conversion/kernels/conversion_loops.hpp"
#include "formats/conversion/kernels/conversion_plan.hpp"

// Kernels that compare numbers with what they became.
namespace guardbit::formats::kernels {

template <class Lanes>
[[gnu::always_inline]] inline typename Lanes::Word load_lanes(const LaneCounts::Lanes& lanes) {
  return Lanes::load(static_cast<const std::byte*>(static_cast<const void*>(lanes.data())));
}
template <class Lanes>
[[gnu::always_inline]] inline void store_lanes(LaneCounts::Lanes& lanes, typename Lanes::Word x) {
  Lanes::store(static_cast<std::byte*>(static_cast<void*>(lanes.data())), x);
}

/// One more in the lanes of the mask.
template <class Lanes>
[[gnu::always_inline]] inline typename Lanes::Word one_more(typename Lanes::Mask mask,
                                                            typename Lanes::Word count) {
  return Lanes::select(mask, count + Lanes::set(1), count);
}

template <class Lanes>
[[gnu::always_inline]] inline void count_in(LaneCounts::Lanes& lanes, typename Lanes::Mask mask) {
  store_lanes<Lanes>(lanes, one_more<Lanes>(mask, load_lanes<Lanes>(lanes)));
}

/// Sums and the largest of errors in two words, in registers.
template <class Lanes>
struct ErrorLanes {
  using Word = typename Lanes::Word;
  Word sum_0, sum_16, sum_32, sum_48, most_lower, most_upper;

  explicit ErrorLanes(const LaneCounts& counts)
      : sum_0(load_lanes<Lanes>(counts.error_0)),
        sum_16(load_lanes<Lanes>(counts.error_16)),
        sum_32(load_lanes<Lanes>(counts.error_32)),
        sum_48(load_lanes<Lanes>(counts.error_48)),
        most_lower(load_lanes<Lanes>(counts.most_lower)),
        most_upper(load_lanes<Lanes>(counts.most_upper)) {}

  void store(LaneCounts& counts) const {
    store_lanes<Lanes>(counts.error_0, sum_0);
    store_lanes<Lanes>(counts.error_16, sum_16);
    store_lanes<Lanes>(counts.error_32, sum_32);
    store_lanes<Lanes>(counts.error_48, sum_48);
    store_lanes<Lanes>(counts.most_lower, most_lower);
    store_lanes<Lanes>(counts.most_upper, most_upper);
  }

  [[gnu::always_inline]] void add(Word upper, Word lower) {
    const Word half = Lanes::set(16);
    const Word low_bits = Lanes::set(0xFFFF);
    sum_0 = sum_0 + (lower & low_bits);
    sum_16 = sum_16 + (lower >> half);
    sum_32 = sum_32 + (upper & low_bits);
    sum_48 = sum_48 + (upper >> half);
    const auto is_more = Lanes::either(
        Lanes::at_least(upper, most_upper + Lanes::set(1)),
        Lanes::both(Lanes::equal(upper, most_upper), Lanes::at_least(lower, most_lower)));
    most_upper = Lanes::select(is_more, upper, most_upper);
    most_lower = Lanes::select(is_more, lower, most_lower);
  }
};

/// A vector of words and of what they became, as `count` compares them.
template <class Lanes>
struct Compared {
  using Word = typename Lanes::Word;
  using Mask = typename Lanes::Mask;

  /// of a word
  Word word, magnitude;
  /// result: the code's magnitude
  Word code, result;
  /// from a significand's last bit to the destination's unit
  Word shift;
  /// bits below that unit
  Word lost;
  /// magnitude code toward zero
  Word truncated;
  /// the result's magnitude is above the number's
  Mask is_up;

  [[gnu::always_inline]] Compared(const Counting& plan, Word words, Word container)
      : word(words),
        magnitude(words & Lanes::set(0x7FFFFFFF)),
        code(Lanes::shift_right(container, Lanes::set(plan.container_shift)) &
             Lanes::set(plan.code_mask)) {
    const Word negative = Lanes::negative(Lanes::shift_left(code, Lanes::set(plan.sign_shift))) &
                          Lanes::set(plan.complement);
    result = ((code ^ negative) - negative) & Lanes::set(plan.magnitude_mask);
    Word field = magnitude >> Lanes::set(23);
    Word significand = (magnitude & Lanes::set(0x7FFFFF)) | Lanes::set(0x800000);
    normalise<Lanes>(magnitude, field, significand);
    shift = Lanes::set(plan.shift) + Lanes::excess(Lanes::set(plan.lowest), field);
    const Word kept = Lanes::shift_right(significand, shift);
    lost = significand - Lanes::shift_left(kept, shift);
    truncated = kept + Lanes::shift_left(Lanes::excess(field, Lanes::set(plan.offset_lowest)),
                                         Lanes::set(plan.fraction_bits));
    is_up = Lanes::without(Lanes::at_least(result, truncated), Lanes::equal(result, truncated));
  }

  /// Numbers past the largest one, or whose random bits lift them there.
  [[gnu::always_inline]] Mask out_of_range(const Counting& plan, Word random) const {
    const Word negative = Lanes::negative(word);
    const auto by_sign = [&](const std::array<std::uint32_t, 2>& pair) {
      return Lanes::set(pair[0]) ^ (negative & Lanes::set(pair[0] ^ pair[1]));
    };
    const Mask past = Lanes::at_least(magnitude, by_sign(plan.past));
    const Word top = Lanes::shift_left(lost, Lanes::set(32) - shift) |
                     Lanes::shift_right(lost, shift - Lanes::set(32));
    const Word bits = random & Lanes::set(plan.random_mask);
    return Lanes::either(past, Lanes::without(Lanes::equal(truncated, by_sign(plan.largest)),
                                              Lanes::at_least(top + bits, bits)));
  }

  /// The error in 2^-63 units of the last place, in two words. What lies below is dropped from the
  /// number, not from the error.
  [[gnu::always_inline]] void error(Word& upper, Word& lower) const {
    const auto at = [&](std::uint32_t weight) {
      return Lanes::shift_left(lost, Lanes::set(weight) - shift) |
             Lanes::shift_right(lost, shift - Lanes::set(weight));
    };
    const Word zero = Lanes::set(0);
    upper = at(31);
    lower = at(63);
    const Word borrow = Lanes::select(Lanes::equal(lower, zero), zero, Lanes::set(1));
    upper = Lanes::select(is_up, Lanes::set(0x80000000) - upper - borrow, upper);
    lower = Lanes::select(is_up, zero - lower, lower);
  }
};

template <class Lanes, int container>
void count_loop(const Counting& plan, const std::byte* values, const std::byte* words,
                const std::uint32_t* random, const std::byte* codes, std::size_t count,
                LaneCounts& counts) {
  using Word = typename Lanes::Word;
  using Mask = typename Lanes::Mask;
  const Counting here = plan;  // so that no store seems to change it
  const Word one = Lanes::set(1);
  const Word infinity = Lanes::set(0x7F800000);
  ErrorLanes<Lanes> errors(counts);
  Word zeros_made = load_lanes<Lanes>(counts.zeros_made);
  Word subnormals_made = load_lanes<Lanes>(counts.subnormals_made);
  Word inexact = load_lanes<Lanes>(counts.inexact);
  for (std::size_t i = 0; i < count; i += Lanes::count) {
    const std::byte* const at = codes + i * (container / 8);
    const Word value = Lanes::load(values + i * sizeof(std::uint32_t)) & Lanes::set(0x7FFFFFFF);
    Compared<Lanes> x(here, Lanes::load(words + i * sizeof(std::uint32_t)),
                      container == 8    ? Lanes::load8(at)
                      : container == 16 ? Lanes::load16(at)
                                        : Lanes::load(at));
    Mask is_zero_made =
        Lanes::both(Lanes::equal(x.result, Lanes::set(0)), Lanes::at_least(value, one));
    Mask is_inexact = Lanes::at_least(x.lost, one);
    const Mask is_subnormal = Lanes::without(
        Lanes::at_least(x.result, one), Lanes::at_least(x.result, Lanes::set(here.least_normal)));
    if (Lanes::any(Lanes::at_least(x.magnitude, Lanes::set(here.first_exceptional)))) {
      Word bits = Lanes::set(0);
      if (here.random_mask != 0) std::memcpy(&bits, random + i, sizeof bits);
      const Mask not_finite = Lanes::at_least(x.magnitude, infinity);
      const Mask is_nan = Lanes::at_least(x.magnitude, infinity + one);
      const Mask is_infinite = Lanes::without(not_finite, is_nan);
      const Mask out = Lanes::without(x.out_of_range(here, bits), not_finite);
      const Mask makes_nan = Lanes::either(Lanes::at_least(x.result, Lanes::set(here.first_nan)),
                                           Lanes::equal(x.code, Lanes::set(here.lone_nan)));
      const Mask makes_infinity = Lanes::equal(x.result, Lanes::set(here.infinity));
      const Mask no_number = Lanes::either(makes_nan, makes_infinity);
      const Mask uncompared = Lanes::either(Lanes::either(not_finite, out), no_number);
      count_in<Lanes>(counts.nans_in, is_nan);
      count_in<Lanes>(counts.infinities_made,
                      Lanes::without(makes_infinity, Lanes::at_least(value, infinity)));
      count_in<Lanes>(counts.nans_made, Lanes::without(makes_nan, is_nan));
      count_in<Lanes>(counts.saturated, Lanes::without(Lanes::either(out, is_infinite), no_number));
      count_in<Lanes>(counts.uncompared, uncompared);
      is_zero_made = Lanes::without(is_zero_made, Lanes::either(not_finite, makes_nan));
      is_inexact = Lanes::either(Lanes::without(Lanes::either(is_inexact, out), not_finite),
                                 Lanes::without(is_infinite, makes_infinity));
      x.lost = Lanes::select(uncompared, Lanes::set(0), x.lost);
      x.is_up = Lanes::without(x.is_up, uncompared);
    }
    zeros_made = one_more<Lanes>(is_zero_made, zeros_made);
    subnormals_made = one_more<Lanes>(is_subnormal, subnormals_made);
    inexact = one_more<Lanes>(is_inexact, inexact);
    Word upper;
    Word lower;
    x.error(upper, lower);
    errors.add(upper, lower);
  }
  errors.store(counts);
  store_lanes<Lanes>(counts.zeros_made, zeros_made);
  store_lanes<Lanes>(counts.subnormals_made, subnormals_made);
  store_lanes<Lanes>(counts.inexact, inexact);
}

template <class Lanes>
void count(const Counting& plan, const std::byte* values, const std::byte* words,
           const std::uint32_t* random, const std::byte* codes, std::size_t count,
           LaneCounts& counts) {
  const auto loop = plan.container == 8    ? count_loop<Lanes, 8>
                    : plan.container == 16 ? count_loop<Lanes, 16>
                                           : count_loop<Lanes, 32>;
  loop(plan, values, words, random, codes, count, counts);
}

/// In plain C++, which the compiler turns into the CPU's vectors.
template <class Lanes>
BlockErrors block_errors(const BlockLimits& limits, const double* numbers, const std::byte* words,
                         const std::byte* codes, std::size_t count, double* squares, double* noise,
                         double* errors) {
  constexpr double infinity = __builtin_inf();
  constexpr std::size_t most = 32;
  const double unit = limits.unit;
  BlockErrors sum;
  std::array<double, most> elements;  // written before read
  for (std::size_t begin = 0; begin < count; begin += most) {
    const std::size_t n = count - begin < most ? count - begin : most;
    for (std::size_t i = 0; i < n; ++i)
      elements[i] = numbers[std::to_integer<std::size_t>(codes[begin + i])];
    for (std::size_t i = 0; i < n; ++i) {
      std::uint32_t word = 0;
      std::memcpy(&word, words + (begin + i) * sizeof word, sizeof word);
      float number = 0;
      std::memcpy(&number, &word, sizeof number);
      const double x = static_cast<double>(number);
      const double y = elements[i] * unit;
      const double error = std::fabs(x - y);
      squares[begin + i] = x * x;
      noise[begin + i] = error * error;
      errors[begin + i] = error / unit;
      const std::uint32_t magnitude = word & 0x7FFFFFFF;
      const std::uint32_t sign = word >> 31;
      sum.zeros_made += static_cast<std::uint32_t>(y == 0) & static_cast<std::uint32_t>(x != 0);
      sum.inexact += static_cast<std::uint32_t>(x != y);
      sum.past += static_cast<std::uint32_t>(magnitude >= limits.past[sign]);
      sum.uncertain += static_cast<std::uint32_t>(magnitude >= limits.may_be_past[sign]);
      sum.others += static_cast<std::uint32_t>(magnitude >= 0x7F800000) |
                    static_cast<std::uint32_t>(!(std::fabs(y) < infinity));
    }
  }
  sum.uncertain -= sum.past;
  return sum;
}

}  // namespace guardbit::formats::kernels
