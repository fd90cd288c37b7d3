#pragma once

// Where a result differs from a plan. Input: a capture and the plan that comes nearest to it.
// Output: areas of mismatches, each with a finding in plain English. It runs after the search, on
// results that are right up to rounding; faults/ names what is wrong with others.

#include <cstdint>
#include <string>
#include <vector>

#include "emulator/capture/product_capture.hpp"
#include "emulator/gemm/plan.hpp"

namespace guardbit::emulator {

/// A rectangle of D around neighbouring mismatches: rows [row, row + rows) and columns [column,
/// column + columns) of one batch entry.
struct FailedArea {
  std::int64_t batch = 0, row = 0, rows = 0, column = 0, columns = 0;
  std::int64_t mismatches = 0;
  /// in codes of D, without NaNs
  std::uint64_t largest_distance = 0;
  /// what it looks like
  std::string finding;
};

struct Diagnosis {
  std::int64_t mismatches = 0, outputs = 0;
  /// with a mismatch
  std::int64_t rows = 0, columns = 0;
  /// in codes of D
  std::uint64_t median_distance = 0, largest_distance = 0;
  /// outputs that are NaN in the result but not in the plan's
  std::int64_t nans = 0;
  /// at most six, those with most mismatches first
  std::vector<FailedArea> areas;
  std::int64_t area_count = 0;
  /// plain sentences
  std::vector<std::string> findings;
  /// the rest of D is the plan's
  bool looks_like_bug = false;
};

/// Executes the plan and compares.
Diagnosis diagnose(const GemmCapture& capture, const GemmPlan& plan, int threads);

}  // namespace guardbit::emulator
