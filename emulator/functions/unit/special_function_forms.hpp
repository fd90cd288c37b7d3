#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <string_view>

#include "emulator/functions/unit/special_function_unit.hpp"

// The instructions of PTX that compilers make of the special function unit: a step before it, the
// unit, a step after it. Forms with `.ftz` are the unit alone. Steps are those of FP32 numbers, of
// any type that emulator/functions/numbers/ has.
namespace guardbit::emulator::mufu {

enum class StepOperation : std::uint8_t { none, times, times_toward_zero, plus, squared };
constexpr auto words(StepOperation) {
  return std::array{"none", "times", "times_toward_zero", "plus", "squared"};
}

/// One operation on FP32, rounded to nearest even where it does not say otherwise.
struct FormStep {
  StepOperation operation = StepOperation::none;
  float constant = 0;
};

/// Other steps for a range of arguments: their scaling keeps argument and result in the normal
/// range.
struct Scaling {
  /// the least |x| that takes part, and the least that is too large, as codes; 0, 0: none
  std::uint32_t from = 0, to = 0;
  bool negative_only = false;
  FormStep before{}, after{};
};

struct SpecialFunctionForm {
  std::string_view name;
  const UnitFunction* function = nullptr;
  FormStep before{};
  std::array<Scaling, 2> scalings{};
  /// the form with `.ftz`, where it is another one
  const SpecialFunctionForm* flushing = nullptr;
};

template <class Number>
constexpr Number apply(const FormStep& step, Number x) {
  switch (step.operation) {
    case StepOperation::none: return x;
    case StepOperation::times: return x * Number(step.constant);
    case StepOperation::times_toward_zero: return multiply_toward_zero(x, Number(step.constant));
    case StepOperation::plus: return x + Number(step.constant);
    case StepOperation::squared: return x * x;
  }
  return x;
}

constexpr bool takes(const Scaling& scaling, std::uint32_t code) {
  const std::uint32_t magnitude = code & ~sign_bit;
  return magnitude >= scaling.from && magnitude < scaling.to &&
         (!scaling.negative_only || code != magnitude);
}

/// The steps that an argument takes around the unit.
constexpr Scaling scaling_of(const SpecialFunctionForm& form, std::uint32_t code) {
  for (const Scaling& scaling : form.scalings)
    if (takes(scaling, code)) return scaling;
  return {0, 0, false, form.before, {}};
}

template <class Number>
constexpr Number evaluate(const SpecialFunctionForm& form, Number x) {
  const Scaling steps = scaling_of(form, bits(x));
  const Number argument = apply(steps.before, x);
  return apply(steps.after, Number::of(evaluate(*form.function, bits(argument)).code));
}

inline constexpr std::uint32_t above_infinity = infinity_code + 1;
constexpr FormStep times(float constant) { return {StepOperation::times, constant}; }
constexpr FormStep plus(float constant) { return {StepOperation::plus, constant}; }
inline constexpr FormStep squared = {StepOperation::squared, 0};
/// to turns: 1 / (2 pi), rounded
inline constexpr FormStep to_turns = {StepOperation::times_toward_zero, 0x1.45f306p-3F};
constexpr Scaling subnormals(FormStep before, FormStep after) {
  return {0, smallest_normal, false, before, after};
}

inline constexpr SpecialFunctionForm ex2_approx_ftz_form = {"ex2.approx.ftz.f32", &ex2};
inline constexpr SpecialFunctionForm ex2_approx_form = {
    "ex2.approx.f32",
    &ex2,
    {},
    {{{0x42fc0001, above_infinity, true, times(0.5F), squared}}},
    &ex2_approx_ftz_form};
inline constexpr SpecialFunctionForm lg2_approx_ftz_form = {"lg2.approx.ftz.f32", &lg2};
inline constexpr SpecialFunctionForm lg2_approx_form = {
    "lg2.approx.f32", &lg2, {}, {{subnormals(times(0x1p24F), plus(-24))}}, &lg2_approx_ftz_form};
inline constexpr SpecialFunctionForm rcp_approx_ftz_form = {"rcp.approx.ftz.f32", &rcp};
inline constexpr SpecialFunctionForm rcp_approx_form = {
    "rcp.approx.f32",
    &rcp,
    {},
    {{subnormals(times(0x1p24F), times(0x1p24F)),
      {0x7e800001, above_infinity, false, times(0.25F), times(0.25F)}}},
    &rcp_approx_ftz_form};
inline constexpr SpecialFunctionForm rsqrt_approx_ftz_form = {"rsqrt.approx.ftz.f32", &rsqrt};
inline constexpr SpecialFunctionForm rsqrt_approx_form = {
    "rsqrt.approx.f32",
    &rsqrt,
    {},
    {{subnormals(times(0x1p24F), times(0x1p12F))}},
    &rsqrt_approx_ftz_form};
inline constexpr SpecialFunctionForm sqrt_approx_ftz_form = {"sqrt.approx.ftz.f32", &sqrt};
inline constexpr SpecialFunctionForm sqrt_approx_form = {
    "sqrt.approx.f32",
    &sqrt,
    {},
    {{subnormals(times(0x1p24F), times(0x1p-12F))}},
    &sqrt_approx_ftz_form};
inline constexpr SpecialFunctionForm sin_approx_ftz_form = {"sin.approx.ftz.f32", &sin, to_turns};
inline constexpr SpecialFunctionForm sin_approx_form = {
    "sin.approx.f32", &sin, to_turns, {}, &sin_approx_ftz_form};
inline constexpr SpecialFunctionForm cos_approx_ftz_form = {"cos.approx.ftz.f32", &cos, to_turns};
inline constexpr SpecialFunctionForm cos_approx_form = {
    "cos.approx.f32", &cos, to_turns, {}, &cos_approx_ftz_form};
inline constexpr SpecialFunctionForm tanh_approx_form = {"tanh.approx.f32", &tanh};

/// Every form.
inline constexpr std::array special_function_forms = {
    &ex2_approx_form,  &ex2_approx_ftz_form,  &lg2_approx_form,   &lg2_approx_ftz_form,
    &rcp_approx_form,  &rcp_approx_ftz_form,  &rsqrt_approx_form, &rsqrt_approx_ftz_form,
    &sqrt_approx_form, &sqrt_approx_ftz_form, &sin_approx_form,   &sin_approx_ftz_form,
    &cos_approx_form,  &cos_approx_ftz_form,  &tanh_approx_form};

// The same as functions of programs.
template <class Number>
constexpr Number ex2_approx_ftz(Number x) {
  return evaluate(ex2_approx_ftz_form, x);
}
template <class Number>
constexpr Number ex2_approx(Number x) {
  return evaluate(ex2_approx_form, x);
}
template <class Number>
constexpr Number lg2_approx_ftz(Number x) {
  return evaluate(lg2_approx_ftz_form, x);
}
template <class Number>
constexpr Number lg2_approx(Number x) {
  return evaluate(lg2_approx_form, x);
}
template <class Number>
constexpr Number rcp_approx_ftz(Number x) {
  return evaluate(rcp_approx_ftz_form, x);
}
template <class Number>
constexpr Number rcp_approx(Number x) {
  return evaluate(rcp_approx_form, x);
}
template <class Number>
constexpr Number rsqrt_approx_ftz(Number x) {
  return evaluate(rsqrt_approx_ftz_form, x);
}
template <class Number>
constexpr Number rsqrt_approx(Number x) {
  return evaluate(rsqrt_approx_form, x);
}
template <class Number>
constexpr Number sqrt_approx_ftz(Number x) {
  return evaluate(sqrt_approx_ftz_form, x);
}
template <class Number>
constexpr Number sqrt_approx(Number x) {
  return evaluate(sqrt_approx_form, x);
}
template <class Number>
constexpr Number sin_approx(Number x) {
  return evaluate(sin_approx_form, x);
}
template <class Number>
constexpr Number cos_approx(Number x) {
  return evaluate(cos_approx_form, x);
}
template <class Number>
constexpr Number tanh_approx(Number x) {
  return evaluate(tanh_approx_form, x);
}

}  // namespace guardbit::emulator::mufu
