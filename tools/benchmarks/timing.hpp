#pragma once

#include <functional>
#include <string>
#include <vector>

#include "tools/console/interruption.hpp"

namespace guardbit::tools {

/// Something that can be timed.
struct Subject {
  std::string name;
  std::function<void()> run;
};

struct Schedule {
  int repetitions = 3;
  /// least time of one repetition
  double seconds = 0.05;
};

/// Wall-clock seconds of one run of a subject, the mean of each repetition.
struct Timing {
  double best = 0, median = 0;
};

/// Times every subject by Google Benchmark, repetitions of all of them in random turns, so that
/// what else the machine does meets them alike. Throws Interrupted.
std::vector<Timing> time_in_turns(const std::vector<Subject>& subjects, const Schedule& schedule,
                                  const Interruption& interruption);

}  // namespace guardbit::tools
