#pragma once

#include <iosfwd>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "emulator/gemm/plan.hpp"
#include "emulator/gemm/problem.hpp"
#include "experiments/accuracy/error_analysis.hpp"

namespace guardbit::tools {

/// How far a result is from its reference.
struct ErrorReport {
  std::string file, reference;  ///< the reference's file, or "exact"
  emulator::CodeMatrix d;
  std::vector<experiments::Deviation> deviations;
  std::vector<double> sums;  ///< |A||B| of each element, where A and B are known
  experiments::ErrorAnalysis analysis;
  std::optional<emulator::GemmPlan> plan;
  experiments::ErrorBound bound;  ///< with a plan
  double seconds = 0;
};

void print(std::ostream& out, const ErrorReport& report);
nlohmann::ordered_json to_json(const ErrorReport& report);

}  // namespace guardbit::tools
