#pragma once

#include <cstdint>
#include <iosfwd>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "tools/products/plans/call_plan.hpp"

// Where the plan of a call changes as one of its sizes grows: where a batch of one more row changes
// bits.
namespace guardbit::tools {

/// Sizes from the first on, up to the last.
struct SizeRange {
  std::int64_t first = 1, last = 1, step = 1;
  bool is_one() const { return first == last; }
  std::size_t count() const { return static_cast<std::size_t>((last - first) / step + 1); }
};

/// "64", "1:512" or "64:4096:64". formats::Error that begins with `where` for anything else, or for
/// more than a million sizes.
SizeRange parse_size_range(std::string_view text, std::string_view where);

/// Neighbouring sizes (of those asked for) that get the same plan.
struct PlanRun {
  std::int64_t first = 1, last = 1;
  /// as text; empty: none is known
  std::string plan;
  /// the least of those of the sizes
  emulator::atlas::Known known = emulator::atlas::Known::unknown;
  int agree = 0;
};

struct PlanRuns {
  /// with the first size
  emulator::atlas::StridedCall call;
  /// m, n or k
  char varied = 'm';
  std::int64_t step = 1;
  std::vector<PlanRun> runs;

  bool are_known() const;
  /// different ones
  std::size_t plans() const;
};

std::int64_t& size_of(emulator::atlas::StridedCall& call, char varied);

/// Ranges go with a layout: formats::Error for strides or a book.
void require_by_layout(const AskedCall& asked);

/// The plans of a call by layout, one of whose sizes (m, n or k) goes through a range.
/// formats::Error as plan_of_call, and for strides or a book.
PlanRuns plans_of_sizes(const AskedCall& asked, char varied, const SizeRange& range);

nlohmann::ordered_json to_json(const PlanRuns& runs);
void print(std::ostream& out, const PlanRuns& runs);

}  // namespace guardbit::tools
