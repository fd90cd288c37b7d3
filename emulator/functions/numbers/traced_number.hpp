#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <string_view>
#include <vector>

#include "emulator/functions/numbers/reference_number.hpp"
#include "emulator/functions/unit/special_function_forms.hpp"

// Numbers that write down what a program does with them. Their operations are compiled once, apart:
// each of the programs would have a copy of integer arithmetic at every step.
namespace guardbit::emulator {

/// One operation of a program, in codes of one format.
struct ProgramStep {
  std::string_view operation;
  int operands = 0;
  std::array<std::uint64_t, 3> arguments{};
  std::uint64_t result = 0;
  formats::Format format = formats::fp32;
};

/// The steps that this thread's traced numbers take go here.
inline thread_local std::vector<ProgramStep>* traced_steps = nullptr;

class TracedNumber {
 public:
  using Word = ReferenceNumber::Word;
  using Mask = bool;

  constexpr TracedNumber() = default;
  TracedNumber(float x) : number_(x) {}  // NOLINT(google-explicit-constructor): constants
  static TracedNumber of(Word code) { return TracedNumber(ReferenceNumber::of(code)); }
  static TracedNumber of_integer(Word n);

  friend Word bits(TracedNumber x) { return bits(x.number_); }

  friend TracedNumber operator+(TracedNumber x, TracedNumber y);
  friend TracedNumber operator-(TracedNumber x, TracedNumber y);
  friend TracedNumber operator*(TracedNumber x, TracedNumber y);
  friend TracedNumber operator/(TracedNumber x, TracedNumber y);
  friend TracedNumber operator-(TracedNumber x) { return TracedNumber(-x.number_); }
  friend TracedNumber square_root(TracedNumber x);
  friend TracedNumber divide(TracedNumber x, TracedNumber y, formats::Rounding rounding);
  friend TracedNumber square_root(TracedNumber x, formats::Rounding rounding);
  friend TracedNumber fma(TracedNumber x, TracedNumber y, TracedNumber z);
  friend TracedNumber fma_down(TracedNumber x, TracedNumber y, TracedNumber z);
  friend TracedNumber add_toward_zero(TracedNumber x, TracedNumber y);
  friend TracedNumber multiply_toward_zero(TracedNumber x, TracedNumber y);
  friend TracedNumber truncated_remainder(TracedNumber x, TracedNumber y, int exponent);
  /// The special function unit with its steps, as one.
  friend TracedNumber evaluate(const mufu::SpecialFunctionForm& form, TracedNumber x);

  friend TracedNumber abs(TracedNumber x) { return TracedNumber(abs(x.number_)); }
  friend TracedNumber copysign(TracedNumber magnitude, TracedNumber sign) {
    return TracedNumber(copysign(magnitude.number_, sign.number_));
  }
  friend TracedNumber flushed(TracedNumber x) { return TracedNumber(flushed(x.number_)); }
  friend TracedNumber rint(TracedNumber x);
  friend TracedNumber trunc(TracedNumber x);
  friend Word integer(TracedNumber x);
  friend TracedNumber quarter_turns(TracedNumber, std::int64_t n);

  friend Mask operator==(TracedNumber x, TracedNumber y);
  friend Mask operator<(TracedNumber x, TracedNumber y);
  friend Mask operator>(TracedNumber x, TracedNumber y) { return y < x; }
  friend Mask operator<=(TracedNumber x, TracedNumber y);
  friend Mask operator>=(TracedNumber x, TracedNumber y) { return y <= x; }

  friend TracedNumber select(Mask mask, TracedNumber yes, TracedNumber no) {
    return mask ? yes : no;
  }
  template <class Yes, class No>
  static TracedNumber choose(Mask mask, const Yes& yes, const No& no) {
    return mask ? yes() : no();
  }

 private:
  explicit TracedNumber(ReferenceNumber x) : number_(x) {}

  static TracedNumber traced(std::string_view operation, ReferenceNumber result,
                             std::initializer_list<TracedNumber> operands);

  ReferenceNumber number_;
};

}  // namespace guardbit::emulator
