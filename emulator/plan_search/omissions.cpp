#include "emulator/plan_search/omissions.hpp"

#include <algorithm>
#include <utility>

#include "emulator/gemm/gemm.hpp"
#include "emulator/plan_search/missing_elements.hpp"
#include "emulator/plan_search/variants.hpp"

namespace guardbit::emulator {

namespace {

/// The ranges to try if blocks of K have scales of their own: tails of every length up to 128 and
/// of multiples of 32, then tiles of K.
std::vector<KRange> likely_ranges(std::int64_t k) {
  std::vector<KRange> list;
  for (std::int64_t t = 1; t < std::min<std::int64_t>(k, 129); ++t) list.push_back({k - t, k});
  for (std::int64_t t = 160; t < k; t += 32) list.push_back({k - t, k});
  for (const std::int64_t length : {16, 32, 64, 128, 256})
    for (std::int64_t begin = 0; begin < k; begin += length)
      list.push_back({begin, std::min(k, begin + length)});
  return list;
}

/// Leaves one thing after the other out of a plan, executes it and compares with the recording.
class Omissions {
 public:
  Omissions(const GemmProblem& problem, const CodeMatrix& recorded, const GemmPlan& plan)
      : problem_(problem), recorded_(recorded), plan_(plan) {}

  std::string addend() const;
  std::string partial_sum() const;
  std::string elements() const;

 private:
  /// True if the plan gives the recorded codes.
  bool gives(const GemmProblem& problem, const GemmPlan& plan) const {
    return execute(plan, problem, 1).bytes == recorded_.bytes;
  }
  bool without(const KRanges& ranges) const {
    return gives(without_elements(problem_, ranges), plan_);
  }

  const GemmProblem& problem_;
  const CodeMatrix& recorded_;
  const GemmPlan& plan_;
};

std::string Omissions::addend() const {
  GemmPlan plan = plan_;
  GemmProblem problem = problem_;
  if (!problem.c.empty() && plan.epilogue.beta != 0) {
    plan.epilogue.beta = 0;
    if (gives(problem, plan)) return "C is left out";
    plan.epilogue.beta = 1;
    if (plan_.epilogue.beta != 1 && gives(problem, plan)) return "beta is taken as 1";
    plan = plan_;
  }
  if (!problem.bias.empty()) {
    problem.bias = {};
    if (gives(problem, plan)) return "the bias is left out";
    problem = problem_;
  }
  plan.epilogue.alpha = 1;
  if (plan_.epilogue.alpha != 1 && gives(problem, plan)) return "alpha is taken as 1";
  return "";
}

std::string Omissions::partial_sum() const {
  for (const auto& [partition, owner] :
       {std::pair{&plan_.split, "split"}, {&plan_.slices, "slice"}}) {
    if (partition->whole()) continue;
    const std::vector<KRanges> parts = divide(*partition, {{0, problem_.k()}});
    for (std::size_t part = 0; part < parts.size(); ++part) {
      if (without(parts[part]))
        return "missed partial sum: that of " + std::string(owner) + " " + std::to_string(part) +
               " of " + std::to_string(parts.size()) + ", from element " +
               std::to_string(parts[part].front().begin) +
               " of K on, is missing: a race, or a part that was never added";
    }
  }
  return "";
}

std::string Omissions::elements() const {
  const std::int64_t k = problem_.k();
  std::vector<KRange> ranges;
  if (problem_.scale_k != 0)
    ranges = likely_ranges(k);
  else
    for (const MissingRange& x : missing_ranges(problem_, recorded_, plan_.epilogue))
      ranges.push_back(x.range);
  for (const KRange& range : ranges)
    if (without({range})) return missing_text(range, k);
  return "";
}

}  // namespace

std::string find_omission(const GemmProblem& problem, const CodeMatrix& recorded,
                          const GemmPlan& plan) {
  const Omissions omissions(problem, recorded, plan);
  for (const auto look : {&Omissions::addend, &Omissions::partial_sum, &Omissions::elements})
    if (std::string found = (omissions.*look)(); !found.empty()) return found;
  return "";
}

}  // namespace guardbit::emulator
