#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "emulator/capture/product_capture.hpp"
#include "emulator/gemm/plan.hpp"

namespace guardbit::emulator {

/// Outputs that differ and lie together: rows [row, row + rows) and columns of one batch entry.
struct FailedArea {
  std::int64_t batch = 0, row = 0, rows = 0, column = 0, columns = 0;
  std::int64_t mismatches = 0;
  std::uint64_t largest_distance = 0;  ///< in codes of D; NaNs left out
  std::string finding;                 ///< what it looks like
};

/// Where a result differs from a plan, and what that points to.
struct Diagnosis {
  std::int64_t mismatches = 0, outputs = 0;
  std::int64_t rows = 0, columns = 0;  ///< that hold a mismatch
  std::uint64_t median_distance = 0, largest_distance = 0;
  std::int64_t nans = 0;          ///< NaN in the result only
  std::vector<FailedArea> areas;  ///< the largest first, at most a few
  std::int64_t area_count = 0;
  std::vector<std::string> findings;  ///< plain sentences
  bool looks_like_bug = false;
};

/// Compares the capture with what the plan gives. `interrupted` is asked now and then; what is not
/// found out by then is left out.
Diagnosis diagnose(const GemmCapture& capture, const GemmPlan& plan, int threads,
                   const std::function<bool()>& interrupted = {});

}  // namespace guardbit::emulator
