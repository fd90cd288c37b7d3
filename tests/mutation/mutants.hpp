#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "emulator/catalogue/accumulator_fields.hpp"
#include "emulator/model/instruction.hpp"
#include "tests/mutation/arithmetic.hpp"

namespace guardbit::tests {

/// The field that a mutant changes. Everything but `spec` is structure of the step or of the
/// instruction.
enum class Place {
  spec,
  operation,
  residues,
  modulus,
  addend,
  other,
  widened,
  result_format,
  /// of an addition
  swapped_operands,
  /// of two accumulations
  swapped_selections,
  /// left out
  last_step,
  operand_format,
  scale_format,
  scale_count,
  sparsity
};

/// An instruction with one field changed by one step.
struct Mutant {
  MatrixInstruction instruction;
  Place place = Place::spec;
  int step = 0;
  /// "kept_fraction_bits", "step 1 addend"
  std::string field;
  std::string from, to;
};

using SpecField = emulator::AccumulatorField;

/// The fields of AccumulatorSpec in the order of their declaration.
const std::vector<SpecField>& spec_fields();

/// Every change by one step of every field that the instruction's steps read, of the steps'
/// structure, of the operands' formats and of the scales.
std::vector<Mutant> mutants_of(const MatrixInstruction& instruction);

/// The changes of an instruction's sparsity.
std::vector<Mutant> sparsity_mutants_of(const MatrixInstruction& instruction);

}  // namespace guardbit::tests
