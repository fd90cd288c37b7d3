#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "emulator/functions/unit/special_function_unit.hpp"
#include "formats/codec.hpp"
#include "formats/format_catalogue.hpp"

// The special function unit's instructions on other formats: what they read becomes an argument of
// FP32, and the unit's result is cut to the format. Digests equal the hardware's of an sm_90.
namespace guardbit::emulator::mufu {

enum class UnitOperand : std::uint8_t {
  fp16,
  bf16,
  /// The high word of an FP64 number; the low one is not read, and 0 in the result.
  high_word,
};
constexpr auto words(UnitOperand) { return std::array{"fp16", "bf16", "high_word"}; }

constexpr formats::Format format_of(UnitOperand operand) {
  // Copies, since a device has no address of the others.
  constexpr formats::Format fp16 = formats::fp16, bf16 = formats::bf16, fp64 = formats::fp64;
  switch (operand) {
    case UnitOperand::fp16: return fp16;
    case UnitOperand::bf16: return bf16;
    case UnitOperand::high_word: return fp64;
  }
  return fp16;
}

struct FormattedForm {
  std::string_view name;
  const UnitFunction* function = nullptr;
  UnitOperand operand = UnitOperand::fp16;
};

/// What the unit computes in FP32, and the power of two that its result is then scaled by.
struct UnitArgument {
  std::uint32_t code = 0;
  int exponent = 0;
};

/// A high word has the exponents that FP32 lacks: the function's tables repeat, so whole periods
/// are taken off.
constexpr UnitArgument argument_of_high_word(const UnitFunction& f, std::uint32_t word) {
  constexpr int high_fraction_bits = 20;
  constexpr int bias = formats::fp64.bias;
  const std::uint32_t sign = word & sign_bit, magnitude = word & ~sign_bit;
  const auto biased = static_cast<int>(magnitude >> high_fraction_bits);
  const std::uint32_t fraction = (magnitude << (fraction_bits - high_fraction_bits)) & 0x7fffff;
  if (biased == 0) return {sign, 0};
  if (biased > 2 * bias) return {sign | infinity_code | fraction, 0};
  const int place = biased - bias - f.first_exponent;
  const int period = (place - (place < 0 ? f.binade_count - 1 : 0)) / f.binade_count;
  const int exponent = place - period * f.binade_count + f.first_exponent;
  return {sign | static_cast<std::uint32_t>(exponent + 127) << fraction_bits | fraction,
          f.exponent_factor * period};
}

constexpr std::uint32_t high_word_of(std::uint32_t code, int scale) {
  const std::uint32_t sign = code & sign_bit, magnitude = code & ~sign_bit;
  if (magnitude == 0) return sign;
  if (magnitude > infinity_code) return nan_code;
  if (magnitude == infinity_code) return sign | 0x7ff00000;
  constexpr int bias = formats::fp64.bias;
  const int biased = static_cast<int>(magnitude >> fraction_bits) - 127 + bias + scale;
  if (biased < 1) return sign;
  return sign | static_cast<std::uint32_t>(biased) << 20 | (magnitude & 0x7fffff) >> 3;
}

constexpr UnitArgument unit_argument(const FormattedForm& form, std::uint64_t code) {
  constexpr formats::Format fp32 = formats::fp32;
  if (form.operand == UnitOperand::high_word)
    return argument_of_high_word(*form.function, static_cast<std::uint32_t>(code >> 32));
  return {static_cast<std::uint32_t>(formats::convert(format_of(form.operand), code, fp32)), 0};
}

/// The result's code in the form's format of the unit's in FP32. Numbers past the largest one of a
/// narrow format are infinities although they are cut.
constexpr std::uint64_t result_of_unit(const FormattedForm& form, const UnitArgument& argument,
                                       std::uint32_t code) {
  if (form.operand == UnitOperand::high_word)
    return std::uint64_t{high_word_of(code, argument.exponent)} << 32;
  constexpr formats::Format fp32 = formats::fp32;
  constexpr formats::Overflow overflow = {.finite = formats::Overflow::Finite::infinity_always,
                                          .nan = formats::Overflow::Nan::all_ones};
  return formats::convert(fp32, code, format_of(form.operand), formats::Rounding::toward_zero,
                          overflow);
}

constexpr std::uint64_t evaluate(const FormattedForm& form, std::uint64_t code) {
  const UnitArgument argument = unit_argument(form, code);
  return result_of_unit(form, argument, evaluate(*form.function, argument.code).code);
}

inline constexpr FormattedForm rcp64_form = {"rcp.approx.ftz.f64", &rcp, UnitOperand::high_word};
inline constexpr FormattedForm rsqrt64_form = {"rsqrt.approx.ftz.f64", &rsqrt,
                                               UnitOperand::high_word};

/// Every such form; packed ones compute two elements.
inline constexpr std::array formatted_forms = {
    FormattedForm{"ex2.approx.f16", &ex2, UnitOperand::fp16},
    FormattedForm{"ex2.approx.f16x2", &ex2, UnitOperand::fp16},
    FormattedForm{"ex2.approx.ftz.bf16", &ex2, UnitOperand::bf16},
    FormattedForm{"ex2.approx.ftz.bf16x2", &ex2, UnitOperand::bf16},
    FormattedForm{"tanh.approx.f16", &tanh, UnitOperand::fp16},
    FormattedForm{"tanh.approx.f16x2", &tanh, UnitOperand::fp16},
    FormattedForm{"tanh.approx.bf16", &tanh, UnitOperand::bf16},
    FormattedForm{"tanh.approx.bf16x2", &tanh, UnitOperand::bf16},
    rcp64_form,
    rsqrt64_form};

}  // namespace guardbit::emulator::mufu
