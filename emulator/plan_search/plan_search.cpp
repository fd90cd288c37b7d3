#include "emulator/plan_search/plan_search.hpp"

#include <algorithm>
#include <deque>
#include <optional>
#include <span>
#include <utility>

#include "emulator/gemm/chain.hpp"
#include "emulator/gemm/gemm.hpp"
#include "emulator/plan_search/candidates.hpp"
#include "emulator/plan_search/closeness.hpp"
#include "emulator/plan_search/omissions.hpp"
#include "emulator/plan_search/samples.hpp"
#include "formats/support/parallel.hpp"

namespace guardbit::emulator {

namespace {

/// Is every sum of so few parts in this order one in an order before it?
bool is_known_order(SumOrder order, int parts) {
  switch (order) {
    case SumOrder::descending:
    case SumOrder::halves: return parts == 2;
    case SumOrder::adjacent:
    case SumOrder::adjacent_last:
    case SumOrder::buffers: return parts <= 3;
    case SumOrder::by_four: return parts <= 4;
    default: return false;
  }
}

/// A plan with every order of reduction and every epilogue that matter to it.
template <class Visit>
void for_each_ending(const Candidates& candidates, const GemmPlan& plan, bool split, bool lanes,
                     const Visit& visit) {
  static const std::vector<SumOrder> one = {SumOrder::ascending};
  static const std::vector<Format> plain = {formats::fp32};
  GemmPlan x = plan;
  for (const Format& workspace : split ? candidates.workspaces : plain) {
    for (const SumOrder split_order : split ? candidates.orders : one) {
      // In place, sums have D's format.
      if (split_order == SumOrder::in_place && workspace != candidates.workspaces.front()) continue;
      if (is_known_order(split_order, plan.split.parts)) continue;
      for (const SumOrder lane_order : lanes ? candidates.orders : one) {
        if (lane_order == SumOrder::in_place || is_known_order(lane_order, plan.lanes.parts))
          continue;
        x.split.order = split_order;
        x.split.sums = split ? workspace : formats::fp32;
        x.lanes.order = lane_order;
        visit(x);
      }
    }
  }
}

class Search {
 public:
  Search(const GemmCapture& capture, const SearchOptions& options)
      : capture_(capture), options_(options), candidates_(candidates_for(capture)) {}

  SearchResult run();

 private:
  void run_stages(std::deque<Lowered>& lowered);
  void run_neighbours(std::deque<Lowered>& lowered);
  bool run_stage(const std::vector<GemmPlan>& stage, Lowered& lowered);
  void judge_nearest(const std::deque<Lowered>& lowered);
  bool is_damaged(const Lowered& lowered);
  bool is_nearly_explained() const {
    return !close_.empty() && nearly_explains(close_.front(), capture_);
  }
  Close count_on(std::deque<Task>& tasks, const GemmPlan& plan, std::int64_t tolerated,
                 std::size_t task_count) const;
  void run_plans(const std::vector<GemmPlan>& plans, std::deque<Task>& tasks);
  void doubt_close(const std::vector<GemmPlan>& plans, Lowered& lowered);
  void try_plan(const GemmPlan& plan, const Task& task, const GemmOperands& operands, int threads,
                std::vector<PlanResult>& results) const;

