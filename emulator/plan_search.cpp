#include "emulator/plan_search.hpp"

#include <algorithm>
#include <cmath>
#include <deque>
#include <optional>
#include <set>
#include <span>
#include <utility>

#include "emulator/capture.hpp"
#include "emulator/gemm.hpp"
#include "emulator/gemm_scalar.hpp"
#include "emulator/plan_candidates.hpp"
#include "emulator/plan_samples.hpp"
#include "formats/parallel.hpp"

namespace guardbit::emulator {

namespace {

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
      for (const SumOrder lane_order : lanes ? candidates.orders : one) {
        if (lane_order == SumOrder::in_place) continue;
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
  /// A plan that nearly passes: mismatches on all outputs, and on the last sample before them.
  struct Close {
    PlanResult result;
    std::int64_t on_sample = 0;
    std::int64_t far = 0;        ///< mismatches of more than 16 codes
    std::int64_t off_ties = 0;   ///< mismatches that are not near ties of D's rounding
    std::int64_t cells = 0;      ///< squares of 8 x 8 outputs that hold a mismatch
    std::vector<Output> failed;  ///< a few mismatches
    std::size_t beyond = 0;      ///< those that no order of the sums comes near
  };
  bool is_nearly_explained() const;
  void describe_mismatches(const Task& task, const CodeMatrix& computed, const Format& sums,
                           Close& close) const;
  bool is_beyond(const GemmProblem& problem, const Output& at, double recorded, double computed,
                 const Format& sums) const;
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
};

/// A damaged result fails some of a sample under its own plan, too.
std::int64_t most_failures(const Task& sample) { return sample.d.size() / 4; }

/// Every ending of a main loop on one task.
void Search::try_plan(const GemmPlan& plan, const Task& task, const GemmOperands& operands,
                      int threads, std::vector<PlanResult>& results) const {
  const bool lanes = !plan.lanes.whole();
  std::vector<Sums> parts;
  SumOrder lane_order = SumOrder::ascending;
  bool computed = false;
  for_each_ending(candidates_, plan, !plan.split.whole(), lanes, [&](const GemmPlan& x) {
    if (!computed || x.lanes.order != lane_order) {
      parts = partial_sums(x, operands, task.problem, threads);
      lane_order = x.lanes.order;
      computed = true;
    }
    for (const Epilogue& epilogue : candidates_.epilogues) {
      // Only FP16 sums are ever added and scaled in FP16.
      if (epilogue.compute == formats::fp16 && operands.sum != formats::fp16) continue;
      GemmPlan whole = x;
      whole.epilogue = epilogue;
      const CodeMatrix d = finish(whole, task.problem, parts);
      results.push_back({whole, count_mismatches(task.d, d)});
    }
  });
}

/// True once there is an exact plan.
bool Search::run_stage(const std::vector<GemmPlan>& stage, Lowered& lowered) {
  constexpr std::size_t plans_at_once = 256;
  for (std::size_t begin = 0; begin < stage.size(); begin += plans_at_once) {
    const std::size_t end = std::min(stage.size(), begin + plans_at_once);
    std::vector<GemmPlan> plans(stage.begin() + static_cast<std::ptrdiff_t>(begin),
                                stage.begin() + static_cast<std::ptrdiff_t>(end));
    for (GemmPlan& plan : plans) plan.convolution = lowered.walk;
    if (is_nearly_explained()) {
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
      if (!operands) continue;
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
  const std::span<const Output> outputs(close.failed);
  Task failed(select(lowered.tasks.back().problem, outputs), select(capture_.d, outputs));
  const Task& first = lowered.tasks.front();
  std::vector<std::vector<PlanResult>> tried(plans.size());
  formats::parallel_for(plans.size(), 1, options_.threads, [&](std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i) {
      if (options_.interrupted && options_.interrupted()) return;
      if (plans[i].unit != known.unit || plans[i].input != known.input) continue;
      const auto operands = failed.prepared->get(plans[i]);
      if (!operands) continue;
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

/// Is there a plan that fails in so few places that the result is damaged rather than another
/// plan's? Another plan's sums differ all over, damage is where it is. Where D is narrow, another
/// plan fails in few places, too, but next to ties of its rounding; damage does not choose them.
bool Search::is_nearly_explained() const {
  if (close_.empty()) return false;
  const Close& x = close_.front();
  const CodeMatrix& d = capture_.d;
  const std::int64_t mismatches = x.result.mismatches;
  const std::int64_t cells = d.batch * ((d.rows + 7) / 8) * ((d.columns + 7) / 8);
  if (mismatches * 4 > d.size() || (x.cells * 4 > cells && mismatches > 3)) return false;
  const bool narrow = formats::bits(d.format) <= 16 && !formats::is_integer(d.format);
  return !narrow || std::max(x.far, x.off_ties) * 2 > mismatches;
}

/// Squares of 8 x 8 outputs that hold a mismatch.
std::int64_t failed_cells(const CodeMatrix& recorded, const CodeMatrix& computed) {
  std::set<std::int64_t> cells;
  for (std::int64_t at = 0; at < recorded.size(); ++at) {
    if (same_element(recorded.format, recorded[at], computed[at])) continue;
    const std::int64_t line = at / recorded.columns;
    cells.insert((line / recorded.rows * recorded.rows + line % recorded.rows / 8) *
                     recorded.columns +
                 at % recorded.columns / 8);
  }
  return std::ssize(cells);
}

/// Is an output further from what a plan gives than another order of its sums could take it? Each
/// of K roundings errs by less than a unit in the last of the bits that are kept, of 13 for
/// products of 8 bits and 10 for FP16 sums; orders of magnitude less, as they cancel.
bool Search::is_beyond(const GemmProblem& problem, const Output& at, double recorded,
                       double computed, const Format& sums) const {
  double magnitude = 0;
  for (std::int64_t k = 0; k < problem.k(); ++k)
    magnitude += std::fabs(scalar::decoded(problem.a.format, problem.a(at.batch, at.row, k)) *
                           scalar::decoded(problem.b.format, problem.b(at.batch, k, at.column)));
  const bool few_bits = formats::bits(problem.a.format) == 8 || sums == formats::fp16;
  const double distance = std::fabs(recorded - computed);
  return distance > std::fabs(capture_.alpha) * magnitude * (few_bits ? 0x1p-6 : 0x1p-12);
}

void Search::describe_mismatches(const Task& task, const CodeMatrix& computed, const Format& sums,
                                 Close& close) const {
  const CodeMatrix& recorded = task.d;
  const std::vector<bool> near_tie =
      near_tie_outputs(capture_, close.result.plan, options_.threads);
  constexpr std::size_t most_failed = 6;
  close.cells = failed_cells(recorded, computed);
  const std::int64_t step =
      std::max<std::int64_t>(1, close.result.mismatches / std::int64_t{most_failed});
  std::int64_t count = 0;
  for (std::int64_t at = 0; at < recorded.size(); ++at) {
    if (same_element(recorded.format, recorded[at], computed[at])) continue;
    const auto distance = code_distance(recorded.format, recorded[at], computed[at]);
    close.far += distance.value_or(0) > 16 ? 1 : 0;
    if (count++ % step == 0 && close.failed.size() < most_failed) {
      close.failed.push_back({at / (recorded.rows * recorded.columns),
                              at / recorded.columns % recorded.rows, at % recorded.columns});
      const bool beyond = is_beyond(task.problem, close.failed.back(),
                                    scalar::decoded(recorded.format, recorded[at]),
                                    scalar::decoded(computed.format, computed[at]), sums);
      close.beyond += beyond ? 1 : 0;
    }
    const bool tie = !near_tie.empty() && near_tie[static_cast<std::size_t>(at)];
    close.off_ties += tie ? 0 : 1;
  }
}

/// Mismatches of a plan on the tasks before `task_count`, of the last one. It is given up, as -1
/// (or 1, where nothing is `tolerated`), once more than that part of a sample fails.
Search::Close Search::count_on(std::deque<Task>& tasks, const GemmPlan& plan,
                               std::int64_t tolerated, std::size_t task_count) const {
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
      describe_mismatches(task, d, operands->sum, close);
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
  if (!result_.explained() && is_nearly_explained()) run_neighbours(lowered);
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
    if (options_.simple && number > candidates_.simple_stages) return;
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
