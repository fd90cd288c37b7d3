#include "experiments/accuracy/unit_errors.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <string>

#include "emulator/catalogue/instruction_catalogue.hpp"
#include "emulator/gemm/gemm_operands.hpp"
#include "formats/support/error.hpp"

// A fused block cuts each of its L products and the addend to multiples of 2^(E - F), losing less
// than 2^(E - F) each, and E is the exponent of one of them: 2^E is at most the largest magnitude
// among the terms, where factors below the smallest normal number are counted as that number,
// because the unit aligns them by it. So a block's sum is off by less than
// (L + 1) 2^-F (|p_1| + ... + |p_L| + |c|), and its conversion by u of the sum: a factor of at most
// 1 + (L + 1) 2^-F + u for everything that went in.
namespace guardbit::experiments {

namespace {

using emulator::AccumulatorSpec;
using emulator::MatrixInstruction;
using emulator::Operation;
using emulator::Step;
using emulator::Subnormals;
using emulator::Summation;

/// One accumulation of `products` products.
Roundings accumulation(const Step& step, const MatrixInstruction& instruction, int products) {
  const AccumulatorSpec& s = step.spec;
  Roundings x;
  if (s.summation == Summation::integer) return x;
  const int precision =
      s.result_fraction_bits != 0 ? s.result_fraction_bits + 1 : formats::precision(step.result);
  double u = unit_roundoff(precision, s.result);
  // A wide number whose lower part is cut off.
  if (precision > formats::precision(step.result))
    u += unit_roundoff(step.result, formats::Rounding::toward_zero);
  const int length = s.terms == 0 ? products : std::min(s.terms, products);
  const int blocks = (products + length - 1) / length;
  const auto terms = static_cast<double>(length + 1);
  const auto cut = [](int kept_bits) { return std::ldexp(1.0, -kept_bits); };
  x.mean_zero = is_nearest(s.result) && precision <= formats::precision(step.result);
  // Half a subnormal spacing or all of it, or everything below the normal numbers.
  const bool flushes = s.output != Subnormals::keep || s.input != Subnormals::keep;
  double lost = (flushes ? 1 : u) * smallest_normal(step.result);
  switch (s.summation) {
    case Summation::fused:
    case Summation::two_stage: {
      const double grid = cut(s.kept_fraction_bits);
      double error = terms * grid + u, square = terms * grid * grid + u * u;
      if (s.summation == Summation::two_stage) {
        // The sum and the addend are floored once more each, the total twice
        // (emulator/model/dot.hpp).
        const double floors =
            2 * grid + 2 * cut(s.sum_kept_fraction_bits) +

            (s.total_kept_fraction_bits == 0 ? 0 : 2 * cut(s.total_kept_fraction_bits)) +
            (s.addend_cutoff == 0 ? 0 : cut(s.addend_cutoff - 1));
        error += floors, square += floors * floors;
      }
      x.add(error, square, blocks);
      x.mean_zero = false;
      const int least = std::max(s.min_exponent, formats::min_exponent(instruction.c));
      lost += terms * std::ldexp(grid, least);
      break;
    }
    case Summation::two_grids: {
      // A term loses less than a unit, and one more if it is inverted.
      const double grid = cut(std::min(s.kept_fraction_bits, s.addend_kept_fraction_bits));
      const double units = 2 * terms * grid;
      x.add(units + u, units * units + u * u, blocks);
      x.mean_zero = false;
      const int least = std::max(s.min_exponent, formats::min_exponent(instruction.c));
      lost += 2 * terms * std::ldexp(grid, least);
      break;
    }
    case Summation::exact: x.add(u, blocks); break;
    case Summation::pairwise: {
      const int depth = 2 + static_cast<int>(std::bit_width(static_cast<unsigned>(length - 1)));
      x.add(u, static_cast<double>(blocks) * depth);
      lost *= 2 * length;
      break;
    }
    case Summation::fma_chain:
      x.add(u, products);
      lost *= products;
      break;
    case Summation::integer: break;
  }
  x.absolute = lost * blocks;
  return x;
}

/// One execution of an instruction.
Roundings execution(const MatrixInstruction& instruction) {
  Roundings x;
  const int stored = emulator::stored_k(instruction, instruction.shape.k);
  for (const Step& step : instruction.steps) {
    x.pass(step.result);
    if (step.operation != Operation::dot) {
      const double u = unit_roundoff(step.result, step.spec.result);
      x.add(u);
      x.mean_zero = x.mean_zero && is_nearest(step.spec.result);
      x.absolute +=
          smallest_normal(step.result) * ((step.spec.output == Subnormals::keep ? 0 : 1) + u);
      continue;
    }
    int products = 0;
    for (int k = 0; k < stored; ++k) products += step.selection.contains(k) ? 1 : 0;
    if (products != 0) x.add(accumulation(step, instruction, products), 1);
  }
  return x;
}

/// A CUDA core's multiply-add.
UnitErrors scalar_errors(const emulator::GemmPlan& plan, const emulator::GemmProblem& problem,
                         std::string_view where) {
  UnitErrors x;
  x.c = x.sum = emulator::scalar_format(plan.unit, where);
  const auto products = emulator::product_format(plan.unit);
  if (formats::is_integer(x.sum)) {
    if (!formats::is_integer(problem.a.format) || !formats::is_integer(problem.b.format))
      throw formats::Error(std::string(where), "no bound: multiply-adds of integers wrap");
    x.a = x.b = x.least_a = x.least_b = problem.a.format;
    x.execution.pass(x.sum);
    return x;
  }
  x.a = x.b = x.least_a = x.least_b = products.value_or(x.sum);
  if (products) x.product.multiply_in(*products);
  x.execution.add_up_in(x.sum);
  if (!products) x.execution.absolute = underflow(x.sum);
  return x;
}

}  // namespace

UnitErrors unit_errors(const emulator::GemmPlan& plan, const emulator::GemmProblem& problem,
                       std::string_view where) {
  if (plan.unit.arch == "simt") return scalar_errors(plan, problem, where);
  const MatrixInstruction instruction =
      emulator::require_instruction(plan.unit.arch, plan.unit.instruction, where);
  UnitErrors x;
  x.k = instruction.shape.k;
  x.a = x.least_a = instruction.a, x.b = x.least_b = instruction.b;
  x.c = instruction.c, x.sum = instruction.d;
  for (const Step& step : instruction.steps) {
    if (step.widened) x.least_a = x.least_b = *step.widened;
    x.flushes = x.flushes || step.spec.input != Subnormals::keep;
  }
  x.execution = execution(instruction);
  return x;
}

}  // namespace guardbit::experiments
