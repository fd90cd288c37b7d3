#include "gpu/model/offset_accumulator.hpp"

#include <algorithm>

#include "emulator/catalogue/compositions.hpp"

namespace guardbit::gpu {

namespace {

using emulator::AccumulatorSpec;
using emulator::MatrixInstruction;
using emulator::Step;
using formats::Format;
using formats::Rounding;

bool is_factor(const Format& f) {
  return f.encoding == formats::Encoding::floating && f.has_sign && f.exponent_bits <= 8 &&
         formats::precision(f) <= 12;
}

/// Products stay within 2^-60 and 2^60.
bool is_narrow(const Format& f) {
  return formats::min_exponent(f) >= -14 && formats::max_exponent(f) <= 16;
}

bool is_offset_step(const Step& step, const Format& d) {
  const AccumulatorSpec& x = step.spec;
  const bool to_fp32 = d == formats::fp32 && x.result == Rounding::toward_zero &&
                       (x.result_fraction_bits == 0 || x.result_fraction_bits == 13);
  const bool to_fp16 =
      d == formats::fp16 && x.result == Rounding::nearest_even && x.result_fraction_bits == 0;
  // From 13 bits on the grid of a subnormal addend holds it whole.
  const int fewest = x.result_fraction_bits == 13 || to_fp16 ? 13 : 23;
  return step.operation == emulator::Operation::dot && step.result == d && (to_fp32 || to_fp16) &&
         x.summation == emulator::Summation::fused && x.exact_group == 1 && x.terms > 0 &&
         x.alignment == Rounding::toward_zero && x.kept_fraction_bits >= fewest &&
         x.kept_fraction_bits <= 26 && x.min_exponent < formats::min_exponent(d) &&
         x.input == emulator::Subnormals::keep && x.output == emulator::Subnormals::keep &&
         x.nan == emulator::NanPolicy::all_ones &&
         x.underflowed_sum == emulator::ZeroSign::positive;
}

bool is_composed(const MatrixInstruction& instruction) {
  const auto& s = instruction.steps.list;
  return instruction.steps.count == 3 && s[0].selection == emulator::Selection{4, 0b0011} &&
         s[1].selection == emulator::Selection{4, 0b1100} &&
         s[0].addend == emulator::Source::positive_zero &&
         s[1].addend == emulator::Source::step_0 && s[0].spec == s[1].spec &&
         s[0].result == s[1].result && s[0].widened == s[1].widened &&
         s[2].operation == emulator::Operation::add && s[2].addend == emulator::Source::c &&
         s[2].other == emulator::Source::step_1 && s[2].result == instruction.d &&
         s[2].spec == emulator::scalar_arithmetic();
}

}  // namespace

std::optional<TunedInstruction> tuned_instruction(const MatrixInstruction& instruction) {
  const Step& step = instruction.steps.list[0];
  const bool composed = is_composed(instruction);
  const bool native = instruction.steps.count == 1 && step.selection == emulator::every_k &&
                      step.addend == emulator::Source::c;
  if ((!composed && !native) || instruction.scale.count != 0 ||
      instruction.sparsity.group_elements != 0 || instruction.c != instruction.d ||
      !is_offset_step(step, instruction.d))
    return std::nullopt;
  const Format a = step.widened.value_or(instruction.a), b = step.widened.value_or(instruction.b);
  if (!is_factor(instruction.a) || !is_factor(instruction.b) || !is_factor(a) || !is_factor(b))
    return std::nullopt;

  TunedInstruction tuned;
  tuned.execution_k = instruction.shape.k;
  tuned.composed = composed;
  const int selected = composed ? instruction.shape.k / 2 : instruction.shape.k;
  tuned.terms = std::min(step.spec.terms, selected);
  const bool known_length =
      tuned.terms == 4 || tuned.terms == 8 || tuned.terms == 16 || tuned.terms == 32;
  if (!known_length || selected % tuned.terms != 0 || (composed && selected != tuned.terms))
    return std::nullopt;
  tuned.accumulated = instruction.d == formats::fp16        ? Accumulated::fp16
                      : step.spec.result_fraction_bits != 0 ? Accumulated::e8m13
                                                            : Accumulated::fp32;
  tuned.any_exponents = !is_narrow(a) || !is_narrow(b);
  if (tuned.any_exponents && tuned.accumulated != Accumulated::fp32) return std::nullopt;
  tuned.kept_fraction_bits = step.spec.kept_fraction_bits;
  tuned.zero_exponent = step.spec.min_exponent;
  tuned.step = step;
  tuned.a = instruction.a;
  tuned.b = instruction.b;
  tuned.d = instruction.d;
  return tuned;
}

}  // namespace guardbit::gpu
