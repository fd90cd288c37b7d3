#pragma once

#include "emulator/capture/product_capture.hpp"
#include "emulator/gemm/plan.hpp"
#include "emulator/plan_search/plan_search.hpp"
#include "tests/emulator/inputs/input_codes.hpp"

/// Operands and plans drawn from a seeded stream.
namespace guardbit::tests {

/// Finite numbers with exponents from low to high.
emulator::CodeMatrix random_matrix(const Format& f, std::int64_t batch, std::int64_t rows,
                                   std::int64_t columns, Random& random, int low = -3,
                                   int high = 3);

/// Any plan that can be written down.
emulator::GemmPlan random_plan(Random& random);

/// What a plan makes of a problem, as a recording of a machine of type sm_90 would hold it.
emulator::GemmCapture recording_of(const emulator::GemmPlan& plan,
                                   const emulator::GemmProblem& problem);

/// The first plans that give a recording.
inline emulator::SearchResult search(const emulator::GemmCapture& capture) {
  emulator::SearchOptions options;
  options.most_plans = 4;
  return search_plans(capture, options);
}

}  // namespace guardbit::tests
