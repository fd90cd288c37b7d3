#pragma once

#include <cstddef>
#include <cstdint>

#include "emulator/functions/compile_mode.hpp"
#include "emulator/functions/unit/quotients.hpp"
#include "emulator/functions/unit/special_function_forms.hpp"

// Numbers of a program that nvcc compiles with -ftz=true or -use_fast_math: every step of FP32
// flushes its operands and its result, and the special function unit is used by its `.ftz` forms.
// Steps on codes (signs, selections, bits) flush nothing.
namespace guardbit::emulator {

namespace mufu {
/// The form with `.ftz` of a form, itself if there is none.
constexpr const SpecialFunctionForm& flushing_form(const SpecialFunctionForm& form) {
  for (std::size_t i = 0; i + 1 < special_function_forms.size(); i += 2)
    if (special_function_forms[i] == &form) return *special_function_forms[i + 1];
  return form;
}
}  // namespace mufu

template <class Number, CompileMode mode>
class CompiledNumber {
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
    return result(x.taken() + y.taken());
  }
  friend constexpr CompiledNumber operator-(CompiledNumber x, CompiledNumber y) {
    return result(x.taken() - y.taken());
  }
  friend constexpr CompiledNumber operator*(CompiledNumber x, CompiledNumber y) {
    return product_result(x.taken() * y.taken(), x.taken(), y.taken(), Number(0));
  }
  friend constexpr CompiledNumber operator/(CompiledNumber x, CompiledNumber y) {
    if constexpr (is_fast) {
      return CompiledNumber(mufu::div_full_ftz(x.number_, y.number_));
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
    return result(fma_down(x.taken(), y.taken(), z.taken()));
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

  friend constexpr CompiledNumber abs(CompiledNumber x) { return CompiledNumber(abs(x.taken())); }
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
  constexpr Number taken() const { return flushed(number_); }
  static constexpr CompiledNumber result(Number x) { return CompiledNumber(flushed(x)); }
  /// x y + z, rounded to `rounded`: a zero where 24 bits of any exponent would round it below the
  /// normal range. Where that decides, the smaller factor and z can be scaled.
  static constexpr CompiledNumber product_result(Number rounded, Number x, Number y, Number z) {
    constexpr float smallest = 0x1p-126F, scale = 0x1p24F;
    const auto at_the_edge = [&] {
      const auto is_x_smaller = abs(x) < abs(y);
      const Number wide = fma(x * select(is_x_smaller, Number(scale), Number(1)),
                              y * select(is_x_smaller, Number(1), Number(scale)), z * scale);
      return select(abs(wide) < smallest * scale, copysign(Number(0), rounded), rounded);
    };
    return CompiledNumber(
        Number::choose(abs(rounded) == smallest, at_the_edge, [&] { return flushed(rounded); }));
  }

  Number number_{};
};

/// A Program of numbers as nvcc compiles it in a mode.
template <class Program, CompileMode mode>
struct CompiledProgram {
  template <class... Arguments>
  requires std::is_invocable_v<Program, Arguments...>
  constexpr auto operator()(Arguments... arguments) const {
    if constexpr (mode == CompileMode::standard) {
      return Program()(arguments...);
    } else {
      return plain(Program()(compiled(arguments)...));
    }
  }

 private:
  // Integers are taken as they are.
  template <class Argument>
  static constexpr auto compiled(Argument x) {
    if constexpr (requires { typename Argument::Word; }) {
      return CompiledNumber<Argument, mode>(x);
    } else {
      return x;
    }
  }
  template <class Result>
  static constexpr auto plain(const Result& x) {
    if constexpr (requires { std::get<1>(x); }) {
      return std::pair(plain(std::get<0>(x)), plain(std::get<1>(x)));
    } else if constexpr (requires {
                           x.number();
                           Result::is_flushing;
                         }) {
      return x.number();
    } else {
      return x;
    }
  }
};

}  // namespace guardbit::emulator
