#pragma once

#include "emulator/functions/rounded_instruction.hpp"
#include "emulator/functions/unit/special_function_formats.hpp"

// The instruction rsqrt.approx.f64: the unit's start, and one step that corrects it, in FP64.
namespace guardbit::emulator::mufu {

namespace double_steps {

constexpr std::uint64_t product(std::uint64_t x, std::uint64_t y) {
  constexpr RoundedInstruction instruction = {RoundedOperation::mul, formats::fp64};
  return emulator::evaluate(instruction, {x, y});
}
constexpr std::uint64_t sum(std::uint64_t x, std::uint64_t y) {
  constexpr RoundedInstruction instruction = {RoundedOperation::add, formats::fp64};
  return emulator::evaluate(instruction, {x, y});
}
constexpr std::uint64_t fma(std::uint64_t x, std::uint64_t y, std::uint64_t z) {
  constexpr RoundedInstruction instruction = {RoundedOperation::fma, formats::fp64};
  return emulator::evaluate(instruction, {x, y, z});
}

/// 1 / sqrt(x) of a normal x > 0: y + y e (1/2 + 3/8 e), with e = 1 - x y^2.
constexpr std::uint64_t corrected_rsqrt(std::uint64_t x, const FormattedForm& start) {
  constexpr std::uint64_t one = 0x3ff0000000000000, half = 0x3fe0000000000000,
                          three_eighths = 0x3fd8000000000000, sign = 0x8000000000000000;
  const std::uint64_t y = evaluate(start, x);
  const std::uint64_t e = fma(x, product(y, y) ^ sign, one);
  return fma(fma(e, three_eighths, half), product(y, e), y);
}

}  // namespace double_steps

/// `start` is the unit's form; a device has its tables elsewhere.
constexpr std::uint64_t rsqrt_approx_f64(std::uint64_t x,
                                         const FormattedForm& start = rsqrt64_form) {
  using namespace double_steps;
  constexpr std::uint64_t sign = 0x8000000000000000, infinity = 0x7ff0000000000000,
                          least_normal = 0x0010000000000000, two_to_27 = 0x41a0000000000000,
                          two_to_54 = 0x4350000000000000;
  const std::uint64_t magnitude = x & ~sign;
  if (magnitude == 0) return x | infinity;
  if (magnitude > infinity) return sum(x, x);
  if (x != magnitude) return 0xfff8000000000000;
  if (x == infinity) return 0;
  return x < least_normal ? product(corrected_rsqrt(product(x, two_to_54), start), two_to_27)
                          : corrected_rsqrt(x, start);
}

}  // namespace guardbit::emulator::mufu
