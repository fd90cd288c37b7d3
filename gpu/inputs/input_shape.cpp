#include "gpu/inputs/input_shape.hpp"

#include "formats/format_catalogue.hpp"
#include "formats/value.hpp"

namespace guardbit::gpu {

namespace {

/// A chain of roundings cuts everything below the result's last bit.
void aim_at_chain(InputShape& x) {
  x.kept_bits = x.result_bits + 2;
  x.zero_exponent = x.d.lowest + x.kept_bits - 2;
}

void aim_at_arithmetic(InputShape& x, const emulator::MatrixInstruction& model) {
  for (const emulator::Step& step : model.steps) {
    if (step.operation != emulator::Operation::dot) continue;
    const emulator::AccumulatorSpec& spec = step.spec;
    const int block = spec.terms != 0 ? spec.terms : x.stored_k;
    if (block < x.stored_k) x.group_bit = formats::leading_bit(static_cast<unsigned>(block));
    if (step.selection.modulus == 4) x.group_bit = 1;
    x.result_bits =
        spec.result_fraction_bits != 0 ? spec.result_fraction_bits : step.result.fraction_bits;
    x.kept_bits = spec.kept_fraction_bits;
    x.zero_exponent = spec.min_exponent;
    if (spec.summation != emulator::Summation::fused) aim_at_chain(x);
    break;
  }
  x.final_bits = model.d.fraction_bits;
  x.lowest_product = x.a.lowest + x.b.lowest;
  x.highest_product = x.a.highest + x.b.highest;
}

}  // namespace

InputKind input_kind(const TensorCoreInstruction& instruction) {
  if (!is_integer(instruction.a)) return InputKind::floating;
  return instruction.a == formats::b1 ? InputKind::bits : InputKind::integer;
}

InputShape input_shape(const TensorCoreInstruction& instruction,
                       const emulator::MatrixInstruction& model) {
  InputShape x;
  x.kind = input_kind(instruction);
  x.a = operand_words(instruction.a);
  x.b = operand_words(instruction.b);
  x.c = operand_words(instruction.c);
  x.d = operand_words(instruction.d);
  if (instruction.scale.count != 0) x.scale = operand_words(instruction.scale.format);
  x.scales = instruction.scale.count;
  x.m = instruction.m;
  x.n = instruction.n;
  x.k = instruction.k;
  x.stored_k = instruction.stored_k();
  x.stored_k_bits = formats::leading_bit(static_cast<unsigned>(x.stored_k - 1)) + 1;
  x.ignore_c = instruction.ignore_c;
  x.negated = instruction.negate_a != instruction.negate_b;
  x.sparse = instruction.sparse;
  if (instruction.sparse) {
    const SparseGroup group = sparse_group(instruction);
    x.unordered = instruction.unordered;
    x.group_stored = group.stored;
    x.group_positions = group.positions;
    x.stored_shift = group.stored == 4 ? 2 : 1;
    x.dense_shift = x.stored_shift + 1;
  }
  if (x.kind == InputKind::floating) aim_at_arithmetic(x, model);
  return x;
}

InputShape input_shape(const TensorCoreInstruction& instruction) {
  return input_shape(instruction, catalogue_instruction(instruction));
}

}  // namespace guardbit::gpu
