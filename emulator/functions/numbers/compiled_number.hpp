#pragma once

#include <cstdint>

#include "emulator/functions/compile_mode.hpp"
#include "emulator/functions/numbers/reference_number.hpp"
#include "emulator/functions/unit/quotients.hpp"
#include "emulator/functions/unit/special_function_forms.hpp"

// Numbers of a program that nvcc compiles with -ftz=true or -use_fast_math: every step of FP32
// flushes its operands and its result, and the special function unit is used by its `.ftz` forms.
// Steps on codes (signs, selections, bits) flush nothing.
namespace guardbit::emulator {

namespace mufu {
/// The form with `.ftz` of a form, itself if there is none.
constexpr const SpecialFunctionForm& flushing_form(const SpecialFunctionForm& form) {
  return form.flushing == nullptr ? form : *form.flushing;
}
}  // namespace mufu

/// `cpu_flushes`: the CPU's own units do, within a FlushedArithmetic. They take subnormal operands
/// as zeros and give zeros for results that 24 bits of any exponent round below the normal range,
/// as the device does. What is left to write down are steps on codes and those of several
/// roundings.
template <class Number, CompileMode mode, bool cpu_flushes = false>
class CompiledNumber {
  using Reference = CompiledNumber<ReferenceNumber, mode>;

 public:
  using Word = typename Number::Word;
  using Mask = typename Number::Mask;
  static constexpr bool is_flushing = true;
  static constexpr bool is_fast = mode == CompileMode::fast;

  constexpr CompiledNumber() = default;
  constexpr CompiledNumber(float x)
      : number_(x) {}  // NOLINT(google-explicit-constructor): constants
  explicit constexpr CompiledNumber(Number x) : number_(x) {}
  static constexpr CompiledNumber of(Word code) { return CompiledNumber(Number::of(code)); }
  static constexpr CompiledNumber of_integer(Word n) {
    return CompiledNumber(Number::of_integer(n));
  }

  constexpr Number number() const { return number_; }
  friend constexpr Word bits(CompiledNumber x) { return bits(x.number_); }

  friend constexpr CompiledNumber operator+(CompiledNumber x, CompiledNumber y) {
    return sum_result(x.taken() + y.taken());
  }
  friend constexpr CompiledNumber operator-(CompiledNumber x, CompiledNumber y) {
    return sum_result(x.taken() - y.taken());
  }
  friend constexpr CompiledNumber operator*(CompiledNumber x, CompiledNumber y) {
    return product_result(x.taken() * y.taken(), x.taken(), y.taken(), Number(0));
  }
  friend constexpr CompiledNumber operator/(CompiledNumber x, CompiledNumber y) {
    if constexpr (is_fast) {
      const Number quotient = mufu::div_full_ftz(x.number_, y.number_);
      if constexpr (cpu_flushes) {
        if (quotient == 0) return by_reference([](auto a, auto b) { return a / b; }, x, y);
      }
      return CompiledNumber(quotient);
    } else {
      return divide(x, y, formats::Rounding::nearest_even);
    }
  }
  friend constexpr CompiledNumber operator-(CompiledNumber x) { return CompiledNumber(-x.number_); }
  friend constexpr CompiledNumber square_root(CompiledNumber x) {
    if constexpr (is_fast) {
      return evaluate(mufu::sqrt_approx_form, x);
    } else {
      return square_root(x, formats::Rounding::nearest_even);
    }
  }
  /// Rounded correctly in every mode. A quotient is flushed that is below the normal range before
  /// it is rounded.
  friend constexpr CompiledNumber divide(CompiledNumber x, CompiledNumber y,
                                         formats::Rounding rounding) {
    if constexpr (cpu_flushes) {
      const Number nearest = x.number_ / y.number_;
      if (rounding == formats::Rounding::nearest_even && abs(nearest) > smallest)
        return CompiledNumber(nearest);
    }
    const Number cut = flushed(divide(x.taken(), y.taken(), formats::Rounding::toward_zero));
    return CompiledNumber(select(cut == 0, cut, divide(x.taken(), y.taken(), rounding)));
  }
  friend constexpr CompiledNumber square_root(CompiledNumber x, formats::Rounding rounding) {
    return CompiledNumber(square_root(x.taken(), rounding));
  }
  friend constexpr CompiledNumber fma(CompiledNumber x, CompiledNumber y, CompiledNumber z) {
    return product_result(fma(x.taken(), y.taken(), z.taken()), x.taken(), y.taken(), z.taken());
  }
  friend constexpr CompiledNumber fma_down(CompiledNumber x, CompiledNumber y, CompiledNumber z) {
    const CompiledNumber sum = result(fma_down(x.taken(), y.taken(), z.taken()));
    if constexpr (cpu_flushes) {
      const auto exactly = [](auto a, auto b, auto c) { return fma_down(a, b, c); };
      if (abs(sum.number_) <= smallest) return by_reference(exactly, x, y, z);
    }
    return sum;
  }
  friend constexpr CompiledNumber add_toward_zero(CompiledNumber x, CompiledNumber y) {
    return result(add_toward_zero(x.taken(), y.taken()));
  }
  friend constexpr CompiledNumber multiply_toward_zero(CompiledNumber x, CompiledNumber y) {
    return result(multiply_toward_zero(x.taken(), y.taken()));
  }
  friend constexpr CompiledNumber truncated_remainder(CompiledNumber x, CompiledNumber y,
                                                      int exponent) {
    return result(truncated_remainder(x.taken(), y.taken(), exponent));
  }
  friend constexpr CompiledNumber evaluate(const mufu::SpecialFunctionForm& form,
                                           CompiledNumber x) {
    return CompiledNumber(evaluate(mufu::flushing_form(form), x.number_));
  }

