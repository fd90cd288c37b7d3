#pragma once

// What `guardbit explain` found about a result, and how it says so. Input: an Explanation, which
// explain_product fills. Output: text, or JSON.

#include <cstdint>
#include <iosfwd>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "emulator/faults/find_faults.hpp"
#include "emulator/plan_search/diagnosis.hpp"
#include "emulator/plan_search/order_control.hpp"
#include "emulator/plan_search/plan_search.hpp"

namespace guardbit::tools {

/// What was found about one result.
struct Explanation {
  std::string file;
  std::int64_t outputs = 0;
  emulator::Verdict verdict = emulator::Verdict::wrong;
  /// outputs that no rounding explains, of those that were looked at
  std::int64_t wrong = 0, looked_at = 0;
  /// of those, the largest distance from the exact result, as a part of the sum of the terms'
  /// magnitudes
  double largest_error = 0;
  /// of a result that no plan gives as it was asked for
  std::vector<emulator::Fault> findings;
  /// what was not looked at
  std::vector<std::string> limits;
  emulator::SearchResult search;
  /// of the first plan, where it is exact
  std::optional<emulator::OrderControl> control;
  /// The plans give a mended problem, or a part of this one.
  std::string mended_plan;
  emulator::Diagnosis diagnosis;
  /// the limit, in seconds; 0: none
  double time_limit = 0;
  double seconds = 0;
};

nlohmann::ordered_json to_json(const Explanation& explanation);
void print(std::ostream& out, const Explanation& explanation);
/// Fields in which the first plans of two results differ.
void print_changes(const Explanation& first, const Explanation& second);

}  // namespace guardbit::tools
