#include <algorithm>
#include <numeric>
#include <set>

#include "experiments/accuracy/error_norms.hpp"
#include "experiments/accuracy/product_errors.hpp"
#include "experiments/suite/suite.hpp"
#include "experiments/suite/unit_products.hpp"

namespace guardbit::experiments {

namespace e35 {
namespace {

using Order = std::vector<std::int64_t>;

/// Fisher and Yates, within consecutive runs of `run_length`; the stream belongs to `trial`.
Order shuffled(const Draws& draws, std::int64_t k, std::int64_t run_length, std::int64_t trial) {
  Order order(static_cast<std::size_t>(k));
  std::iota(order.begin(), order.end(), 0);
  for (std::int64_t first = 0; first < k; first += run_length) {
    for (std::int64_t i = std::min(first + run_length, k) - 1; i > first; --i) {
      const auto random = draws.uniform(static_cast<std::uint64_t>(trial * k + i));
      const auto j = first + static_cast<std::int64_t>(random * static_cast<double>(i - first + 1));
      std::swap(order[static_cast<std::size_t>(i)], order[static_cast<std::size_t>(j)]);
    }
  }
  return order;
}

/// Outputs that change inside blocks, the largest spread over what the bound allows, then the mean
/// number of different results after 1, 2, ... orders.
std::vector<double> permuted(Run& run, const UnitUnderTest& unit,
                             const emulator::GemmProblem& problem) {
  const auto trials = run.settings().integer("orders");
  const Draws draws = run.draws("order");
  const emulator::CodeMatrix plain = run.multiply(unit.plan, problem);
  const auto inside = reordered(problem, shuffled(draws, problem.k(), unit.block, 0));
  std::vector<double> result = {changed_outputs(run.multiply(unit.plan, inside), plain), 0};
  std::vector<std::set<std::uint64_t>> seen(static_cast<std::size_t>(plain.size()));
  std::vector<double> low = values_of(plain), high = low;
  for (std::int64_t t = 0; t < trials; ++t) {
    const auto other =
        t == 0 ? problem : reordered(problem, shuffled(draws, problem.k(), problem.k(), t));
    const emulator::CodeMatrix d = run.multiply(unit.plan, other);
    const std::vector<double> values = values_of(d);
    double different = 0;
    for (std::size_t i = 0; i < seen.size(); ++i) {
      seen[i].insert(d[static_cast<std::int64_t>(i)]);
      different += static_cast<double>(seen[i].size());
      low[i] = std::min(low[i], values[i]);
      high[i] = std::max(high[i], values[i]);
    }
    result.push_back(different / static_cast<double>(seen.size()));
  }
  if (unit.exact) return result;
  // Two results lie within one bound each of the exact sum; the bound does not depend on the order.
  const std::vector<double> allowed = allowed_errors(run, unit.plan, problem);
  for (std::size_t i = 0; i < allowed.size(); ++i)
    result[1] = std::max(result[1], (high[i] - low[i]) / (2 * allowed[i]));
  return result;
}

/// For each number of parts: outputs that change, largest error over its bound.
std::vector<double> split(Run& run, const UnitUnderTest& unit,
                          const emulator::GemmProblem& problem) {
  const emulator::CodeMatrix plain = run.multiply(unit.plan, problem);
  std::vector<double> result;
  for (const std::int64_t parts : run.settings().integers("parts")) {
    emulator::GemmPlan plan = unit.plan;
    plan.split = {.parts = static_cast<int>(parts), .tile = 64};
    if (unit.exact) plan.split.sums = formats::int32;
    const emulator::CodeMatrix d = run.multiply(plan, problem);
    result.push_back(changed_outputs(d, plain));
    result.push_back(unit.exact ? 0
                                : largest_share(values_of(d),
                                                values_of(run.multiply(exact_plan(), problem)),
                                                allowed_errors(run, plan, problem)));
  }
  return result;
}

void add_findings(Outcome& outcome, const UnitUnderTest& unit, const std::vector<double>& orders) {
  const std::string name = unit.name + ": ";
  outcome.findings.push_back(
      {name + "orders inside blocks of " + std::to_string(unit.block) + ": outputs that change", "",
       orders[0],
       Reference{.source = unit.exact        ? "integer sums are exact"
                           : unit.block == 1 ? "one product has one order"
                                             : "what is left after alignment is added exactly"}});
  Finding results{name + "all orders: different results of an output (mean)", "", orders.back()};
  if (unit.exact) {
    results.reference = Reference{.value = 1, .source = "integer sums are exact"};
  } else {
    outcome.findings.push_back(
        {name + "all orders: largest spread / twice the bound", "", orders[1],
         Reference{.value = 1,
                   .source = "each result lies within the worst-case bound of the exact sum",
                   .relation = Reference::Relation::at_most}});
  }
  outcome.findings.push_back(results);
}

Outcome run(Run& run) {
  const Settings& s = run.settings();
  const std::int64_t size = s.integer("MN"), k = s.integer("K");
  const auto parts = s.integers("parts");
  run.announce(2 * s.words("unit").size());
  Outcome outcome;
  outcome.figure = {"E35: one product, K in more and more random orders", "orders tried",
                    "different results of an output (mean)", true, true};
  for (const UnitUnderTest& unit : units_under_test()) {
    if (std::ranges::find(s.words("unit"), unit.name) == s.words("unit").end()) continue;
    const auto problem = random_problem(run, unit.inputs, size, size, k, Distribution::normal);
    const auto& orders =
        run.point(unit.name + ", orders", [&] { return permuted(run, unit, problem); });
    add_findings(outcome, unit, orders);
    Curve curve{unit.name};
    for (std::size_t t = 2; t < orders.size(); ++t)
      curve.add(static_cast<double>(t - 1), orders[t]);
    outcome.figure.curves.push_back(curve);
    const auto& cut = run.point(unit.name + ", parts", [&] { return split(run, unit, problem); });
    for (std::size_t p = 0; p < parts.size(); ++p) {
      const std::string key = unit.name + ", K in " + std::to_string(parts[p]) + " parts: ";
      Finding changed{key + "outputs that change", "", cut[2 * p]};
      if (unit.exact) changed.reference = Reference{.source = "integer sums are exact"};
      if (parts[p] == 1) changed.reference = Reference{.source = "one part is the whole"};
      outcome.findings.push_back(changed);
      if (unit.exact) continue;
      outcome.findings.push_back({key + "largest error / bound", "", cut[2 * p + 1],
                                  Reference{.value = 1,
                                            .source = "worst-case analysis of the plan",
                                            .relation = Reference::Relation::at_most}});
    }
  }
  outcome.notes.emplace_back(
      "Libraries choose tiles and cuts of K by shape, "
      "so the rows of a batch change with its size where they cut K by it (E12 shows that), and stay where they do not.");
  return outcome;
}

}  // namespace
}  // namespace e35

Experiment order_sensitivity() {
  using namespace e35;
  using Kind = Parameter::Kind;
  return {
      .name = "E35",
      .slug = "order_sensitivity",
      .question = "How many results does one product have when K is added in another order?",
      .method =
          "Columns of A and rows of B are permuted together: inside the blocks that a unit adds at once, then as a whole, again and again; "
          "then K is cut into parts whose FP32 sums are added afterwards. "
          "Outputs whose bits differ, and how far they lie apart.",
      .expected =
          "No order inside a block matters, and none at all to integers; other orders spread results within twice the worst-case bound (derived).",
      .parameters = {{"K", "products in each sum", "1024", "256", Kind::integer, false, 1, 16384},
                     {"MN", "rows and columns", "32", "16", Kind::integer, false, 1, 512},
                     {"orders", "", "64", "8", Kind::integer, false, 1, 4096},
                     {"parts", "that K is cut into", "1,2,4,8", "1,4", Kind::integer, true, 1, 64},
                     {"unit", "", unit_names, "", Kind::word, true, 0, 0, unit_names}},
      .run = run,
  };
}

}  // namespace guardbit::experiments
