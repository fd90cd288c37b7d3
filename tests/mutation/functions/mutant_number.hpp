#pragma once

#include <bit>
#include <cstdint>
#include <string_view>
#include <type_traits>

#include "emulator/functions/cuda/quarter_turns.hpp"
#include "emulator/functions/unit/special_function_forms.hpp"
#include "formats/rounding.hpp"
#include "tests/mutation/functions/program_change.hpp"

// Numbers of any type whose constants and steps are changed as program_change says. A number knows
// the expression that it is the value of, by a hash: so steps have names that all evaluations
// share. Where a truth value is a bool, parts are written down as well.
// Kernels inline every step, because only what is inlined is compiled for their instruction set.
#if !defined(GUARDBIT_MUTANT_STEP)
#define GUARDBIT_MUTANT_STEP
#define GUARDBIT_MUTANT_LAMBDA
#endif

namespace guardbit::tests {

/// Mixed into all that a branch computes; branches of a choice, and what comes after it, differ.
constinit inline thread_local std::uint32_t program_branch = 0;

GUARDBIT_MUTANT_STEP constexpr std::uint32_t expression(std::uint32_t operation, std::uint32_t a,
                                                        std::uint32_t b = 0, std::uint32_t c = 0) {
  std::uint32_t h = operation * 0x9E3779B1U + a * 0x85EBCA77U + b * 0xC2B2AE3DU + c * 0x27D4EB2FU;
  h ^= h >> 15;
  h *= 0x2C1B3C6DU;
  return h ^ h >> 12;
}

enum class Operation : std::uint8_t {
  constant,
  word,
  plus,
  minus,
  times,
  over,
  root,
  fused,
  fused_down,
  plus_cut,
  times_cut,
  rest,
  unit,
  negation,
  magnitude,
  sign,
  flush,
  nearest_integer,
  cut,
  to_integer,
  of_integer,
  bits,
  of_bits,
  equals,
  less,
  at_most,
  selection,
  choice,
  word_plus,
  word_minus,
  word_and,
  word_or,
  word_xor,
  word_left,
  word_right,
  angle
};

/// Where a constant has its changes.
GUARDBIT_MUTANT_STEP constexpr StepPlace constant_place(Operation operation, std::uint32_t code) {
  return static_cast<StepPlace>(expression(static_cast<std::uint32_t>(operation), code));
}

template <class Word>
struct MutantWord {
  using Mask = decltype(Word{} == Word{});
  static constexpr bool is_single = std::is_same_v<Mask, bool>;

  MutantWord() = default;
  GUARDBIT_MUTANT_STEP MutantWord(
      std::uint32_t x)  // NOLINT(google-explicit-constructor): constants
      : word(changed(x)), hash(expression(code(Operation::word), x)) {}
  GUARDBIT_MUTANT_STEP MutantWord(Word x, std::uint32_t h) : word(x), hash(h) {}
  explicit operator std::uint32_t() const requires is_single { return word; }
  explicit operator std::int32_t() const requires is_single {
    return static_cast<std::int32_t>(word);
  }

