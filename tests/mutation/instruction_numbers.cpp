#include "tests/mutation/instruction_numbers.hpp"

#include <algorithm>

namespace guardbit::tests {

using emulator::Operation;
using emulator::Summation;
using formats::Rounding;

const Step& step_of(const MatrixInstruction& instruction, int index) {
  return instruction.steps.list.at(static_cast<std::size_t>(index));
}

int unit_of(const Format& f) { return formats::min_exponent(f) - f.fraction_bits; }

int product_unit(const MatrixInstruction& instruction) {
  const int unscaled = unit_of(instruction.a) + unit_of(instruction.b);
  return instruction.scale.count == 0 ? unscaled : unscaled + 2 * unit_of(instruction.scale.format);
}

int highest_product(const MatrixInstruction& instruction) {
  const int unscaled = formats::max_exponent(instruction.a) + formats::max_exponent(instruction.b);
  return instruction.scale.count == 0
             ? unscaled
             : unscaled + 2 * formats::max_exponent(instruction.scale.format);
}

Format kept_format(const Step& step) {
  Format f = step.result;
  if (step.spec.result_fraction_bits != 0) f.fraction_bits = step.spec.result_fraction_bits;
  return f;
}

int source_unit(const MatrixInstruction& instruction, Source source) {
  if (source == Source::c) return unit_of(instruction.c);
  const int index = static_cast<int>(source);
  if (index < 0) return never;
  return std::max(sum_unit(instruction, index), unit_of(kept_format(step_of(instruction, index))));
}

int sum_unit(const MatrixInstruction& instruction, int index) {
  const Step& step = step_of(instruction, index);
  int addend = source_unit(instruction, step.addend);
  if (step.operation == Operation::convert) return addend;
  if (step.operation == Operation::add)
    return std::min(addend, source_unit(instruction, step.other));
  if (step.spec.summation == Summation::fused && addend != never) {
    // A nonzero addend sets a grid no finer than this, and is cut to it.
    const Format f = source_format(instruction, step.addend, step.result);
    addend = std::max(addend, formats::min_exponent(f) - step.spec.kept_fraction_bits);
  }
  if (step.spec.summation == Summation::two_grids &&
      step.spec.subtraction == emulator::Subtraction::ones_complement) {
    // Inverted bits take a unit of the grid.
    addend = std::min(addend, step.spec.min_exponent - step.spec.addend_kept_fraction_bits);
  }
  return std::min(addend, product_unit(instruction));
}

bool never_cuts(const MatrixInstruction& instruction, int index, int kept) {
  const Step& step = step_of(instruction, index);
  const int products = highest_product(instruction);
  const int addend_unit = source_unit(instruction, step.addend);
  const bool zero_addend = addend_unit == never;
  const Format f = source_format(instruction, step.addend, step.result);
  const int largest = zero_addend ? products : std::max(products, formats::max_exponent(f));
  if (largest - kept > product_unit(instruction)) return false;
  return zero_addend || (kept >= f.fraction_bits && products - kept <= addend_unit);
}

bool never_underflows(const MatrixInstruction& instruction, int index) {
  return sum_unit(instruction, index) >=
         formats::min_exponent(kept_format(step_of(instruction, index)));
}

bool zero_is_positive(const MatrixInstruction& instruction, Source source) {
  if (static_cast<int>(source) < 0) return source == Source::positive_zero;
  const int index = static_cast<int>(source);
  const Step& step = step_of(instruction, index);
  if (step.operation == Operation::convert || !never_underflows(instruction, index)) return false;
  if (step.spec.result == Rounding::downward) return false;  // exact cancellation gives -0
  return zero_is_positive(instruction, step.addend) ||
         (step.operation == Operation::add && zero_is_positive(instruction, step.other));
}

bool gives_subnormals(const MatrixInstruction& instruction, Source source) {
  if (source == Source::c) return true;
  const int index = static_cast<int>(source);
  if (index < 0) return false;
  return step_of(instruction, index).spec.output == emulator::Subnormals::keep &&
         !never_underflows(instruction, index);
}

}  // namespace guardbit::tests