  const GemmCapture& capture_;
  const SearchOptions& options_;
  Candidates candidates_;
  SearchResult result_;
  std::vector<PlanResult> nearest_;  ///< on the second sample
  std::vector<PlanResult> far_;      ///< on the first, where they fail too often for the second
  std::vector<Close> close_;
  std::optional<GemmPlan> judged_;  ///< the close plan that `damaged_` is about
  bool damaged_ = false;
};

/// A damaged result fails some of a sample under its own plan, too.
std::int64_t most_failures(const Task& sample) { return sample.d.size() / 4; }

/// Every ending of a main loop on one task.
void Search::try_plan(const GemmPlan& plan, const Task& task, const GemmOperands& operands,
                      int threads, std::vector<PlanResult>& results) const {
  const bool lanes = !plan.lanes.whole();
  // Sums of lanes, and of shares of a tile, are added in the epilogue's format.
  const bool adds = lanes || !plan.stream_k.none();
  std::vector<Sums> parts;
  std::optional<std::pair<SumOrder, Format>> parts_of;  // the lanes' order and that format
  for_each_ending(candidates_, plan, !plan.split.whole(), lanes, [&](const GemmPlan& x) {
    std::optional<Format> added;  // the format in which the parts' sums are
    Sums sums;
    for (Epilogue epilogue : candidates_.epilogues) {
      epilogue.alpha_on = plan.epilogue.alpha_on;
      // Only FP16 sums are ever added and scaled in FP16.
      if (epilogue.compute == formats::fp16 && operands.sum != formats::fp16) continue;
      GemmPlan whole = x;
      whole.epilogue = epilogue;
      const std::pair wanted(x.lanes.order, adds ? epilogue.compute : formats::fp32);
      if (parts_of != wanted) {
        parts = partial_sums(whole, operands, task.problem, threads);
        parts_of = wanted;
        added.reset();
      }
      const bool in_place = x.split.order == SumOrder::in_place;
      if (!in_place && added != epilogue.compute)
        sums = add_up(x.split, *(added = epilogue.compute), parts);
      const CodeMatrix d =
          in_place ? finish(whole, task.problem, parts) : finish(epilogue, task.problem, sums);
      results.push_back({std::move(whole), count_mismatches(task.d, d)});
    }
  });
}

/// Are all places that the close plan fails what it gives when something is left out? That many
/// outputs of another plan are not: then there is no other one to look for.
bool Search::is_damaged(const Lowered& lowered) {
  constexpr std::size_t fewest = 16;
  const Close& close = close_.front();
  const GemmPlan& plan = close.result.plan;
  if (lowered.walk != plan.convolution) return false;
  if (judged_ && *judged_ == plan) return damaged_;
  judged_ = plan;
  damaged_ = false;
  const GemmProblem& all = lowered.tasks.back().problem;
  std::vector<Output> near, failed;
  for (const Output& x : close.failed)
    for (std::int64_t j = x.column / 8 * 8; j < std::min(all.n(), x.column / 8 * 8 + 8); ++j)
      near.push_back({x.batch, x.row, j});
  const std::span<const Output> looked_at(near);
  const CodeMatrix recorded = select(capture_.d, looked_at);
  const CodeMatrix d = execute(plan, select(all, looked_at), 1);
  for (std::size_t i = 0; i < near.size(); ++i) {
    const auto at = static_cast<std::int64_t>(i);
    if (!same_element(d.format, recorded[at], d[at])) failed.push_back(near[i]);
  }
  if (failed.size() < fewest) return false;
  const std::span<const Output> outputs(failed);
  damaged_ = !left_out_of(select(all, outputs), select(capture_.d, outputs), plan).empty();
  return damaged_;
}

/// True once nothing is left to look for.
bool Search::run_stage(const std::vector<GemmPlan>& stage, Lowered& lowered) {
  constexpr std::size_t plans_at_once = 256;
  for (std::size_t begin = 0; begin < stage.size(); begin += plans_at_once) {
    const std::size_t end = std::min(stage.size(), begin + plans_at_once);
    std::vector<GemmPlan> plans(stage.begin() + static_cast<std::ptrdiff_t>(begin),
                                stage.begin() + static_cast<std::ptrdiff_t>(end));
    for (GemmPlan& plan : plans) plan.convolution = lowered.walk;
    if (is_nearly_explained()) {
      if (is_damaged(lowered)) return true;
      doubt_close(plans, lowered);
    } else {
      run_plans(plans, lowered.tasks);
    }
    if (result_.explained()) return true;
  }
  return false;
}

/// Endings of one main loop on the second sample, where one of them does well on the first.
struct Tried {
  std::int64_t count = 0;
  PlanResult best;  ///< on the first sample
  std::vector<PlanResult> results;
};

void Search::run_plans(const std::vector<GemmPlan>& stage, std::deque<Task>& tasks) {
  Task &first = tasks[0], &few = tasks[1];
  const auto fewer = [](const PlanResult& x, const PlanResult& y) {
    return x.mismatches < y.mismatches;
  };
  std::vector<Tried> all_tried(stage.size());
  formats::parallel_for(stage.size(), 1, options_.threads, [&](std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i) {
      if (options_.interrupted && options_.interrupted()) return;
      const auto operands = first.prepared->get(stage[i]);
      if (!operands || !chains_fit(stage[i], *operands)) continue;
      std::vector<PlanResult> results;
      try_plan(stage[i], first, *operands, 1, results);
      Tried& tried = all_tried[i];
      tried.count = std::ssize(results);
      tried.best = *std::min_element(results.begin(), results.end(), fewer);
      if (tried.best.mismatches > most_failures(first)) continue;
      try_plan(stage[i], few, *few.prepared->get(stage[i]), 1, tried.results);
    }
  });
  std::vector<PlanResult> passed, nearly;
  for (const Tried& tried : all_tried) {
    result_.tried += tried.count;
    if (tried.results.empty() && tried.count != 0) far_.push_back(tried.best);
    for (const PlanResult& x : tried.results) {
      if (x.mismatches == 0) passed.push_back(x);
      if (x.mismatches != 0 && x.mismatches <= most_failures(few)) nearly.push_back(x);
      if (x.mismatches != 0) nearest_.push_back(x);
    }
  }
  for (std::vector<PlanResult>* list : {&nearest_, &far_}) {
    std::stable_sort(list->begin(), list->end(), fewer);
    if (list->size() > 8) list->resize(8);
  }
  for (const PlanResult& candidate : passed) {
    if (options_.interrupted && options_.interrupted()) return;
    if (result_.plans.size() >= options_.most_plans) return;
    PlanResult x = candidate;
    x = count_on(tasks, x.plan, 0, tasks.size()).result;
    (x.mismatches == 0 ? result_.plans : nearly).push_back(x);
  }
  if (result_.explained()) return;
  std::stable_sort(nearly.begin(), nearly.end(), fewer);
  if (nearly.size() > 16) nearly.resize(16);
  // All outputs cost much: only of the plan that does best on the samples, if better than before.
  std::optional<Close> best;
  for (const PlanResult& x : nearly) {
    if (options_.interrupted && options_.interrupted()) return;
    Close close = count_on(tasks, x.plan, 4, tasks.size() - 1);
    if (close.result.mismatches >= 0 && (!best || close.on_sample < best->on_sample))
      best = std::move(close);
  }
  if (!best || (!close_.empty() && close_.front().on_sample <= best->on_sample)) return;
  close_.insert(close_.begin(), count_on(tasks, best->result.plan, 1, tasks.size()));
}

/// A result that a plan gives but for some places may be damaged there, or another plan's that
/// differs there only: where shares of stream-K end, where a last slice is incomplete. Plans of the
/// same unit are tried on outputs that failed.
void Search::doubt_close(const std::vector<GemmPlan>& plans, Lowered& lowered) {
  const Close close = close_.front();
  const GemmPlan& known = close.result.plan;
  if (lowered.walk != known.convolution || close.beyond * 2 > close.failed.size()) return;
  // FP8 products are added nearly without rounding: all units but one come near a result.
  const bool any_unit = formats::bits(capture_.problem.a.format) == 8;
  const std::span<const Output> outputs(close.failed);
  Task failed(select(lowered.tasks.back().problem, outputs), select(capture_.d, outputs));
  const Task& first = lowered.tasks.front();
  std::vector<std::vector<PlanResult>> tried(plans.size());
  formats::parallel_for(plans.size(), 1, options_.threads, [&](std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i) {
      if (options_.interrupted && options_.interrupted()) return;
      const bool same_unit = plans[i].unit == known.unit && plans[i].input == known.input;
      if (!same_unit && !any_unit) continue;
      if (known.lanes.whole() && !plans[i].lanes.whole()) continue;
      const auto operands = failed.prepared->get(plans[i]);
      if (!operands || !chains_fit(plans[i], *operands)) continue;
      std::vector<PlanResult> elsewhere;
      try_plan(plans[i], failed, *operands, 1, tried[i]);
      const auto hopeless = [&](const PlanResult& x) { return x.mismatches * 2 > failed.d.size(); };
      if (std::all_of(tried[i].begin(), tried[i].end(), hopeless)) continue;
      try_plan(plans[i], first, *first.prepared->get(plans[i]), 1, elsewhere);
      for (std::size_t ending = 0; ending < elsewhere.size(); ++ending)
        if (elsewhere[ending].mismatches > most_failures(first))
          tried[i][ending].mismatches = failed.d.size();
    }
  });
  for (const auto& results : tried) {
    result_.tried += std::ssize(results);
    for (const PlanResult& x : results) {
      if (x.mismatches * 2 > failed.d.size() || x.plan == known) continue;
      if (options_.interrupted && options_.interrupted()) return;
      if (result_.plans.size() >= options_.most_plans) return;
      Close other = count_on(lowered.tasks, x.plan, 4, lowered.tasks.size() - 1);
      if (other.result.mismatches < 0 || other.on_sample > close_.front().on_sample) continue;
      other = count_on(lowered.tasks, x.plan, 1, lowered.tasks.size());
      if (other.result.mismatches == 0) result_.plans.push_back(other.result);
      if (other.result.mismatches < close_.front().result.mismatches)
        close_.insert(close_.begin(), std::move(other));
    }
  }
}

