#pragma once

#include <functional>
#include <string>
#include <vector>

#include "tools/benchmarks/bench_options.hpp"
#include "tools/benchmarks/benchmark_results.hpp"

namespace guardbit::tools {

/// One benchmark before it is measured.
struct Planned {
  Result result;
  /// name of another benchmark of the group; empty: it has none
  std::string yardstick;
  /// the same
  std::string native_yardstick;
  /// multiply-adds in registers of the same instruction set
  std::string peak;
  /// Makes operands and returns what is to be timed; may make the work smaller.
  std::function<std::function<void()>(Result&)> prepare;
};

/// Benchmarks that are measured in turns, with their yardsticks.
using Group = std::vector<Planned>;

/// Each adds its groups for the options. formats::Error for engines and instructions that are not
/// there.
void plan_products(const BenchOptions& options, std::vector<Group>& groups);
void plan_curves(const BenchOptions& options, std::vector<Group>& groups);
void plan_conversions(const BenchOptions& options, std::vector<Group>& groups);
void plan_replays(const BenchOptions& options, std::vector<Group>& groups);
void plan_memory(const BenchOptions& options, std::vector<Group>& groups);
void plan_traces(const BenchOptions& options, std::vector<Group>& groups);
void plan_functions(const BenchOptions& options, std::vector<Group>& groups);
void plan_operators(const BenchOptions& options, std::vector<Group>& groups);

/// Every group that the options ask for: whole groups are cut down to what --only names and the
/// yardsticks of that.
std::vector<Group> plan(const BenchOptions& options);

/// Measures a group.
std::vector<Result> measure(const Group& group, const Schedule& schedule,
                            const Interruption& interruption);

}  // namespace guardbit::tools
