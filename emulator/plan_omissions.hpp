#pragma once

#include <string>
#include <vector>

#include "emulator/gemm_capture.hpp"
#include "emulator/gemm_plan.hpp"

// What a wrong kernel may have left out.
namespace guardbit::emulator {

/// What was left out of these outputs of a plan: computed without it they are `recorded`. C, the
/// bias, a factor, the sum of one slice, or elements of K; empty where nothing is found.
std::string left_out_of(const GemmProblem& problem, const CodeMatrix& recorded,
                        const GemmPlan& plan);

/// Variants of what was asked that a wrong kernel may have computed instead, each with its name:
/// the last elements of K left out, C or the bias left out, a result stored transposed.
struct Variant {
  std::string name;
  GemmCapture capture;
};
std::vector<Variant> wrong_variants(const GemmCapture& capture);

}  // namespace guardbit::emulator