  GUARDBIT_MUTANT_STEP friend MutantWord operator+(MutantWord x, MutantWord y) {
    return {x.word + y.word, of(Operation::word_plus, x, y)};
  }
  GUARDBIT_MUTANT_STEP friend MutantWord operator-(MutantWord x, MutantWord y) {
    return {x.word - y.word, of(Operation::word_minus, x, y)};
  }
  GUARDBIT_MUTANT_STEP friend MutantWord operator&(MutantWord x, MutantWord y) {
    return {x.word & y.word, of(Operation::word_and, x, y)};
  }
  GUARDBIT_MUTANT_STEP friend MutantWord operator|(MutantWord x, MutantWord y) {
    return {x.word | y.word, of(Operation::word_or, x, y)};
  }
  GUARDBIT_MUTANT_STEP friend MutantWord operator^(MutantWord x, MutantWord y) {
    return {x.word ^ y.word, of(Operation::word_xor, x, y)};
  }
  GUARDBIT_MUTANT_STEP friend MutantWord operator<<(MutantWord x, int n) {
    return {x.word << n, expression(code(Operation::word_left), x.hash, static_cast<unsigned>(n))};
  }
  GUARDBIT_MUTANT_STEP friend MutantWord operator>>(MutantWord x, int n) {
    return {x.word >> n, expression(code(Operation::word_right), x.hash, static_cast<unsigned>(n))};
  }
  GUARDBIT_MUTANT_STEP friend Mask operator==(MutantWord x, MutantWord y) {
    return x.word == y.word;
  }
  GUARDBIT_MUTANT_STEP friend Mask operator!=(MutantWord x, MutantWord y) {
    return !(x.word == y.word);
  }
  GUARDBIT_MUTANT_STEP friend Mask operator>=(MutantWord x, MutantWord y) {
    return x.word >= y.word;
  }
  GUARDBIT_MUTANT_STEP friend Mask operator<=(MutantWord x, MutantWord y) {
    return y.word >= x.word;
  }
  GUARDBIT_MUTANT_STEP friend Mask operator<(MutantWord x, MutantWord y) {
    return !(x.word >= y.word);
  }
  GUARDBIT_MUTANT_STEP friend Mask operator>(MutantWord x, MutantWord y) {
    return !(y.word >= x.word);
  }

  Word word;
  std::uint32_t hash;

 private:
  GUARDBIT_MUTANT_STEP static constexpr std::uint32_t code(Operation operation) {
    return static_cast<std::uint32_t>(operation);
  }
  GUARDBIT_MUTANT_STEP static std::uint32_t of(Operation operation, MutantWord x, MutantWord y) {
    return expression(code(operation), x.hash, y.hash);
  }
  GUARDBIT_MUTANT_STEP static Word changed(std::uint32_t x) {
    if constexpr (is_single) {
      if (program_parts != nullptr) program_parts->words.insert(x);
    }
    const ConstantChange& change = program_change.word;
    if (const std::uint8_t places = (*program_change.steps)[constant_place(Operation::word, x)];
        (places & (one_up | one_down)) != 0) [[unlikely]]
      return (places & one_up) != 0 ? x + 1 : x - 1;
    return x == change.constant ? change.replacement : x;
  }
};

/// Reduces those angles that `which` says; of one number.
template <class Number>
struct LargeAngles {
  static void reduce(Number x, bool which, typename Number::Word& quarter, Number& r) {
    if (!which) return;
    if (abs(x) == Number::of(emulator::mufu::infinity_code)) {
      quarter = 0;
      r = x * 0;
      return;
    }
    const emulator::cuda_math::LargeAngle angle = emulator::cuda_math::large_angle(bits(x));
    const Number rest = quarter_turns(Number(), angle.rest);
    quarter = angle.quarter;
    r = angle.negative ? -rest : rest;
  }
};

/// The form of the special function unit that has this one as its `.ftz` form, or null.
constexpr const emulator::mufu::SpecialFunctionForm* form_without_flush(
    const emulator::mufu::SpecialFunctionForm& form) {
  for (const auto* const other : emulator::mufu::special_function_forms)
    if (other->flushing == &form) return other;
  return nullptr;
}

template <class Number>
class MutantNumber {
 public:
  using Word = MutantWord<typename Number::Word>;
  using Mask = typename Number::Mask;
  static constexpr bool is_single = std::is_same_v<Mask, bool>;

