#pragma once

#include <cstdint>
#include <iosfwd>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "tools/benchmarks/timing.hpp"

namespace guardbit::tools {

/// One line of a run: what was measured, and beside what.
struct Result {
  /// unique: kind/subject/size/data/engine/threads
  std::string name;
  /// gemm, convert, peer (of a conversion), replay, memory, trace, function, operator, curve
  std::string kind;
  std::string subject, arch, instruction, engine, data;
  /// of a product; executions and shape of a replay
  std::int64_t m = 0, n = 0, k = 0;
  int threads = 1;
  /// of a curve: m, n, k, size, threads, binades, scales, specials, zeros
  std::string axis;
  /// the place on it
  double x = 0;

  /// of one run, in `unit` seconds
  double work = 0;
  std::string unit;
  double seconds = 0, median_seconds = 0;
  /// work / seconds, the best of the repetitions
  double rate = 0;
  std::string yardstick;
  /// 0: there is none
  double yardstick_rate = 0, ratio = 0;
  /// Eigen compiled with -march=native
  std::string native_yardstick;
  double native_yardstick_rate = 0, native_ratio = 0;
  /// to the multiply-adds that registers take in the same time
  double peak_ratio = 0;
  /// of conversions: to the bytes that memcpy moves one way
  double copied_ratio = 0;
  /// 0: none is set
  double goal = 0, moonshot = 0;

  /// The yardstick that the goal is set for, and the ratio to it: the native one where it ran.
  const std::string& judge() const { return native_ratio > 0 ? native_yardstick : yardstick; }
  double judged_ratio() const { return native_ratio > 0 ? native_ratio : ratio; }
};

struct MachineFacts {
  std::string cpu, compiler, system;
  /// the widest instruction set that it was compiled for
  std::string eigen;
  /// "used", or why Eigen compiled with -march=native was not
  std::string native_eigen;
  int processors = 0;
  std::int64_t level1_bytes = 0, level2_bytes = 0, level3_bytes = 0;
};

MachineFacts this_machine();

nlohmann::ordered_json document(const std::vector<Result>& results, const Schedule& schedule,
                                bool complete);

void print_table(const std::vector<Result>& results, std::ostream& out);

}  // namespace guardbit::tools
