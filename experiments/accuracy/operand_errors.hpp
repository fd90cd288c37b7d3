#pragma once

#include <string_view>
#include <vector>

#include "emulator/gemm/plan.hpp"
#include "emulator/gemm/problem.hpp"
#include "experiments/accuracy/unit_errors.hpp"

// Errors of what becomes of A and B before a unit multiplies them.
namespace guardbit::experiments {

/// What conversions, factors and pieces do to the products.
struct OperandErrors {
  Roundings error;
  /// what the pieces' products add up to, in |A| |B|
  double magnitude = 1;
  /// The second piece is at most so large a part of its number.
  double piece = 0;
  /// Factors below these count as these: there conversions and pieces have no relative error.
  double least_a = 0, least_b = 0;
  /// Are all elements numbers of the unit's format?
  bool fit = true;
};

OperandErrors operand_errors(const emulator::GemmPlan& plan, const emulator::GemmProblem& problem,
                             const UnitErrors& unit);

/// The pieces that a plan's operands are cut into: those of CUDA cores' multiply-adds are whole.
int pieces_of(const emulator::GemmPlan& plan);

/// Products of pieces of each total rank below `ranks`.
std::vector<int> products_of_ranks(const emulator::InputConversion& input);

/// Roundings on the way of one product of integer slices: its own, and additions.
double slice_additions(const emulator::InputConversion& input);
/// What sums of integer slices lose that the slices leave out, and that additions of slices with
/// the relative error `sum` lose. formats::Error, beginning with `where`, where their chains may
/// wrap.
double slices_error(const emulator::GemmPlan& plan, const emulator::GemmProblem& problem,
                    const UnitErrors& unit, double sum, std::string_view where);

/// The largest magnitude of a matrix's finite elements; the smallest but zero.
double largest_magnitude(const emulator::CodeMatrix& matrix);
double least_magnitude(const emulator::CodeMatrix& matrix);

}  // namespace guardbit::experiments
