#include "tests/mutation/row_numbers.hpp"

#include <algorithm>

namespace guardbit::tests {

using emulator::Operation;
using emulator::Summation;
using formats::Rounding;

const Step& step_of(const MatrixInstruction& row, int index) {
  return row.steps.list.at(static_cast<std::size_t>(index));
}

int unit_of(const Format& f) { return formats::min_exponent(f) - f.fraction_bits; }

int product_unit(const MatrixInstruction& row) {
  const int unscaled = unit_of(row.a) + unit_of(row.b);
  return row.scale.count == 0 ? unscaled : unscaled + 2 * unit_of(row.scale.format);
}

int highest_product(const MatrixInstruction& row) {
  const int unscaled = formats::max_exponent(row.a) + formats::max_exponent(row.b);
  return row.scale.count == 0 ? unscaled : unscaled + 2 * formats::max_exponent(row.scale.format);
}

Format kept_format(const Step& step) {
  Format f = step.result;
  if (step.spec.result_fraction_bits != 0) f.fraction_bits = step.spec.result_fraction_bits;
  return f;
}

int source_unit(const MatrixInstruction& row, Source source) {
  if (source == Source::c) return unit_of(row.c);
  const int index = static_cast<int>(source);
  if (index < 0) return never;
  return std::max(sum_unit(row, index), unit_of(kept_format(step_of(row, index))));
}

int sum_unit(const MatrixInstruction& row, int index) {
  const Step& step = step_of(row, index);
  int addend = source_unit(row, step.addend);
  if (step.operation == Operation::convert) return addend;
  if (step.operation == Operation::add) return std::min(addend, source_unit(row, step.other));
  if (step.spec.summation == Summation::fused && addend != never) {
    // A nonzero addend sets a grid no finer than this, and is cut to it.
    const Format f = source_format(row, step.addend, step.result);
    addend = std::max(addend, formats::min_exponent(f) - step.spec.kept_fraction_bits);
  }
  return std::min(addend, product_unit(row));
}

bool never_cuts(const MatrixInstruction& row, int index, int kept) {
  const Step& step = step_of(row, index);
  const int products = highest_product(row);
  const int addend_unit = source_unit(row, step.addend);
  const bool zero_addend = addend_unit == never;
  const Format f = source_format(row, step.addend, step.result);
  const int largest = zero_addend ? products : std::max(products, formats::max_exponent(f));
  if (largest - kept > product_unit(row)) return false;
  return zero_addend || (kept >= f.fraction_bits && products - kept <= addend_unit);
}

bool never_underflows(const MatrixInstruction& row, int index) {
  return sum_unit(row, index) >= formats::min_exponent(kept_format(step_of(row, index)));
}

bool zero_is_positive(const MatrixInstruction& row, Source source) {
  if (static_cast<int>(source) < 0) return source == Source::positive_zero;
  const int index = static_cast<int>(source);
  const Step& step = step_of(row, index);
  if (step.operation == Operation::convert || !never_underflows(row, index)) return false;
  if (step.spec.result == Rounding::downward) return false;  // exact cancellation gives -0
  return zero_is_positive(row, step.addend) ||
         (step.operation == Operation::add && zero_is_positive(row, step.other));
}

bool gives_subnormals(const MatrixInstruction& row, Source source) {
  if (source == Source::c) return true;
  const int index = static_cast<int>(source);
  if (index < 0) return false;
  return step_of(row, index).spec.output == emulator::Subnormals::keep &&
         !never_underflows(row, index);
}

}  // namespace guardbit::tests