  MutantNumber() = default;
  GUARDBIT_MUTANT_STEP MutantNumber(float x)  // NOLINT(google-explicit-constructor): constants
      : number_(changed(x)),
        hash_(expression(code(Operation::constant), std::bit_cast<std::uint32_t>(x))) {}
  GUARDBIT_MUTANT_STEP static MutantNumber of(Word word) {
    return {Number::of(word.word), expression(code(Operation::of_bits), word.hash)};
  }
  GUARDBIT_MUTANT_STEP static MutantNumber of_integer(Word word) {
    return {Number::of_integer(word.word), expression(code(Operation::of_integer), word.hash)};
  }
  /// A number that the program counts: no constant.
  GUARDBIT_MUTANT_STEP static MutantNumber of_integer(std::uint32_t n) {
    return {Number::of_integer(n), expression(code(Operation::of_integer), 1)};
  }
  /// An operand of the program.
  GUARDBIT_MUTANT_STEP static MutantNumber operand(Number x, std::uint32_t place) {
    return {x, place + 1};
  }
  Number number() const { return number_; }

  GUARDBIT_MUTANT_STEP friend Word bits(MutantNumber x) {
    return {bits(x.number_), expression(code(Operation::bits), x.hash_)};
  }

  GUARDBIT_MUTANT_STEP friend MutantNumber operator+(MutantNumber x, MutantNumber y) {
    return rounded(
        Operation::plus, [](auto a, auto b) GUARDBIT_MUTANT_LAMBDA { return a + b; },
        [](auto a, auto b) GUARDBIT_MUTANT_LAMBDA { return add_toward_zero(a, b); }, x, y);
  }
  GUARDBIT_MUTANT_STEP friend MutantNumber operator-(MutantNumber x, MutantNumber y) {
    return rounded(
        Operation::minus, [](auto a, auto b) GUARDBIT_MUTANT_LAMBDA { return a - b; },
        [](auto a, auto b) GUARDBIT_MUTANT_LAMBDA { return add_toward_zero(a, -b); }, x, y);
  }
  GUARDBIT_MUTANT_STEP friend MutantNumber operator*(MutantNumber x, MutantNumber y) {
    return rounded(
        Operation::times, [](auto a, auto b) GUARDBIT_MUTANT_LAMBDA { return a * b; },
        [](auto a, auto b) GUARDBIT_MUTANT_LAMBDA { return multiply_toward_zero(a, b); }, x, y);
  }
  GUARDBIT_MUTANT_STEP friend MutantNumber operator/(MutantNumber x, MutantNumber y) {
    return divide(x, y, formats::Rounding::nearest_even);
  }
  GUARDBIT_MUTANT_STEP friend MutantNumber divide(MutantNumber x, MutantNumber y,
                                                  formats::Rounding rounding) {
    return rounded(
        Operation::over,
        [&](auto a, auto b) GUARDBIT_MUTANT_LAMBDA { return divide(a, b, rounding); },
        [&](auto a, auto b) GUARDBIT_MUTANT_LAMBDA { return divide(a, b, other(rounding)); }, x, y);
  }
  GUARDBIT_MUTANT_STEP friend MutantNumber square_root(MutantNumber x) {
    return square_root(x, formats::Rounding::nearest_even);
  }
  GUARDBIT_MUTANT_STEP friend MutantNumber square_root(MutantNumber x, formats::Rounding rounding) {
    return rounded(
        Operation::root, [&](auto a) GUARDBIT_MUTANT_LAMBDA { return square_root(a, rounding); },
        [&](auto a) GUARDBIT_MUTANT_LAMBDA { return square_root(a, other(rounding)); }, x);
  }
  GUARDBIT_MUTANT_STEP friend MutantNumber fma(MutantNumber x, MutantNumber y, MutantNumber z) {
    return rounded(
        Operation::fused,
        [](auto a, auto b, auto c) GUARDBIT_MUTANT_LAMBDA { return fma(a, b, c); },
        [](auto a, auto b, auto c) GUARDBIT_MUTANT_LAMBDA { return fma_down(a, b, c); }, x, y, z);
  }
  GUARDBIT_MUTANT_STEP friend MutantNumber fma_down(MutantNumber x, MutantNumber y,
                                                    MutantNumber z) {
    return rounded(
        Operation::fused_down,
        [](auto a, auto b, auto c) GUARDBIT_MUTANT_LAMBDA { return fma_down(a, b, c); },
        [](auto a, auto b, auto c) GUARDBIT_MUTANT_LAMBDA { return fma(a, b, c); }, x, y, z);
  }
  GUARDBIT_MUTANT_STEP friend MutantNumber add_toward_zero(MutantNumber x, MutantNumber y) {
    return rounded(
        Operation::plus_cut,
        [](auto a, auto b) GUARDBIT_MUTANT_LAMBDA { return add_toward_zero(a, b); },
        [](auto a, auto b) GUARDBIT_MUTANT_LAMBDA { return a + b; }, x, y);
  }
  GUARDBIT_MUTANT_STEP friend MutantNumber multiply_toward_zero(MutantNumber x, MutantNumber y) {
    return rounded(
        Operation::times_cut,
        [](auto a, auto b) GUARDBIT_MUTANT_LAMBDA { return multiply_toward_zero(a, b); },
        [](auto a, auto b) GUARDBIT_MUTANT_LAMBDA { return a * b; }, x, y);
  }
  /// Exact.
  GUARDBIT_MUTANT_STEP friend MutantNumber truncated_remainder(MutantNumber x, MutantNumber y,
                                                               int exponent) {
    const auto step = [&](auto a, auto b)
                          GUARDBIT_MUTANT_LAMBDA { return truncated_remainder(a, b, exponent); };
    return rounded(Operation::rest, step, step, x, y);
  }
  GUARDBIT_MUTANT_STEP friend MutantNumber rint(MutantNumber x) {
    return rounded(
        Operation::nearest_integer, [](auto a) GUARDBIT_MUTANT_LAMBDA { return rint(a); },
        [](auto a) GUARDBIT_MUTANT_LAMBDA { return trunc(a); }, x);
  }
  GUARDBIT_MUTANT_STEP friend MutantNumber trunc(MutantNumber x) {
    return rounded(
        Operation::cut, [](auto a) GUARDBIT_MUTANT_LAMBDA { return trunc(a); },
        [](auto a) GUARDBIT_MUTANT_LAMBDA { return rint(a); }, x);
  }
  GUARDBIT_MUTANT_STEP friend MutantNumber flushed(MutantNumber x) {
    return signs(
        Operation::flush, [](auto a) GUARDBIT_MUTANT_LAMBDA { return flushed(a); }, x);
  }
  GUARDBIT_MUTANT_STEP friend MutantNumber evaluate(const emulator::mufu::SpecialFunctionForm& form,
                                                    MutantNumber x) {
    const auto name = static_cast<std::uint32_t>(form.name[0] + 256 * form.name[1]) +
                      65536 * static_cast<std::uint32_t>(form.name.size());
    const std::uint32_t hash = step_hash(Operation::unit, x.hash_, name);
    const auto* const without = form_without_flush(form);
    const std::uint8_t changes = changes_at(
        hash, form.name, form.flushing == nullptr && without == nullptr ? 0 : flushed_otherwise);
    if (changes == 0) [[likely]]
      return {evaluate(form, x.number_), hash};
    if (without == nullptr) return {flushed(evaluate(form, flushed(x.number_))), hash};
    return {evaluate_apart(*without, x.number_), hash};
  }

