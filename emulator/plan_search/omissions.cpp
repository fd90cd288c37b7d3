#include "emulator/plan_search/omissions.hpp"

#include <algorithm>
#include <utility>

#include "emulator/gemm/gemm.hpp"
#include "emulator/plan_search/variants.hpp"

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

namespace {

/// Where blocks of K have scales of their own: tails of every length up to 128 and of multiples of
/// 32, then tiles of K.
std::vector<KRange> likely_ranges(std::int64_t k) {
  std::vector<KRange> list;
  for (std::int64_t t = 1; t < std::min<std::int64_t>(k, 129); ++t) list.push_back({k - t, k});
  for (std::int64_t t = 160; t < k; t += 32) list.push_back({k - t, k});
  for (const std::int64_t length : {16, 32, 64, 128, 256})
    for (std::int64_t begin = 0; begin < k; begin += length)
      list.push_back({begin, std::min(k, begin + length)});
  return list;
}

/// Outputs of a plan computed with parts of A set to zero, as against recorded ones.
class Omissions {
 public:
  Omissions(const GemmProblem& problem, const CodeMatrix& recorded, const GemmPlan& plan)
      : problem_(problem), recorded_(recorded), plan_(plan) {}

  std::string addend() const;
  std::string slice() const;
  std::string elements() const;

 private:
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

std::string Omissions::slice() const {
  for (const auto& [partition, owner] :
       {std::pair{&plan_.split, "slice"}, {&plan_.lanes, "lane"}}) {
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

std::string left_out_of(const GemmProblem& problem, const CodeMatrix& recorded,
                        const GemmPlan& plan) {
  const Omissions omissions(problem, recorded, plan);
  for (const auto look : {&Omissions::addend, &Omissions::slice, &Omissions::elements})
    if (std::string found = (omissions.*look)(); !found.empty()) return found;
  return "";
}

}  // namespace guardbit::emulator
