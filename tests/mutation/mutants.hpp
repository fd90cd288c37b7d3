#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "emulator/model/instruction.hpp"
#include "tests/mutation/arithmetic.hpp"

namespace guardbit::tests {

/// The field that a mutant changes. Everything but `spec` is structure of the step or of the row.
enum class Place {
  spec,
  operation,
  residues,
  modulus,
  addend,
  other,
  widened,
  result_format,
  swapped_operands,    ///< of an addition
  swapped_selections,  ///< of two accumulations
  last_step,           ///< left out
  operand_format,
  scale_format,
  scale_count,
  sparsity
};

/// A row with one field changed by one step.
struct Mutant {
  MatrixInstruction row;
  Place place = Place::spec;
  int step = 0;
  std::string field;  ///< "kept_fraction_bits", "step 1 addend"
  std::string from, to;
};

/// A field of AccumulatorSpec: the one table that a new field is added to.
struct SpecField {
  std::string_view name;
  long (*get)(const emulator::AccumulatorSpec&);
  void (*set)(emulator::AccumulatorSpec&, long);
  std::string (*text)(long);
  /// Values one step away.
  std::vector<long> (*neighbours)(long value, const emulator::Step&);
  /// Does the step's operation and summation read it?
  bool (*read)(const MatrixInstruction&, const emulator::Step&);
};
const std::vector<SpecField>& spec_fields();
const SpecField& spec_field(std::string_view name);

/// Every change by one step of every field that the row's steps read, of the steps' structure, of
/// the operands' formats and of the scales.
std::vector<Mutant> mutants_of(const MatrixInstruction& row);

/// The changes of a row's sparsity.
std::vector<Mutant> sparsity_mutants_of(const MatrixInstruction& row);

std::string_view summation_name(emulator::Summation summation);

}  // namespace guardbit::tests
