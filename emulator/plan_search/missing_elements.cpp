#include "emulator/plan_search/missing_elements.hpp"

#include <algorithm>

namespace guardbit::emulator {

GemmProblem without_elements(GemmProblem problem, const KRanges& ranges) {
  for (std::int64_t line = 0; line < problem.a.batch * problem.m(); ++line)
    for (const KRange& range : ranges)
      for (std::int64_t i = range.begin; i < std::min(range.end, problem.k()); ++i)
        problem.a.set(line * problem.k() + i, 0);
  return problem;
}

std::string missing_text(const KRange& range, std::int64_t k) {
  if (range.end == k)
    return "missed K tail: the last " + std::to_string(range.length()) + " of " +
           std::to_string(k) + " elements of K are missing";
  return "missed part of K: elements " + std::to_string(range.begin) + " to " +
         std::to_string(range.end - 1) + " are missing";
}

}  // namespace guardbit::emulator