/// Mismatches of a plan on the tasks before `task_count`, of the last one. It is given up, as -1
/// (or 1, where nothing is `tolerated`), once more than that part of a sample fails.
Close Search::count_on(std::deque<Task>& tasks, const GemmPlan& plan, std::int64_t tolerated,
                       std::size_t task_count) const {
  Close close;
  close.result.plan = plan;
  for (std::size_t number = 2; number < task_count; ++number) {
    const Task& task = tasks[number];
    const auto operands = task.prepared->get(plan);
    const CodeMatrix d =
        finish(plan, task.problem, partial_sums(plan, *operands, task.problem, options_.threads));
    const std::int64_t mismatches = count_mismatches(task.d, d);
    close.result.mismatches = mismatches;
    if (&task == &tasks.back() && mismatches != 0)
      describe_mismatches(capture_, task, d, operands->sum, options_.threads, close);
    if (&task == &tasks.back()) return close;
    if (number == 2) close.on_sample = mismatches;
    if (tolerated == 0 && mismatches != 0) close.result.mismatches = 1;
    if (tolerated == 0 && mismatches != 0) return close;
    if (tolerated != 0 && mismatches * tolerated > task.d.size()) close.result.mismatches = -1;
    if (close.result.mismatches < 0) return close;
  }
  return close;
}

