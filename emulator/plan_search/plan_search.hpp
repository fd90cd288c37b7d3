#pragma once

#include <functional>
#include <string>
#include <vector>

#include "emulator/capture/product_capture.hpp"
#include "emulator/gemm/plan.hpp"

namespace guardbit::emulator {

/// A plan and how many of the outputs it does not give.
struct PlanResult {
  GemmPlan plan;
  std::int64_t mismatches = 0;
};

struct SearchOptions {
  int threads = 0;
  std::size_t most_plans = 16;        ///< exact plans to look for
  bool simple = false;                ///< only plans that do not divide K
  std::function<bool()> interrupted;  ///< asked now and then
};

struct SearchResult {
  std::vector<PlanResult> plans;  ///< exact ones in order of likelihood, or the nearest
  std::int64_t tried = 0;         ///< plans
  bool explained() const { return !plans.empty() && plans.front().mismatches == 0; }
};

/// Plans that give the capture's outputs: tried on a few outputs first, the likely ones before the
/// others, and what passes on all of them.
SearchResult search_plans(const GemmCapture& capture, const SearchOptions& options);

/// What operands would tell these plans apart, in a sentence.
std::string telling_operands(const std::vector<PlanResult>& plans);

/// Outputs of the plan that differ from the capture's, by index into `capture.d`.
std::vector<std::int64_t> mismatches(const GemmCapture& capture, const CodeMatrix& computed);

}  // namespace guardbit::emulator