  GUARDBIT_MUTANT_STEP friend MutantNumber operator-(MutantNumber x) {
    return signs(
        Operation::negation, [](auto a) GUARDBIT_MUTANT_LAMBDA { return -a; }, x);
  }
  GUARDBIT_MUTANT_STEP friend MutantNumber abs(MutantNumber x) {
    return signs(
        Operation::magnitude, [](auto a) GUARDBIT_MUTANT_LAMBDA { return abs(a); }, x);
  }
  GUARDBIT_MUTANT_STEP friend MutantNumber copysign(MutantNumber magnitude, MutantNumber sign) {
    return signs(
        Operation::sign, [](auto a, auto b) GUARDBIT_MUTANT_LAMBDA { return copysign(a, b); },
        magnitude, sign);
  }
  GUARDBIT_MUTANT_STEP friend Word integer(MutantNumber x) {
    return {integer(x.number_), expression(code(Operation::to_integer), x.hash_)};
  }

  GUARDBIT_MUTANT_STEP friend Mask operator==(MutantNumber x, MutantNumber y) {
    const std::uint8_t changes =
        changes_at(step_hash(Operation::equals, x.hash_, y.hash_), "==", left_out);
    const Mask mask = x.number_ == y.number_;
    if (changes != 0) [[unlikely]]
      return mask & (x.number_ < x.number_);  // false
    return mask;
  }
  GUARDBIT_MUTANT_STEP friend Mask operator<(MutantNumber x, MutantNumber y) {
    const std::uint8_t changes =
        changes_at(step_hash(Operation::less, x.hash_, y.hash_), "<", equal_otherwise);
    if (changes != 0) [[unlikely]]
      return x.number_ <= y.number_;
    return x.number_ < y.number_;
  }
  GUARDBIT_MUTANT_STEP friend Mask operator<=(MutantNumber x, MutantNumber y) {
    const std::uint8_t changes =
        changes_at(step_hash(Operation::at_most, x.hash_, y.hash_), "<=", equal_otherwise);
    if (changes != 0) [[unlikely]]
      return x.number_ < y.number_;
    return x.number_ <= y.number_;
  }
  GUARDBIT_MUTANT_STEP friend Mask operator>(MutantNumber x, MutantNumber y) { return y < x; }
  GUARDBIT_MUTANT_STEP friend Mask operator>=(MutantNumber x, MutantNumber y) { return y <= x; }

