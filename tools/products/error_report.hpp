#pragma once

#include <iosfwd>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "emulator/gemm/plan.hpp"
#include "emulator/gemm/problem.hpp"
#include "experiments/accuracy/error_norms.hpp"

// The report of `compare`: how far a result is from its reference.
namespace guardbit::tools {

/// How far a result is from its reference.
struct ErrorReport {
  /// the reference's file, or "exact"
  std::string file, reference;
  emulator::CodeMatrix d;
  experiments::Deviations deviations;
  /// |A||B| of each element, where A and B are known
  std::vector<double> sums;
  experiments::ErrorAnalysis analysis;
  std::optional<emulator::GemmPlan> plan;
  /// with a plan
  experiments::ErrorBound bound;
  /// Some factors count as more than they are in the sums that the bound is relative to.
  bool has_small_factors = false;
  double seconds = 0;
};

/// The batch entry whose map is drawn: the worst element's.
std::int64_t mapped_batch(const ErrorReport& report);
/// The map of that entry in at most so many tiles.
experiments::HeatMap error_map(const ErrorReport& report, std::int64_t most_rows,
                               std::int64_t most_columns);

void print(std::ostream& out, const ErrorReport& report, bool with_map = true);
nlohmann::ordered_json to_json(const ErrorReport& report);

}  // namespace guardbit::tools
