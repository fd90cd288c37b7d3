#pragma once

#include "emulator/functions/numbers/compiled_number.hpp"
#include "emulator/functions/numbers/host_number.hpp"
#include "emulator/functions/numbers/traced_number.hpp"

// Numbers whose steps are compiled once, apart from the programs that take them: each of many
// programs would have a copy of steps that flush. apart_number.cpp has the steps.
namespace guardbit::emulator {

template <class Number>
class ApartNumber {
 public:
  using Word = typename Number::Word;
  using Mask = typename Number::Mask;
  static constexpr bool is_flushing = Number::is_flushing;

  constexpr ApartNumber() = default;
  constexpr ApartNumber(float x) : number_(x) {}  // NOLINT(google-explicit-constructor): constants
  explicit ApartNumber(Number x) : number_(x) {}
  static ApartNumber of(Word code) { return ApartNumber(Number::of(code)); }
  static ApartNumber of_integer(Word n);

  auto number() const { return number_.number(); }
  friend Word bits(ApartNumber x) { return bits(x.number_); }

  friend ApartNumber operator+(ApartNumber x, ApartNumber y) { return sum(x, y); }
  friend ApartNumber operator-(ApartNumber x, ApartNumber y) { return difference(x, y); }
  friend ApartNumber operator*(ApartNumber x, ApartNumber y) { return product(x, y); }
  friend ApartNumber operator/(ApartNumber x, ApartNumber y) { return quotient(x, y); }
  friend ApartNumber operator-(ApartNumber x) { return ApartNumber(-x.number_); }
  friend ApartNumber square_root(ApartNumber x) { return root(x); }
  friend ApartNumber divide(ApartNumber x, ApartNumber y, formats::Rounding rounding) {
    return quotient(x, y, rounding);
  }
  friend ApartNumber square_root(ApartNumber x, formats::Rounding rounding) {
    return root(x, rounding);
  }
  friend ApartNumber fma(ApartNumber x, ApartNumber y, ApartNumber z) { return fused(x, y, z); }
  friend ApartNumber fma_down(ApartNumber x, ApartNumber y, ApartNumber z) {
    return fused_down(x, y, z);
  }
  friend ApartNumber add_toward_zero(ApartNumber x, ApartNumber y) { return sum_cut(x, y); }
  friend ApartNumber multiply_toward_zero(ApartNumber x, ApartNumber y) {
    return product_cut(x, y);
  }
  friend ApartNumber truncated_remainder(ApartNumber x, ApartNumber y, int exponent) {
    return rest(x, y, exponent);
  }
  friend ApartNumber evaluate(const mufu::SpecialFunctionForm& form, ApartNumber x) {
    return of_form(form, x);
  }

  friend ApartNumber abs(ApartNumber x) { return ApartNumber(abs(x.number_)); }
  friend ApartNumber copysign(ApartNumber magnitude, ApartNumber sign) {
    return ApartNumber(copysign(magnitude.number_, sign.number_));
  }
  friend ApartNumber flushed(ApartNumber x) { return ApartNumber(flushed(x.number_)); }
  friend ApartNumber rint(ApartNumber x) { return nearest_integer(x); }
  friend ApartNumber trunc(ApartNumber x) { return cut(x); }
  friend Word integer(ApartNumber x) { return to_integer(x); }
  friend ApartNumber quarter_turns(ApartNumber, std::int64_t n) { return turns(n); }

  friend Mask operator==(ApartNumber x, ApartNumber y) { return equals(x, y); }
  friend Mask operator<(ApartNumber x, ApartNumber y) { return is_less(x, y); }
  friend Mask operator>(ApartNumber x, ApartNumber y) { return is_less(y, x); }
  friend Mask operator<=(ApartNumber x, ApartNumber y) { return is_at_most(x, y); }
  friend Mask operator>=(ApartNumber x, ApartNumber y) { return is_at_most(y, x); }

  friend ApartNumber select(Mask mask, ApartNumber yes, ApartNumber no) { return mask ? yes : no; }
  template <class Yes, class No>
  static ApartNumber choose(Mask mask, const Yes& yes, const No& no) {
    return mask ? yes() : no();
  }

 private:
  static ApartNumber sum(ApartNumber x, ApartNumber y);
  static ApartNumber difference(ApartNumber x, ApartNumber y);
  static ApartNumber product(ApartNumber x, ApartNumber y);
  static ApartNumber quotient(ApartNumber x, ApartNumber y);
  static ApartNumber quotient(ApartNumber x, ApartNumber y, formats::Rounding rounding);
  static ApartNumber root(ApartNumber x);
  static ApartNumber root(ApartNumber x, formats::Rounding rounding);
  static ApartNumber fused(ApartNumber x, ApartNumber y, ApartNumber z);
  static ApartNumber fused_down(ApartNumber x, ApartNumber y, ApartNumber z);
  static ApartNumber sum_cut(ApartNumber x, ApartNumber y);
  static ApartNumber product_cut(ApartNumber x, ApartNumber y);
  static ApartNumber rest(ApartNumber x, ApartNumber y, int exponent);
  static ApartNumber of_form(const mufu::SpecialFunctionForm& form, ApartNumber x);
  static ApartNumber nearest_integer(ApartNumber x);
  static ApartNumber cut(ApartNumber x);
  static Word to_integer(ApartNumber x);
  static ApartNumber turns(std::int64_t n);
  static Mask equals(ApartNumber x, ApartNumber y);
  static Mask is_less(ApartNumber x, ApartNumber y);
  static Mask is_at_most(ApartNumber x, ApartNumber y);

  Number number_{};
};

extern template class ApartNumber<CompiledNumber<HostNumber, CompileMode::ftz>>;
extern template class ApartNumber<CompiledNumber<HostNumber, CompileMode::fast>>;
extern template class ApartNumber<CompiledNumber<TracedNumber, CompileMode::ftz>>;
extern template class ApartNumber<CompiledNumber<TracedNumber, CompileMode::fast>>;

}  // namespace guardbit::emulator
