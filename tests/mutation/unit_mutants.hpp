#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "emulator/functions/unit/special_function_forms.hpp"

// The special function unit with one fact changed, and the arguments whose results tell.
namespace guardbit::tests {

/// A result of hardware: of all arguments of these forms the model has the hardware's digest.
struct UnitVector {
  std::string form;
  std::uint32_t argument = 0, result = 0;
};

/// Lines of tests/mutation/unit_vectors.txt: form, argument, result, the codes in hex.
std::vector<UnitVector> read_unit_vectors();

/// A coefficient of a segment, one step of its grid more or less.
struct CoefficientMutant {
  const emulator::mufu::UnitFunction* function = nullptr;
  int binade = 0;
  std::uint32_t segment = 0;
  /// of Segment
  std::int32_t emulator::mufu::Segment::*coefficient = nullptr;
  int change = 0;
};
std::string text_of(const CoefficientMutant& mutant);

/// Forms by which each function of the unit is asked: those with least around it.
const std::vector<const emulator::mufu::SpecialFunctionForm*>& asked_forms();

/// Every mutant of a form's coefficients.
std::vector<CoefficientMutant> coefficient_mutants(const emulator::mufu::SpecialFunctionForm& form);

/// Whether the form's result of that argument is another one by the mutant. The argument must be
/// one that reads the mutant's segment.
bool notices(const emulator::mufu::SpecialFunctionForm& form, const CoefficientMutant& mutant,
             std::uint32_t argument);

/// The form's result by another unit.
std::uint32_t result_by(const emulator::mufu::SpecialFunctionForm& form,
                        const emulator::mufu::UnitFunction& function, std::uint32_t argument);

/// Where an argument of the form is interpolated; false where it is a special one.
struct ReadSegment {
  bool is_read = false;
  int binade = 0;
  std::uint32_t segment = 0;
};
ReadSegment segment_read(const emulator::mufu::SpecialFunctionForm& form, std::uint32_t argument);

/// The unit with another fact, each fact in turn: the squarer's column, biases, grids, exponents,
/// specials.
struct FactMutant {
  std::string fact;
  emulator::mufu::UnitFunction function;
};
std::vector<FactMutant> fact_mutants(const emulator::mufu::UnitFunction& function);

/// Vectors that notice every mutant that any argument was found to notice.
std::vector<UnitVector> search_unit_vectors();

}  // namespace guardbit::tests