SearchResult Search::run() {
  std::deque<Lowered> lowered = lowered_tasks(capture_, candidates_, options_.threads);
  run_stages(lowered);
  if (!result_.explained() && !damaged_ && is_nearly_explained()) run_neighbours(lowered);
  if (result_.plans.empty())
    for (const Close& x : close_) result_.plans.push_back(x.result);
  if (result_.plans.empty()) judge_nearest(lowered);
  return result_;
}

/// Likely walks meet every stage; the others those that are cheap.
void Search::run_stages(std::deque<Lowered>& lowered) {
  const auto likely = std::min<std::size_t>(lowered.size(), 4);
  std::vector<std::vector<GemmPlan>> simple;
  for (std::size_t number = 0; number < candidates_.stages.size(); ++number) {
    const bool only_simple = options_.simple || !candidates_.plausible;
    if (only_simple && number > candidates_.simple_stages) return;
    const std::vector<GemmPlan> stage = candidates_.stages[number]();
    for (std::size_t w = 0; w < likely; ++w)
      if (run_stage(stage, lowered[w])) return;
    if (number <= candidates_.simple_stages && lowered.size() > likely) simple.push_back(stage);
    if (number != candidates_.simple_stages) continue;
    for (std::size_t w = likely; w < lowered.size(); ++w)
      for (const std::vector<GemmPlan>& plans : simple)
        if (run_stage(plans, lowered[w])) return;
  }
}