  GUARDBIT_MUTANT_STEP friend MutantNumber select(Mask mask, MutantNumber yes, MutantNumber no) {
    const std::uint32_t hash = step_hash(Operation::selection, yes.hash_, no.hash_);
    if (changes_at(hash, "select", left_out) != 0) [[unlikely]]
      return {no.number_, hash};
    return {select(mask, yes.number_, no.number_), hash};
  }
  template <class Yes, class No>
  GUARDBIT_MUTANT_STEP static MutantNumber choose(Mask mask, const Yes& yes, const No& no) {
    const std::uint32_t branch = program_branch;
    const auto in_branch = [branch](std::uint32_t which, const auto& f) GUARDBIT_MUTANT_LAMBDA {
      program_branch = 3 * branch + which;
      return f().number();
    };
    const Number number = Number::choose(
        mask, [&]() GUARDBIT_MUTANT_LAMBDA { return in_branch(1, yes); },
        [&]() GUARDBIT_MUTANT_LAMBDA { return in_branch(2, no); });
    program_branch = 3 * branch + 3;
    return {number, expression(code(Operation::choice), program_branch)};
  }

  GUARDBIT_MUTANT_STEP friend emulator::cuda_math::Angle<MutantNumber> angle_of(MutantNumber x) {
    emulator::cuda_math::Angle<MutantNumber> angle = emulator::cuda_math::small_angle(x);
    LargeAngles<Number>::reduce(x.number_, abs(x) >= emulator::cuda_math::least_large_angle,
                                angle.quarter.word, angle.r.number_);
    angle.r.hash_ = expression(code(Operation::angle), angle.r.hash_);
    return angle;
  }

 private:
  GUARDBIT_MUTANT_STEP MutantNumber(Number x, std::uint32_t hash) : number_(x), hash_(hash) {}

