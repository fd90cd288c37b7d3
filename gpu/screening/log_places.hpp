#pragma once

#include <set>
#include <utility>

#include "gpu/screening/screen_log.hpp"

// Where the executions that a log counts were wrong.
namespace guardbit::gpu {

/// Multiprocessors and processing blocks with a wrong execution.
inline std::set<std::pair<int, int>> wrong_places(const ScreenLog& log) {
  std::set<std::pair<int, int>> places;
  for (int p = 0; p < most_processors; ++p)
    for (int b = 0; b < processor_blocks; ++b)
      if (log.failures[p][b] != 0) places.insert({p, b});
  return places;
}

/// Was every execution wrong, on more than one multiprocessor?
inline bool is_wrong_everywhere(const ScreenLog& log) {
  int processors = 0;
  for (int p = 0; p < most_processors; ++p) {
    bool executed = false;
    for (int b = 0; b < processor_blocks; ++b) {
      executed |= log.executions[p][b] != 0;
      if (log.failures[p][b] < log.executions[p][b]) return false;
    }
    processors += executed ? 1 : 0;
  }
  return processors > 1;
}

}  // namespace guardbit::gpu
