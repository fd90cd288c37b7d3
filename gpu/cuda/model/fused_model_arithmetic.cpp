#include <algorithm>

#include "emulator/engine/kernels/shared/block_sum.hpp"
#include "emulator/model/dot.hpp"
#include "formats/format_catalogue.hpp"
#include "gpu/cuda/model/fused_model.hpp"
#include "gpu/operands/register_words.hpp"

namespace guardbit::gpu {

using namespace emulator;

namespace {

bool operand_accepted(const Format& f, const Format& multiplied) {
  return f.encoding == formats::Encoding::floating && f.has_sign && f.has_subnormals &&
         f.specials != formats::Specials::nan_negative_zero && formats::bits(f) <= 32 &&
         multiplied.encoding == formats::Encoding::floating;
}

/// A nonzero addend must stand above e0, or a zero product could decide E (emulator/engine/kernels/
/// factors.hpp).
bool accumulator_accepted(const Format& f, const AccumulatorSpec& spec) {
  return f.specials == formats::Specials::ieee && formats::bits(f) <= 32 && f.has_subnormals &&
         spec.min_exponent < formats::min_exponent(f);
}

/// Terms below 2^(F + 2) whose sum stays below 2^31. Products of significands stay clearly below 4.
int terms_per_word(int kept_fraction_bits) { return 1 << (29 - kept_fraction_bits); }

bool dot_accepted(const MatrixInstruction& instruction, const Step& step, int kept_fraction_bits) {
  const AccumulatorSpec& spec = step.spec;
  const Format& a = operand_format(step, instruction.a);
  const Format& b = operand_format(step, instruction.b);
  const int fraction_bits = a.fraction_bits + b.fraction_bits;
  return spec.summation == Summation::fused && spec.exact_group == 1 &&
         spec.alignment == Rounding::toward_zero && spec.kept_fraction_bits == kept_fraction_bits &&
         spec.kept_fraction_bits >= fraction_bits && spec.kept_fraction_bits <= 26 &&
         (spec.result == Rounding::toward_zero || spec.result == Rounding::nearest_even) &&
         spec.input == Subnormals::keep && spec.output == Subnormals::keep &&
         operand_accepted(instruction.a, a) && operand_accepted(instruction.b, b) &&
         accumulator_accepted(step.result, spec);
}

const Step* first_dot_of(const MatrixInstruction& instruction) {
  return std::find_if(instruction.steps.begin(), instruction.steps.end(),
                      [](const Step& step) { return step.operation == Operation::dot; });
}

FactorFormat factor_format(const Step& step, const Format& stored, bool negate, int left) {
  const Format& multiplied = operand_format(step, stored);
  FactorFormat f;
  f.sign = static_cast<std::uint32_t>(formats::sign_mask(stored));
  f.flip = negate ? f.sign : 0;
  f.magnitude = static_cast<std::uint32_t>(formats::magnitude_mask(stored));
  f.first_special = static_cast<std::uint32_t>(formats::max_finite_code(stored) + 1);
  f.infinity = formats::has_infinity(stored)
                   ? static_cast<std::uint32_t>(formats::infinity_code(stored))
                   : ~0U;
  f.ignored_bits = ignored_bits(stored);
  f.fraction_bits = stored.fraction_bits;
  f.bias = stored.bias;
  f.lowest_exponent = formats::min_exponent(multiplied);
  f.left = multiplied.fraction_bits - stored.fraction_bits + left;
  return f;
}

FusedAccumulator fused_accumulator(const Format& f, const AccumulatorSpec& spec) {
  const AccumulatorFormat x(f, spec);
  return {static_cast<std::uint32_t>(x.sign),
          static_cast<std::uint32_t>(x.magnitude),
          static_cast<std::uint32_t>(x.infinity),
          f.fraction_bits,
          f.bias,
          x.result_fraction_bits,
          x.last_biased};
}

FusedStep::Kind scalar_kind(const MatrixInstruction& instruction, const Step& step) {
  using enum FusedStep::Kind;
  const AccumulatorSpec& spec = step.spec;
  const Format from = source_format(instruction, step.addend, step.result);
  const bool plain = spec.input == Subnormals::keep && spec.output == Subnormals::keep &&
                     spec.nan == NanPolicy::all_ones && spec.result_fraction_bits == 0 &&
                     spec.summation != Summation::fma_chain &&
                     spec.summation != Summation::pairwise;
  const bool nearest = plain && spec.result == Rounding::nearest_even;
  if (step.operation == Operation::convert) {
    if (plain && from == formats::fp16 && step.result == formats::fp32) return widen_to_fp32;
    if (nearest && from == formats::fp32 && step.result == formats::fp16 &&
        spec.underflowed_sum == ZeroSign::of_sum)
      return narrow_to_fp16;
    return by_model;
  }
  const Format other = source_format(instruction, step.other, step.result);
  if (nearest && from == step.result && other == step.result) {
    if (step.result == formats::fp32) return add_fp32;
    if (step.result == formats::fp16) return add_fp16;
  }
  return by_model;
}

}  // namespace

bool fused_accepts(const MatrixInstruction& instruction) {
  const Step* const first = first_dot_of(instruction);
  const bool plain = instruction.scale.count == 0 && first != instruction.steps.end() &&
                     formats::bits(instruction.c) <= 32 && formats::bits(instruction.d) <= 32;
  return plain &&
         std::all_of(instruction.steps.begin(), instruction.steps.end(), [&](const Step& step) {
           if (step.operation != Operation::dot) return formats::bits(step.result) <= 32;
           return step.widened == first->widened &&
                  accumulator_accepted(source_format(instruction, step.addend, step.result),
                                       step.spec) &&
                  dot_accepted(instruction, step, first->spec.kept_fraction_bits);
         });
}

FusedInstruction fused_instruction(const ModelInstruction& model) {
  const MatrixInstruction& instruction = model.instruction;
  const Step& first = *first_dot_of(instruction);
  FusedInstruction fused;
  fused.model = model;
  const int fraction_bits = operand_format(first, instruction.a).fraction_bits +
                            operand_format(first, instruction.b).fraction_bits;
  fused.a = factor_format(first, instruction.a, model.modifiers.negate_a,
                          first.spec.kept_fraction_bits - fraction_bits);
  fused.b = factor_format(first, instruction.b, model.modifiers.negate_b, 0);
  fused.stored = stored_k(instruction, instruction.shape.k);
  fused.columns = std::min(columns_per_tile, instruction.shape.n);
  fused.by_positions = divisor(model.ordered);
  fused.by_b_rows =
      divisor(instruction.sparsity.group_elements != 0 ? instruction.shape.k : model.ordered);
  fused.by_columns = divisor(fused.columns);
  fused.by_across = divisor(fused.columns / columns_each);
  fused.by_down = divisor(instruction.shape.m / rows_each);
  for (const Step& step : instruction.steps) {
    FusedStep& x = fused.steps[fused.count];
    x.addend = static_cast<std::int8_t>(step.addend);
    x.other = static_cast<std::int8_t>(step.other);
    if (step.operation == Operation::dot) {
      x.nearest_even = step.spec.result == Rounding::nearest_even;
      x.begin = model.begin[fused.count];
      x.end = x.begin + model.count[fused.count];
      x.terms = step.spec.terms == 0 ? model.count[fused.count] : step.spec.terms;
      x.kept_fraction_bits = step.spec.kept_fraction_bits;
      x.terms_per_word = terms_per_word(x.kept_fraction_bits);
      x.zero_exponent = step.spec.min_exponent;
      x.addend_format =
          fused_accumulator(source_format(instruction, step.addend, step.result), step.spec);
      x.result = fused_accumulator(step.result, step.spec);
    } else {
      x.kind = scalar_kind(instruction, step);
    }
    ++fused.count;
  }
  return fused;
}

}  // namespace guardbit::gpu
