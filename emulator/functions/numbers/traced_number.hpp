#pragma once

#include <array>
#include <cstdint>
#include <set>
#include <string_view>
#include <vector>

#include "emulator/functions/numbers/reference_number.hpp"
#include "emulator/functions/unit/special_function_forms.hpp"

// Numbers that write down what a program does with them.
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

/// What a program's constants do to its result: those that this thread's traced numbers are made of
/// are written down, and one of them is another, by its code.
struct ConstantSurvey {
  std::set<std::uint32_t> seen;
  std::uint32_t changed = 0, replacement = 0;
};
inline thread_local ConstantSurvey* surveyed_constants = nullptr;

class TracedNumber {
 public:
  using Word = ReferenceNumber::Word;
  using Mask = bool;

  constexpr TracedNumber() = default;
  TracedNumber(float x) : number_(surveyed(x)) {}  // NOLINT(google-explicit-constructor): constants
  static TracedNumber of(Word code) { return TracedNumber(ReferenceNumber::of(code)); }
  static TracedNumber of_integer(Word n) { return TracedNumber(ReferenceNumber::of_integer(n)); }

  friend Word bits(TracedNumber x) { return bits(x.number_); }

  friend TracedNumber operator+(TracedNumber x, TracedNumber y) {
    return traced("+", x.number_ + y.number_, {x, y});
  }
  friend TracedNumber operator-(TracedNumber x, TracedNumber y) {
    return traced("-", x.number_ - y.number_, {x, y});
  }
  friend TracedNumber operator*(TracedNumber x, TracedNumber y) {
    return traced("*", x.number_ * y.number_, {x, y});
  }
  friend TracedNumber operator/(TracedNumber x, TracedNumber y) {
    return traced("/", x.number_ / y.number_, {x, y});
  }
  friend TracedNumber operator-(TracedNumber x) { return TracedNumber(-x.number_); }
  friend TracedNumber square_root(TracedNumber x) {
    return traced("square_root", square_root(x.number_), {x});
  }
  friend TracedNumber divide(TracedNumber x, TracedNumber y, formats::Rounding rounding) {
    return traced("/", divide(x.number_, y.number_, rounding), {x, y});
  }
  friend TracedNumber square_root(TracedNumber x, formats::Rounding rounding) {
    return traced("square_root", square_root(x.number_, rounding), {x});
  }
  friend TracedNumber fma(TracedNumber x, TracedNumber y, TracedNumber z) {
    return traced("fma", fma(x.number_, y.number_, z.number_), {x, y, z});
  }
  friend TracedNumber fma_down(TracedNumber x, TracedNumber y, TracedNumber z) {
    return traced("fma_down", fma_down(x.number_, y.number_, z.number_), {x, y, z});
  }
  friend TracedNumber add_toward_zero(TracedNumber x, TracedNumber y) {
    return traced("add_toward_zero", add_toward_zero(x.number_, y.number_), {x, y});
  }
  friend TracedNumber multiply_toward_zero(TracedNumber x, TracedNumber y) {
    return traced("multiply_toward_zero", multiply_toward_zero(x.number_, y.number_), {x, y});
  }
  friend TracedNumber truncated_remainder(TracedNumber x, TracedNumber y, int exponent) {
    return traced(exponent == 0 ? "remainder" : "remainder, doubled",
                  truncated_remainder(x.number_, y.number_, exponent), {x, y});
  }
  /// The special function unit with its steps, as one.
  friend TracedNumber evaluate(const mufu::SpecialFunctionForm& form, TracedNumber x) {
    return traced(form.name, mufu::evaluate(form, x.number_), {x});
  }

  friend TracedNumber abs(TracedNumber x) { return TracedNumber(abs(x.number_)); }
  friend TracedNumber copysign(TracedNumber magnitude, TracedNumber sign) {
    return TracedNumber(copysign(magnitude.number_, sign.number_));
  }
  friend TracedNumber flushed(TracedNumber x) { return TracedNumber(flushed(x.number_)); }
  friend TracedNumber rint(TracedNumber x) { return traced("rint", rint(x.number_), {x}); }
  friend TracedNumber trunc(TracedNumber x) { return traced("trunc", trunc(x.number_), {x}); }
  friend Word integer(TracedNumber x) { return integer(x.number_); }
  friend TracedNumber quarter_turns(TracedNumber, std::int64_t n) {
    return TracedNumber(quarter_turns(ReferenceNumber(), n));
  }

  friend Mask operator==(TracedNumber x, TracedNumber y) { return x.number_ == y.number_; }
  friend Mask operator<(TracedNumber x, TracedNumber y) { return x.number_ < y.number_; }
  friend Mask operator>(TracedNumber x, TracedNumber y) { return x.number_ > y.number_; }
  friend Mask operator<=(TracedNumber x, TracedNumber y) { return x.number_ <= y.number_; }
  friend Mask operator>=(TracedNumber x, TracedNumber y) { return x.number_ >= y.number_; }

  friend TracedNumber select(Mask mask, TracedNumber yes, TracedNumber no) {
    return mask ? yes : no;
  }
  template <class Yes, class No>
  static TracedNumber choose(Mask mask, const Yes& yes, const No& no) {
    return mask ? yes() : no();
  }

 private:
  explicit TracedNumber(ReferenceNumber x) : number_(x) {}

  static ReferenceNumber surveyed(ReferenceNumber x) {
    if (surveyed_constants == nullptr) return x;
    surveyed_constants->seen.insert(bits(x));
    const bool is_changed = bits(x) == surveyed_constants->changed &&
                            surveyed_constants->changed != surveyed_constants->replacement;
    return is_changed ? ReferenceNumber::of(surveyed_constants->replacement) : x;
  }

  static TracedNumber traced(std::string_view operation, ReferenceNumber result,
                             std::initializer_list<TracedNumber> operands) {
    ProgramStep step = {operation, static_cast<int>(operands.size()), {}, bits(result)};
    std::size_t i = 0;
    for (const TracedNumber x : operands) step.arguments.at(i++) = bits(x);
    if (traced_steps != nullptr) traced_steps->push_back(step);
    return TracedNumber(result);
  }

  ReferenceNumber number_;
};

}  // namespace guardbit::emulator
