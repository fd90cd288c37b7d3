#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "emulator/gemm/plan.hpp"
#include "emulator/gemm/problem.hpp"
#include "emulator/model/instruction.hpp"
#include "experiments/harness/random_numbers.hpp"
#include "experiments/harness/run.hpp"

// Products of one pair of matrices on different units, and in different orders of K.
namespace guardbit::experiments {

/// A unit of some machine, its operands' format, and how many products it adds without an order
/// (accumulator.hpp: `terms`).
struct UnitUnderTest {
  std::string name;
  formats::Format inputs;
  emulator::GemmPlan plan;
  int block = 1;
  /// integers: no order at all changes a bit
  bool exact = false;
  /// one rounding per product, so that zeros change nothing
  bool multiply_adds = false;
  /// every rounding on the way goes toward zero
  bool truncates = false;
};

/// How many products the instruction's first step adds together.
int block_of(const emulator::MatrixInstruction& instruction);

/// The unit of one instruction, whose only step adds products.
UnitUnderTest unit_of(const emulator::MatrixInstruction& instruction, std::string name);
/// Six units that add in six ways, from single multiply-adds to integers.
std::vector<UnitUnderTest> units_under_test();
/// What --set unit= takes, in that order.
inline constexpr std::string_view unit_names =
    "simt_fp32,sm_70_fp16,sm_80_fp16,sm_90_fp16,sm_90_e4m3,sm_80_int8";

/// A of m rows, B of n columns; integers are normal numbers times 32.
emulator::GemmProblem random_problem(const Run& run, const formats::Format& format, std::int64_t m,
                                     std::int64_t n, std::int64_t k, Distribution numbers);

/// The same sums with K in another order: order[i] is the k that comes at i, -1 a zero product.
emulator::GemmProblem reordered(const emulator::GemmProblem& problem,
                                std::span<const std::int64_t> order);

/// Outputs whose bits differ.
double changed_outputs(const emulator::CodeMatrix& x, const emulator::CodeMatrix& y);

/// What the analysis of error_bounds.hpp allows each output, in the order of the outputs.
std::vector<double> allowed_errors(Run& run, const emulator::GemmPlan& plan,
                                   const emulator::GemmProblem& problem);

}  // namespace guardbit::experiments
