#pragma once

#include "emulator/gemm/plan.hpp"
#include "emulator/gemm/problem.hpp"
#include "tests/emulator/inputs/input_codes.hpp"

/// Products whose result is alpha A B + beta C + bias, drawn from a seeded stream: any unit family,
/// any key of a plan, operands of all signs or none, small, large, and with rows of zeros.
namespace guardbit::tests {

struct DrawnProduct {
  emulator::GemmPlan plan;
  emulator::GemmProblem problem;
};

DrawnProduct drawn_product(Random& random);

}  // namespace guardbit::tests
