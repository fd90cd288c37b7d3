#pragma once

#include <cstddef>
#include <cstdint>
#include <iosfwd>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "tools/plot/drawing.hpp"
#include "tools/products/plans/plan_runs.hpp"

// Which plan a call gets over a plane of sizes: where the library cuts K, and how often.
namespace guardbit::tools {

/// One of the plane's two sizes: m, n or k.
struct VariedSize {
  char name = 'm';
  SizeRange range;
};

/// A plan of the plane.
struct MappedPlan {
  /// empty: none is known
  std::string plan;
  /// sizes that get it
  std::size_t calls = 0;
  /// the most partial sums that an element of D is made of; 0 where no plan is known
  std::int64_t most_parts = 0;
};

struct PlanMap {
  /// with the first sizes
  emulator::atlas::StridedCall call;
  std::string layout;
  VariedSize down, across;
  /// the most frequent first
  std::vector<MappedPlan> plans;
  /// of each size, row by row: its place in `plans`, its partial sums, whether a rule tells the
  /// plan
  std::vector<std::size_t> cells;
  std::vector<std::int64_t> parts;
  std::size_t rules = 0;

  bool are_known() const;
};

/// The plans of a call by layout, two of whose sizes go through ranges. formats::Error as
/// plans_of_sizes, and for more than 250,000 pairs of sizes.
PlanMap plan_map(const AskedCall& asked, const VariedSize& down, const VariedSize& across);

nlohmann::ordered_json to_json(const PlanMap& map);
void print(std::ostream& out, const PlanMap& map);

/// How many partial sums an element of D is made of, darker where they are more.
Drawing plan_map_picture(const PlanMap& map, double width, double height);

}  // namespace guardbit::tools