  GUARDBIT_MUTANT_STEP static constexpr std::uint32_t code(Operation operation) {
    return static_cast<std::uint32_t>(operation);
  }
  GUARDBIT_MUTANT_STEP static std::uint32_t step_hash(Operation operation, std::uint32_t a,
                                                      std::uint32_t b = 0, std::uint32_t c = 0) {
    return expression(code(operation) + (program_branch << 8), a, b, c);
  }
  GUARDBIT_MUTANT_STEP static Number changed(float x) {
    const auto c = std::bit_cast<std::uint32_t>(x);
    if constexpr (is_single) {
      if (program_parts != nullptr) program_parts->numbers.insert(c);
    }
    const ConstantChange& change = program_change.number;
    const std::uint8_t places = (*program_change.steps)[constant_place(Operation::constant, c)];
    if ((places & (one_up | one_down)) != 0) [[unlikely]]
      return Number(std::bit_cast<float>(next_code(c, (places & one_up) != 0)));
    return Number(std::bit_cast<float>(c == change.constant ? change.replacement : c));
  }
  /// The changes of a step that can have those.
  GUARDBIT_MUTANT_STEP static std::uint8_t changes_at(std::uint32_t hash,
                                                      std::string_view operation, int possible) {
    const auto place = static_cast<StepPlace>(hash);
    if constexpr (is_single) {
      if (program_parts != nullptr) {
        auto& step = program_parts->steps[place];
        step.operation = operation;
        step.changes |= static_cast<std::uint8_t>(possible);
      }
    }
    return (*program_change.steps)[place] & every_step_change;
  }
  GUARDBIT_MUTANT_STEP static constexpr formats::Rounding other(formats::Rounding rounding) {
    using enum formats::Rounding;
    return rounding == nearest_even ? downward : nearest_even;
  }
  GUARDBIT_MUTANT_STEP static constexpr std::string_view word_of(Operation operation) {
    switch (operation) {
      case Operation::plus: return "+";
      case Operation::minus: return "-";
      case Operation::times: return "*";
      case Operation::over: return "/";
      case Operation::root: return "square_root";
      case Operation::fused: return "fma";
      case Operation::fused_down: return "fma_down";
      case Operation::plus_cut: return "add_toward_zero";
      case Operation::times_cut: return "multiply_toward_zero";
      case Operation::rest: return "remainder";
      case Operation::negation: return "negation";
      case Operation::magnitude: return "abs";
      case Operation::sign: return "copysign";
      case Operation::flush: return "flushed";
      case Operation::nearest_integer: return "rint";
      case Operation::cut: return "trunc";
      default: return "";
    }
  }

  /// A step that rounds, in one way or the other.
  template <class Step, class Other, class... More>
  GUARDBIT_MUTANT_STEP static MutantNumber rounded(Operation operation, const Step& step,
                                                   const Other& other_step, MutantNumber x,
                                                   More... more) {
    constexpr bool is_fused = sizeof...(More) == 2;
    const std::uint32_t hash = step_hash(operation, x.hash_, more.hash_...);
    const std::uint8_t changes =
        changes_at(hash, word_of(operation),
                   rounded_otherwise | flushed_otherwise | (is_fused ? int{split} : 0));
    if (changes == 0) [[likely]]
      return {step(x.number_, more.number_...), hash};
    const auto apply = [&](auto a, auto... b) GUARDBIT_MUTANT_LAMBDA {
      if constexpr (is_fused) {
        if ((changes & split) != 0) return product_and_sum(a, b...);
      }
      return (changes & rounded_otherwise) != 0 ? other_step(a, b...) : step(a, b...);
    };
    if ((changes & flushed_otherwise) == 0) return {apply(x.number_, more.number_...), hash};
    return {flushed(apply(flushed(x.number_), flushed(more.number_)...)), hash};
  }
  GUARDBIT_MUTANT_STEP static Number product_and_sum(Number a, Number b, Number c) {
    return a * b + c;
  }

  /// A step on signs, or none.
  template <class Step, class... More>
  GUARDBIT_MUTANT_STEP static MutantNumber signs(Operation operation, const Step& step,
                                                 MutantNumber x, More... more) {
    const std::uint32_t hash = step_hash(operation, x.hash_, more.hash_...);
    if (changes_at(hash, word_of(operation), left_out) != 0) [[unlikely]]
      return {x.number_, hash};
    return {step(x.number_, more.number_...), hash};
  }

  [[gnu::noinline]] static Number evaluate_apart(const emulator::mufu::SpecialFunctionForm& form,
                                                 Number x) {
    return evaluate(form, x);
  }

  Number number_;
  std::uint32_t hash_;
};

}  // namespace guardbit::tests
