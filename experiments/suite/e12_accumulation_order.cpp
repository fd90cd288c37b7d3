#include <algorithm>
#include <array>
#include <set>

#include "emulator/gemm/gemm.hpp"
#include "emulator/probe/probe.hpp"
#include "experiments/harness/run.hpp"
#include "experiments/suite/suite.hpp"

namespace guardbit::experiments {

namespace e12 {
namespace {

using emulator::SumTree;

/// A plan whose order is asked for, and how many operands its widest addition has.
struct Asked {
  std::string_view name, plan;
  /// products that the unit adds at once; 0: one multiply-add each
  int block;
  /// operands of its additions, as FPRev found them; 0: not in it
  int width;
};
constexpr std::array asked = {
    Asked{"FP32 multiply-adds", "simt/fma.fp32", 0, 0},
    Asked{"FP32, K in two halves", "simt/fma.fp32 split=2x8:ceil", 0, 0},
    Asked{"FP32, K split in 4 in turn", "simt/fma.fp32 split=4x4:round_robin", 0, 0},
    Asked{"Volta FP16", "sm_70/mma.sync.aligned.m8n8k4.row.col.f32.f16.f16.f32", 4, 5},
    Asked{"Ampere FP16", "sm_80/mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32", 8, 9},
    Asked{"Hopper FP16", "sm_90/wgmma.mma_async.sync.aligned.m64nNk16.f32.f16.f16", 16, 17},
    Asked{"Hopper FP16, split-K of 3",
          "sm_90/wgmma.mma_async.sync.aligned.m64nNk16.f32.f16.f16 split=3x16:ceil", 16, 0},
};

/// A plan as something that can be questioned.
emulator::BlackBox box_of(const emulator::GemmPlan& plan, int k, int threads) {
  emulator::BlackBox box;
  box.a = box.b = plan.unit.arch == "simt" ? formats::fp32 : formats::fp16;
  box.c = box.d = formats::fp32;
  box.k = k;
  box.has_addend = false;
  box.answer = [plan, box, threads](std::span<const emulator::Question> questions) {
    emulator::GemmProblem problem;
    problem.a = emulator::make_matrix(box.a, std::ssize(questions), 1, box.k);
    problem.b = emulator::make_matrix(box.b, std::ssize(questions), box.k, 1);
    std::int64_t at = 0;
    for (const emulator::Question& q : questions) {
      for (std::size_t i = 0; i < q.a.size(); ++i, ++at) {
        problem.a.set(at, q.a[i]);
        problem.b.set(at, q.b[i]);
      }
    }
    const emulator::CodeMatrix d = emulator::execute(plan, problem, threads);
    std::vector<std::uint64_t> answers;
    for (std::int64_t i = 0; i < d.size(); ++i) answers.push_back(d[i]);
    return answers;
  };
  return box;
}

SumTree together(std::vector<SumTree> children) {
  return children.size() == 1 ? children.front() : SumTree{-1, std::move(children)};
}

/// The tree that the plan says: chains of blocks over the k's of each part, their sums in
/// ascending order.
SumTree tree_of(const emulator::GemmPlan& plan, int block, int k) {
  std::vector<SumTree> parts;
  for (const emulator::KRanges& ranges : emulator::divide(plan.split, {{0, k}})) {
    std::vector<SumTree> sum;
    int taken = 0;
    for (const emulator::KRange& range : ranges) {
      for (std::int64_t i = range.begin; i < range.end; ++i) {
        if (taken == std::max(1, block)) {
          sum = {together(std::move(sum))};
          taken = 0;
        }
        sum.push_back({static_cast<int>(i), {}});
        ++taken;
      }
    }
    parts.push_back(together(std::move(sum)));
  }
  SumTree all = parts.front();
  for (std::size_t p = 1; p < parts.size(); ++p) all = SumTree{-1, {all, parts[p]}};
  return all;
}

std::size_t widest(const SumTree& tree) {
  std::size_t width = tree.children.size();
  for (const SumTree& child : tree.children) width = std::max(width, widest(child));
  return width;
}

/// Additions from the root to the deepest product.
std::size_t depth(const SumTree& tree) {
  std::size_t below = 0;
  for (const SumTree& child : tree.children) below = std::max(below, 1 + depth(child));
  return below;
}

/// Into how many parts a library cuts K where few rows make few tiles.
int parts_for(std::int64_t rows) { return rows < 64 ? 8 : rows < 256 ? 2 : 1; }

/// Outputs of row 0 whose bits depend on how many rows there are.
double changed_outputs(Run& run, const std::vector<std::int64_t>& rows, bool split_by_rows) {
  constexpr std::int64_t k = 1024, columns = 64;
  emulator::GemmPlan plan;
  plan.unit = {"sm_90", "wgmma.mma_async.sync.aligned.m64nNk16.f32.f16.f16"};
  emulator::GemmProblem problem;
  problem.b = run.draws("B").matrix(formats::fp16, k, columns, Distribution::normal, run.threads());
  std::vector<std::vector<double>> first;
  for (const std::int64_t m : rows) {
    problem.a = run.draws("A").matrix(formats::fp16, m, k, Distribution::normal, run.threads());
    if (split_by_rows) plan.split = {.parts = parts_for(m), .tile = 64};
    emulator::GemmProblem row = problem;
    const emulator::CodeMatrix d = run.multiply(plan, row);
    std::vector<double> values;
    for (std::int64_t j = 0; j < columns; ++j) values.push_back(static_cast<double>(d(0, 0, j)));
    first.push_back(values);
  }
  double changed = 0;
  for (std::size_t j = 0; j < first[0].size(); ++j) {
    const bool same =
        std::ranges::all_of(first, [&](const auto& x) { return x[j] == first[0][j]; });
    if (!same) ++changed;
  }
  return changed;
}

Outcome run(Run& run) {
  const auto lengths = run.settings().integers("K");
  const auto rows = run.settings().integers("M");
  run.announce(asked.size() * lengths.size() + 2);
  Outcome outcome;
  outcome.figure = {"E12: additions that wait for each other, as the masks reveal them",
                    "K (products in each sum)", "longest chain of additions", true, true};
  for (const Asked& x : asked) outcome.figure.curves.push_back({std::string(x.name)});
  for (const std::int64_t length : lengths) {
    const int k = static_cast<int>(length);
    for (std::size_t i = 0; i < asked.size(); ++i) {
      const Asked& x = asked.at(i);
      const emulator::GemmPlan plan = emulator::parse_plan(x.plan, "E12");
      const std::string key = std::string(x.name) + ", K=" + std::to_string(k);
      const auto& found = run.point(key, [&] {
        const auto answer = emulator::reveal_tree(box_of(plan, k, run.threads()));
        const bool same = answer.observable && answer.tree == tree_of(plan, x.block, k);
        return std::vector<double>{same ? 1.0 : 0, static_cast<double>(widest(answer.tree)),
                                   static_cast<double>(depth(answer.tree))};
      });
      outcome.figure.curves[i].add(static_cast<double>(k), found[2]);
      outcome.findings.push_back({key + ": the masks reveal the plan's order", "", found[0],
                                  Reference{.value = 1, .source = "the plan: docs/GEMM.md"}});
      Finding width{key + ": operands of the widest addition", "", found[1]};
      if (x.width != 0 && k > x.block) {
        width.reference = Reference{.value = static_cast<double>(x.width),
                                    .source = "FPRev, arXiv 2411.00442: V100 5, A100 9, H100 17",
                                    .certainty = Certainty::recalled};
      }
      outcome.findings.push_back(width);
    }
  }
  const auto& fixed =
      run.point("one plan", [&] { return std::vector<double>{changed_outputs(run, rows, false)}; });
  const auto& varied = run.point(
      "plan by rows", [&] { return std::vector<double>{changed_outputs(run, rows, true)}; });
  outcome.findings.push_back(
      {"row 0 of FP16 products of different M, one plan: outputs that change", "of 64", fixed[0],
       Reference{.source = "a plan treats every row alike"}});
  std::set<int> cuts;
  for (const std::int64_t m : rows) cuts.insert(parts_for(m));
  outcome.findings.push_back(
      {"the same, K cut by the number of rows: outputs that change", "of 64", varied[0],
       Reference{.value = 1,
                 .source = "TransformerEngine issue 2986: 5 of 7 M differ",
                 .certainty = Certainty::read,
                 .relation = Reference::Relation::at_least,
                 .undecidable = cuts.size() > 1 ? "" : "all of these M cut K alike"}});
  return outcome;
}

}  // namespace
}  // namespace e12

Experiment accumulation_order() {
  using namespace e12;
  using Kind = Parameter::Kind;
  return {
      .name = "E12",
      .slug = "accumulation_order",
      .question = "In which order does a matrix product add, and when do bits depend on the batch?",
      .method =
          "FPRev's masks (a large product and its negative swallow what is added between them) "
          "reveal the tree of additions of plans as libraries use them. "
          "Then the first row of products with more and more rows, by one plan, and by a plan whose cut of K follows the number of rows.",
      .expected =
          "The tree is the plan's; V100, A100 and H100 add 5, 9 and 17 operands at once (recalled from arXiv 2411.00442); "
          "rows change only where the plan does.",
      .parameters = {{"K", "products in each sum", "32,64", "32", Kind::integer, true, 2, 512},
                     {"M", "rows", "1,16,64,256,512", "1,64,256", Kind::integer, true, 1, 4096}},
      .run = run,
  };
}

}  // namespace guardbit::experiments