  friend constexpr CompiledNumber abs(CompiledNumber x) {
    return CompiledNumber(abs(flushed(x.number_)));
  }
  friend constexpr CompiledNumber copysign(CompiledNumber magnitude, CompiledNumber sign) {
    return CompiledNumber(copysign(magnitude.number_, sign.number_));
  }
  friend constexpr CompiledNumber flushed(CompiledNumber x) {
    return CompiledNumber(flushed(x.number_));
  }
  friend constexpr CompiledNumber rint(CompiledNumber x) { return CompiledNumber(rint(x.number_)); }
  friend constexpr CompiledNumber trunc(CompiledNumber x) {
    return CompiledNumber(trunc(x.number_));
  }
  friend constexpr Word integer(CompiledNumber x) { return integer(x.number_); }
  friend constexpr CompiledNumber quarter_turns(CompiledNumber, std::int64_t n) {
    return result(quarter_turns(Number(), n));
  }

  friend constexpr Mask operator==(CompiledNumber x, CompiledNumber y) {
    return x.taken() == y.taken();
  }
  friend constexpr Mask operator<(CompiledNumber x, CompiledNumber y) {
    return x.taken() < y.taken();
  }
  friend constexpr Mask operator>(CompiledNumber x, CompiledNumber y) {
    return x.taken() > y.taken();
  }
  friend constexpr Mask operator<=(CompiledNumber x, CompiledNumber y) {
    return x.taken() <= y.taken();
  }
  friend constexpr Mask operator>=(CompiledNumber x, CompiledNumber y) {
    return x.taken() >= y.taken();
  }

  friend constexpr CompiledNumber select(Mask mask, CompiledNumber yes, CompiledNumber no) {
    return CompiledNumber(select(mask, yes.number_, no.number_));
  }
  template <class Yes, class No>
  static constexpr CompiledNumber choose(Mask mask, const Yes& yes, const No& no) {
    return CompiledNumber(Number::choose(
        mask, [&] { return yes().number(); }, [&] { return no().number(); }));
  }

 private:
  constexpr Number taken() const {
    if constexpr (cpu_flushes) {
      return number_;
    } else {
      return flushed(number_);
    }
  }
  static constexpr CompiledNumber result(Number x) { return CompiledNumber(flushed(x)); }
  static constexpr CompiledNumber sum_result(Number x) {
    if constexpr (cpu_flushes) {
      return CompiledNumber(x);
    } else {
      return result(x);
    }
  }
  static constexpr float smallest = 0x1p-126F;
  /// x y + z, rounded to `rounded`: a zero where 24 bits of any exponent would round it below the
  /// normal range.
  static constexpr CompiledNumber product_result(Number rounded, Number x, Number y, Number z) {
    if constexpr (cpu_flushes) return CompiledNumber(rounded);
    return CompiledNumber(Number::choose(
        abs(rounded) == smallest, [&] { return product_at_the_edge(rounded, x, y, z); },
        [&] { return flushed(rounded); }));
  }
  /// The same where `rounded` is the smallest normal number, which few products are: one copy is
  /// enough for all steps. The smaller factor and z can be scaled there.
  [[gnu::noinline]] static constexpr Number product_at_the_edge(Number rounded, Number x, Number y,
                                                                Number z) {
    constexpr float scale = 0x1p24F;
    const auto is_x_smaller = abs(x) < abs(y);
    const Number wide = fma(x * select(is_x_smaller, Number(scale), Number(1)),
                            y * select(is_x_smaller, Number(1), Number(scale)), z * scale);
    return select(abs(wide) < smallest * scale, copysign(Number(0), rounded), rounded);
  }

  /// A step in integers.
  template <class Step, class... Numbers>
  [[gnu::noinline]] static CompiledNumber by_reference(const Step& step, Numbers... x) {
    return of(bits(step(Reference::of(bits(x))...)));
  }

  Number number_{};
};

}  // namespace guardbit::emulator
