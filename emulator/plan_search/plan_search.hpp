#pragma once

// The plan search: finds the plans that give a recorded result bit for bit. candidates.hpp lists
// plans stage by stage, samples.hpp holds the outputs they are tried on, near_miss.hpp judges those
// that fail in few places. Input: a capture with its operands and its D. Output: plans, likely ones
// first. diagnosis.hpp takes over where no plan gives all of D.

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "emulator/capture/product_capture.hpp"
#include "emulator/plan_search/plan_result.hpp"

namespace guardbit::emulator {

struct SearchOptions {
  /// 0: all that the machine has
  int threads = 0;
  /// the search stops at that many exact plans
  std::size_t most_plans = 16;
  /// only plans whose K is one chain
  bool simple = false;
  /// a split of K that the result itself shows (faults/rounded_parts.hpp): it is tried first
  std::optional<Partition> split = {};
  /// asked now and then; the search ends when it says true
  std::function<bool()> interrupted;
  /// told now and then of the stage that is tried and of SearchResult::tried
  std::function<void(std::string_view stage, std::int64_t tried)> progress;
};

struct SearchResult {
  /// Plans without a mismatch, likely ones first; if there are none, the plans with the fewest.
  std::vector<PlanResult> plans;
  /// number of plans that were executed on a sample
  std::int64_t tried = 0;
  /// stages of which every plan was tried, and none gives D: "one chain over K by every unit"
  std::vector<std::string> ruled_out;
  /// `interrupted` ended the search
  bool stopped = false;
  bool explained() const { return !plans.empty() && plans.front().mismatches == 0; }
};

/// Searches the plans of candidates_for(capture). Each is tried on a few outputs first; one that
/// passes is tried on all. formats::Error if the capture's machine is unknown.
SearchResult search_plans(const GemmCapture& capture, const SearchOptions& options);

/// A sentence for the user: the operands for which these plans would give different results.
/// `plans` must not be empty.
std::string distinguishing_operands(const std::vector<PlanResult>& plans);

/// Indices into `capture.d` of the outputs that differ from `computed`, which has D's shape.
std::vector<std::int64_t> mismatches(const GemmCapture& capture, const CodeMatrix& computed);

}  // namespace guardbit::emulator
