#include "emulator/plan_omissions.hpp"

#include <algorithm>
#include <utility>

#include "emulator/gemm.hpp"

namespace guardbit::emulator {

namespace {

/// The problem with those elements of K of A set to zero.
GemmProblem without_elements(GemmProblem problem, const KRanges& ranges) {
  for (std::int64_t line = 0; line < problem.a.batch * problem.m(); ++line)
    for (const KRange& range : ranges)
      for (std::int64_t i = range.begin; i < std::min(range.end, problem.k()); ++i)
        problem.a.set(line * problem.k() + i, 0);
  return problem;
}

/// Outputs of a plan computed with parts of A set to zero, as against recorded ones.
class Omissions {
 public:
  Omissions(const GemmProblem& problem, const CodeMatrix& recorded, const GemmPlan& plan)
      : problem_(problem), recorded_(recorded), plan_(plan) {}

  std::string addend() const;
  std::string tail() const;
  std::string slice() const;
  std::string tile() const;

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

std::string Omissions::tail() const {
  const std::int64_t k = problem_.k();
  std::vector<std::int64_t> lengths;
  for (std::int64_t t = 1; t < std::min<std::int64_t>(k, 129); ++t) lengths.push_back(t);
  for (std::int64_t t = 32; t < k; t += 32)
    if (t > 128) lengths.push_back(t);
  for (const std::int64_t t : lengths) {
    if (without({{k - t, k}}))
      return "missed K tail: the last " + std::to_string(t) + " of " + std::to_string(k) +
             " elements of K are missing";
  }
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

std::string Omissions::tile() const {
  const std::int64_t k = problem_.k();
  for (const std::int64_t length : {16, 32, 64, 128, 256}) {
    for (std::int64_t begin = 0; begin < k; begin += length) {
      const std::int64_t end = std::min(k, begin + length);
      if (without({{begin, end}}))
        return "missed part of K: elements " + std::to_string(begin) + " to " +
               std::to_string(end - 1) + " are missing";
    }
  }
  return "";
}

}  // namespace

std::string left_out_of(const GemmProblem& problem, const CodeMatrix& recorded,
                        const GemmPlan& plan) {
  const Omissions omissions(problem, recorded, plan);
  for (const auto look :
       {&Omissions::addend, &Omissions::slice, &Omissions::tail, &Omissions::tile})
    if (std::string found = (omissions.*look)(); !found.empty()) return found;
  return "";
}

std::vector<Variant> wrong_variants(const GemmCapture& capture) {
  std::vector<Variant> variants;
  if (capture.convolution) return variants;
  const GemmProblem& x = capture.problem;
  const auto add = [&](std::string name) -> GemmCapture& {
    variants.push_back({std::move(name), capture});
    return variants.back().capture;
  };
  if (!x.c.empty() && capture.beta != 0) add("C is left out").beta = 0;
  if (!x.bias.empty()) add("the bias is left out").problem.bias = {};
  if (capture.alpha != 1) add("alpha is taken as 1").alpha = 1;
  if (x.m() == x.n()) {
    GemmCapture& transposed = add("the whole result is transposed");
    for (std::int64_t g = 0; g < x.a.batch; ++g)
      for (std::int64_t i = 0; i < x.m(); ++i)
        for (std::int64_t j = 0; j < x.n(); ++j)
          transposed.d.set(transposed.d.index(g, i, j), capture.d(g, j, i));
  }
  // Tails that a kernel with tiles of K may forget.
  std::vector<std::int64_t> tails;
  for (const std::int64_t tile : {8, 16, 32, 64, 128, 256})
    tails.push_back(x.k() % tile == 0 ? tile : x.k() % tile);
  for (const std::int64_t t : {1, 2, 4}) tails.push_back(t);
  std::sort(tails.begin(), tails.end());
  tails.erase(std::unique(tails.begin(), tails.end()), tails.end());
  for (const std::int64_t t : tails) {
    if (t >= x.k()) continue;
    GemmCapture& cut = add("missed K tail: the last " + std::to_string(t) + " of " +
                           std::to_string(x.k()) + " elements of K are missing everywhere");
    cut.problem = without_elements(x, {{x.k() - t, x.k()}});
  }
  return variants;
}

}  // namespace guardbit::emulator