/// Before a result is called damaged: the plan that nearly gives it, with every other unit and
/// conversion, which may differ in a few outputs only.
void Search::run_neighbours(std::deque<Lowered>& lowered) {
  const GemmPlan close = close_.front().result.plan;
  std::vector<GemmPlan> plans;
  for (const GemmPlan& unit : candidates_.units) {
    for (const std::int64_t tile : {0, 8, 16, 32, 64, 128}) {
      GemmPlan& plan = plans.emplace_back(close);
      plan.unit = unit.unit;
      plan.input = unit.input;
      plan.loads = unit.loads;
      plan.epilogue.alpha_on = unit.epilogue.alpha_on;
      plan.residue_first = tile;
    }
  }
  for (Lowered& x : lowered)
    if (x.walk == close.convolution) run_plans(plans, x.tasks);
}

/// The plans that did best on a sample, on all outputs.
void Search::judge_nearest(const std::deque<Lowered>& lowered) {
  for (const PlanResult& near : nearest_.empty() ? far_ : nearest_) {
    for (const Lowered& x : lowered) {
      if (x.walk != near.plan.convolution) continue;
      const Task& all = x.tasks.back();
      const CodeMatrix d = execute(near.plan, all.problem, options_.threads);
      result_.plans.push_back({near.plan, count_mismatches(all.d, d)});
    }
  }
  std::stable_sort(result_.plans.begin(), result_.plans.end(),
                   [](const auto& x, const auto& y) { return x.mismatches < y.mismatches; });
}

}  // namespace

std::vector<std::int64_t> mismatches(const GemmCapture& capture, const CodeMatrix& computed) {
  std::vector<std::int64_t> list;
  for (std::int64_t i = 0; i < capture.d.size(); ++i)
    if (!same_element(capture.d.format, capture.d[i], computed[i])) list.push_back(i);
  return list;
}

std::string telling_operands(const std::vector<PlanResult>& plans) {
  bool units = false, cuts = false, endings = false, inputs = false, walks = false;
  const GemmPlan& x = plans.front().plan;
  for (const PlanResult& other : plans) {
    const GemmPlan& y = other.plan;
    units = units || x.unit != y.unit;
    inputs = inputs || x.input != y.input;
    walks = walks || x.convolution != y.convolution || x.loads != y.loads;
    cuts = cuts || x.split != y.split || x.stream_k != y.stream_k || x.lanes != y.lanes ||
           x.promotion != y.promotion || x.residue_first != y.residue_first;
    endings = endings || x.epilogue != y.epilogue;
  }
  std::string text = "Operands that would:";
  if (units) text += " a K of several instructions with exponents spread over 30 binades;";
  if (inputs) text += " elements halfway between two numbers of the unit's format;";
  if (cuts)
    text += " a larger K, whose parts cancel (large values in one part, opposite ones in another);";
  if (walks) text += " more channels and filter positions of different magnitude;";
  if (endings)
    text += " an alpha and beta with many digits, and addends that nearly cancel the product;";
  text.back() = '.';
  return text;
}

SearchResult search_plans(const GemmCapture& capture, const SearchOptions& options) {
  return Search(capture, options).run();
}

}  // namespace guardbit::emulator
