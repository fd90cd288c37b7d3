#include "emulator/plan_search/plan_search.hpp"

#include <algorithm>
#include <bit>
#include <deque>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "emulator/gemm/gemm.hpp"
#include "emulator/gemm/plan_fit.hpp"
#include "emulator/plan_search/candidates.hpp"
#include "emulator/plan_search/near_miss.hpp"
#include "emulator/plan_search/samples.hpp"
#include "formats/support/parallel.hpp"
#include "formats/support/stop.hpp"

namespace guardbit::emulator {

namespace {

/// True if this order adds so few parts as an earlier order of Candidates::orders does.
bool is_known_order(SumOrder order, int parts) {
  switch (order) {
    case SumOrder::descending:
    case SumOrder::halves: return parts == 2;
    case SumOrder::last_first: return parts == 2;
    case SumOrder::shuffles: return parts <= 3 || std::has_single_bit(static_cast<unsigned>(parts));
    case SumOrder::adjacent:
    case SumOrder::adjacent_last:
    case SumOrder::buffers: return parts <= 3;
    case SumOrder::by_four: return parts <= 4;
    default: return false;
  }
}

/// Visits the plan with every order of its partial sums, and every format that they are stored in;
/// a plan that names orders, with these alone.
template <class Visit>
void for_each_ending(const Candidates& candidates, const GemmPlan& plan, bool split, bool sliced,
                     const Visit& visit) {
  static const std::vector<Format> plain = {formats::fp32};
  const bool is_named =
      plan.split.order != SumOrder::ascending || plan.slices.order != SumOrder::ascending;
  const auto orders = [&](bool is_cut, const Partition& p) {
    return is_cut && !is_named ? candidates.orders : std::vector<SumOrder>{p.order};
  };
  GemmPlan x = plan;
  for (const Format& workspace : split && !is_named ? candidates.workspaces : plain) {
    for (const SumOrder split_order : orders(split, plan.split)) {
      // Sums that are added in place are stored in D, whatever the workspace.
      if (split_order == SumOrder::in_place && workspace != candidates.workspaces.front()) continue;
      // Parts of a split lie in different blocks, so no shuffles within a warp add them. (Slices
      // lie in one block: none of them begins with the last part, as blocks do that wait in turn.)
      if (!is_named &&
          (split_order == SumOrder::shuffles || is_known_order(split_order, plan.split.parts)))
        continue;
      for (const SumOrder slice_order : orders(sliced, plan.slices)) {
        if (slice_order == SumOrder::in_place ||
            (!is_named && (slice_order == SumOrder::last_first ||
                           is_known_order(slice_order, plan.slices.parts))))
          continue;
        x.split.order = split_order;
        x.split.sums = split ? workspace : formats::fp32;
        x.slices.order = slice_order;
        visit(x);
      }
    }
  }
}

/// Can the plan be executed with these operands?
bool fits(const GemmPlan& plan, const GemmProblem& problem, const GemmOperands& operands) {
  return chains_fit(plan, operands) && !misfit(plan, problem, operands, "search");
}

/// The plans of a stage, made once for all walks through K.
struct MadeStage {
  std::string_view name;
  std::vector<GemmPlan> plans;
};

/// One search. A stage's plans are tried on the first two samples; those that pass both, on all
/// outputs. Plans that nearly pass are near misses. Once a near miss looks like the plan of a
/// damaged result, later plans are tried on the outputs that it gets wrong.
class Search {
 public:
  Search(const GemmCapture& capture, const SearchOptions& options)
      : capture_(capture), options_(options) {}

  SearchResult run();

 private:
  void run_stages(std::deque<Lowered>& lowered);
  void run_other_units(std::deque<Lowered>& lowered);
  bool run_stage(const MadeStage& stage, Lowered& lowered);
  void report_nearest(const std::deque<Lowered>& lowered);
  void add_exact(const PlanResult& found);
  bool is_nearly_explained() const {
    return !near_misses_.empty() && nearly_explains(near_misses_.front(), capture_);
  }
  std::optional<NearMiss> judge(std::deque<Sample>& samples, const GemmPlan& plan, double tolerated,
                                std::size_t sample_count) const;
  void run_plans(const std::vector<GemmPlan>& plans, std::deque<Sample>& samples);
  void try_on_failed_outputs(const std::vector<GemmPlan>& plans, Lowered& lowered);
  void try_plan(const GemmPlan& plan, const Sample& sample, const GemmOperands& operands,
                int threads, std::vector<PlanResult>& results) const;

  bool is_stopped() const { return options_.interrupted && options_.interrupted(); }

  const GemmCapture& capture_;
  const SearchOptions& options_;
  Candidates candidates_;
  SearchResult result_;
  /// best plans by mismatches on the second sample
  std::vector<PlanResult> nearest_;
  /// plans that failed the first, by mismatches there
  std::vector<PlanResult> far_;
  /// the best first
  std::vector<NearMiss> near_misses_;
};

/// A plan is given up on a sample above this. Not zero: a damaged result differs in some outputs
/// from its own plan.
std::int64_t most_failures(const Sample& sample) { return sample.d.size() / 4; }

/// Appends the mismatches of the plan on one sample, with each order of its sums and each epilogue.
/// Partial sums and their total are computed once for all that share them.
void Search::try_plan(const GemmPlan& plan, const Sample& sample, const GemmOperands& operands,
                      int threads, std::vector<PlanResult>& results) const {
  const bool sliced = !plan.slices.whole();
  // Sums of slices and of stream-K's shares are added in the epilogue's format.
  const bool adds = sliced || !plan.stream_k.none();
  std::vector<Sums> parts;
  std::optional<std::pair<SumOrder, Format>> parts_of;  // slices' order, that format
  for_each_ending(candidates_, plan, !plan.split.whole(), sliced, [&](const GemmPlan& x) {
    std::optional<Format> added;  // the format in which `sums` were added
    Sums sums;
    for (Epilogue epilogue : candidates_.epilogues) {
      if (plan.epilogue.scales_operand()) {
        if (epilogue.alpha_on != Epilogue::AlphaOn::sum) continue;
        epilogue.alpha_on = plan.epilogue.alpha_on;
      }
      if (plan.epilogue.addition == Epilogue::Addition::initial) {
        if (epilogue.addition != candidates_.epilogues.front().addition) continue;
        epilogue.addition = plan.epilogue.addition;
      }
      // Only FP16 sums are ever added and scaled in FP16.
      if (epilogue.compute == formats::fp16 && operands.sum != formats::fp16) continue;
      GemmPlan whole = x;
      whole.epilogue = epilogue;
      const std::pair wanted(x.slices.order, adds ? epilogue.compute : formats::fp32);
      if (parts_of != wanted) {
        parts = partial_sums(whole, operands, sample.problem, {nullptr, threads});
        parts_of = wanted;
        added.reset();
      }
      const bool in_place = x.split.order == SumOrder::in_place;
      if (!in_place && added != epilogue.compute)
        sums = add_up(x.split, *(added = epilogue.compute), parts);
      const CodeMatrix d =
          in_place ? finish(whole, sample.problem, parts) : finish(epilogue, sample.problem, sums);
      results.push_back({std::move(whole), count_mismatches(sample.d, d)});
    }
  });
}

/// Tries one stage; true if the search can stop.
bool Search::run_stage(const MadeStage& stage, Lowered& lowered) {
  constexpr std::size_t plans_at_once = 256;
  for (std::size_t begin = 0; begin < stage.plans.size(); begin += plans_at_once) {
    const std::size_t end = std::min(stage.plans.size(), begin + plans_at_once);
    std::vector<GemmPlan> plans(stage.plans.begin() + static_cast<std::ptrdiff_t>(begin),
                                stage.plans.begin() + static_cast<std::ptrdiff_t>(end));
    for (GemmPlan& plan : plans) plan.convolution = lowered.walk;
    if (options_.progress) options_.progress(stage.name, result_.tried);
    if (is_nearly_explained())
      try_on_failed_outputs(plans, lowered);
    else
      run_plans(plans, lowered.samples);
    if (result_.explained() || is_stopped()) return true;
  }
  return false;
}

/// What became of one plan of a stage, with each order of its sums and each epilogue.
struct TriedPlan {
  /// variations tried
  std::int64_t count = 0;
  /// on the first sample
  PlanResult best;
  /// on the second; empty if the best failed the first
  std::vector<PlanResult> results;
};

/// Each plan once, as stages overlap; a unit's plain order of K before wide loads that give the
/// same.
void Search::add_exact(const PlanResult& found) {
  std::vector<PlanResult>& plans = result_.plans;
  const auto is_it = [&](const GemmPlan& plan) {
    return std::any_of(plans.begin(), plans.end(), [&](const auto& x) { return x.plan == plan; });
  };
  if (is_it(found.plan)) return;
  const auto same_but_loads = [&](const PlanResult& x) {
    GemmPlan plain = x.plan;
    plain.loads = {};
    return x.plan != plain && plain == found.plan;
  };
  plans.insert(std::find_if(plans.begin(), plans.end(), same_but_loads), found);
}

/// Tries plans on the first two samples; keeps exact ones as results and the best other one as a
/// near miss.
void Search::run_plans(const std::vector<GemmPlan>& stage, std::deque<Sample>& samples) {
  Sample &first = samples[0], &few = samples[1];
  const auto fewer = [](const PlanResult& x, const PlanResult& y) {
    return x.mismatches < y.mismatches;
  };
  std::vector<TriedPlan> all_tried(stage.size());
  formats::parallel_for(stage.size(), 1, options_.threads, [&](std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i) {
      if (is_stopped()) return;
      const auto operands = first.prepared->get(stage[i]);
      if (!operands || !fits(stage[i], first.problem, *operands)) continue;
      std::vector<PlanResult> results;
      try_plan(stage[i], first, *operands, 1, results);
      TriedPlan& tried = all_tried[i];
      tried.count = std::ssize(results);
      tried.best = *std::min_element(results.begin(), results.end(), fewer);
      if (tried.best.mismatches > most_failures(first)) continue;
      // A sparse A may have its first wrong group here.
      const auto operands_of_few = few.prepared->get(stage[i]);
      if (operands_of_few) try_plan(stage[i], few, *operands_of_few, 1, tried.results);
    }
  });
  std::vector<PlanResult> passed, nearly;
  for (const TriedPlan& tried : all_tried) {
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
    if (is_stopped()) return;
    if (result_.plans.size() >= options_.most_plans) return;
    const auto judged = judge(samples, candidate.plan, 0, samples.size());
    const std::int64_t mismatches = judged ? judged->result.mismatches : 1;
    if (mismatches == 0)
      add_exact({candidate.plan, 0});
    else
      nearly.push_back({candidate.plan, mismatches});
  }
  if (result_.explained()) return;
  std::stable_sort(nearly.begin(), nearly.end(), fewer);
  if (nearly.size() > 16) nearly.resize(16);
  // All outputs cost much: only the best plan on the samples is executed on them, if it is better
  // than the near misses so far.
  std::optional<NearMiss> best;
  for (const PlanResult& x : nearly) {
    if (is_stopped()) return;
    std::optional<NearMiss> judged = judge(samples, x.plan, 0.25, samples.size() - 1);
    if (judged && (!best || judged->on_sample < best->on_sample)) best = std::move(judged);
  }
  if (!best || (!near_misses_.empty() && near_misses_.front().on_sample <= best->on_sample)) return;
  if (auto on_all = judge(samples, best->result.plan, 1, samples.size()))
    near_misses_.insert(near_misses_.begin(), *std::move(on_all));
}

/// Tries plans on the outputs that the best near miss gets wrong. They may be damaged, or another
/// plan may differ from the near miss only there: where shares of stream-K end, where the last part
/// of K is incomplete. Such a plan has the same unit.
void Search::try_on_failed_outputs(const std::vector<GemmPlan>& plans, Lowered& lowered) {
  const NearMiss near_miss = near_misses_.front();
  const GemmPlan& known = near_miss.result.plan;
  if (lowered.walk != known.convolution || near_miss.out_of_reach * 2 > near_miss.failed.size())
    return;
  // Sums of FP8 products round little, so that many units come near a result; narrow results hide
  // how exact sums were. Pairs of pieces in another order change few outputs.
  const bool is_precise = known.unit.arch == "simt" || known.input.pieces > 1;
  const bool any_unit = formats::bits(capture_.problem.a.format) == 8 ||
                        (formats::bits(capture_.d.format) <= 16 && is_precise);
  const std::span<const Output> outputs(near_miss.failed);
  Sample failed(select(lowered.samples.back().problem, outputs), select(capture_.d, outputs));
  const Sample& first = lowered.samples.front();
  std::vector<std::vector<PlanResult>> tried(plans.size());
  formats::parallel_for(plans.size(), 1, options_.threads, [&](std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i) {
      if (is_stopped()) return;
      const bool same_unit =
          plans[i].unit == known.unit &&
          (plans[i].input == known.input || (plans[i].input.pieces > 1 && known.input.pieces > 1));
      if (!same_unit && !any_unit) continue;
      if (known.slices.whole() && !plans[i].slices.whole()) continue;
      const auto operands = failed.prepared->get(plans[i]);
      if (!operands || !fits(plans[i], failed.problem, *operands)) continue;
      std::vector<PlanResult> elsewhere;
      try_plan(plans[i], failed, *operands, 1, tried[i]);
      const auto hopeless = [&](const PlanResult& x) { return x.mismatches * 2 > failed.d.size(); };
      if (std::all_of(tried[i].begin(), tried[i].end(), hopeless)) continue;
      const auto operands_elsewhere = first.prepared->get(plans[i]);
      if (!operands_elsewhere) continue;
      try_plan(plans[i], first, *operands_elsewhere, 1, elsewhere);
      for (std::size_t ending = 0; ending < elsewhere.size(); ++ending)
        if (elsewhere[ending].mismatches > most_failures(first))
          tried[i][ending].mismatches = failed.d.size();
    }
  });
  for (const auto& results : tried) {
    result_.tried += std::ssize(results);
    for (const PlanResult& x : results) {
      if (x.mismatches * 2 > failed.d.size() || x.plan == known) continue;
      if (is_stopped()) return;
      if (result_.plans.size() >= options_.most_plans) return;
      auto other = judge(lowered.samples, x.plan, 0.25, lowered.samples.size() - 1);
      if (!other || other->on_sample > near_misses_.front().on_sample) continue;
      other = judge(lowered.samples, x.plan, 1, lowered.samples.size());
      if (other->result.mismatches == 0) add_exact(other->result);
      if (other->result.mismatches < near_misses_.front().result.mismatches)
        near_misses_.insert(near_misses_.begin(), *std::move(other));
    }
  }
}

/// Mismatches of a plan on sample `sample_count` - 1, after all from the third one on. Nothing if
/// more than the part `tolerated` of a sample before all outputs fails.
std::optional<NearMiss> Search::judge(std::deque<Sample>& samples, const GemmPlan& plan,
                                      double tolerated, std::size_t sample_count) const {
  NearMiss judged;
  judged.result.plan = plan;
  for (std::size_t number = 2; number < sample_count; ++number) {
    const Sample& sample = samples[number];
    const auto operands = sample.prepared->get(plan);
    if (!operands) return {};
    const CodeMatrix d =
        finish(plan, sample.problem,
               partial_sums(plan, *operands, sample.problem, {nullptr, options_.threads}));
    const std::int64_t mismatches = count_mismatches(sample.d, d);
    judged.result.mismatches = mismatches;
    if (&sample == &samples.back() && mismatches != 0)
      describe_mismatches(capture_, sample, d, operands->sum, options_.threads, judged);
    if (&sample == &samples.back()) break;
    if (number == 2) judged.on_sample = mismatches;
    if (static_cast<double>(mismatches) > tolerated * static_cast<double>(sample.d.size()))
      return {};
  }
  return judged;
}

SearchResult Search::run() {
  std::deque<Lowered> lowered;
  formats::ends_before(options_.interrupted, [&] {
    candidates_ = candidates_for(capture_, options_.split);
    lowered = lowered_samples(capture_, candidates_, options_.threads);
    run_stages(lowered);
    if (!result_.explained() && is_nearly_explained()) run_other_units(lowered);
  });
  result_.stopped = !result_.explained() && is_stopped();
  if (result_.plans.empty())
    for (const NearMiss& x : near_misses_) result_.plans.push_back(x.result);
  if (result_.plans.empty())
    formats::ends_before(formats::shortly_after(options_.interrupted),
                         [&] { report_nearest(lowered); });
  return result_;
}

/// The four likely walks through K take every stage; the others, only those of one chain over K.
void Search::run_stages(std::deque<Lowered>& lowered) {
  const auto likely = std::min<std::size_t>(lowered.size(), 4);
  std::vector<MadeStage> simple;
  for (std::size_t number = 0; number < candidates_.stages.size(); ++number) {
    const bool only_simple = options_.simple || !candidates_.plausible;
    if (only_simple && number > candidates_.simple_stages) return;
    const CandidateStage& candidates = candidates_.stages[number];
    MadeStage stage = {candidates.name, candidates.plans()};
    for (std::size_t w = 0; w < likely; ++w)
      if (run_stage(stage, lowered[w])) return;
    if (!stage.plans.empty()) result_.ruled_out.push_back(candidates.name);
    if (number <= candidates_.simple_stages && lowered.size() > likely)
      simple.push_back(std::move(stage));
    if (number != candidates_.simple_stages) continue;
    for (std::size_t w = likely; w < lowered.size(); ++w)
      for (const MadeStage& plans : simple)
        if (run_stage(plans, lowered[w])) return;
  }
}

/// Tries the best near miss with every other unit and conversion: they may differ from it in a few
/// outputs only. Only then is the result called damaged.
void Search::run_other_units(std::deque<Lowered>& lowered) {
  const GemmPlan known = near_misses_.front().result.plan;
  std::vector<GemmPlan> plans;
  for (const GemmPlan& unit : candidates_.units) {
    for (const std::int64_t tile : {0, 8, 16, 32, 64, 128}) {
      GemmPlan& plan = plans.emplace_back(known);
      plan.unit = unit.unit;
      plan.input = unit.input;
      plan.loads = unit.loads;
      plan.epilogue.alpha_on = unit.epilogue.alpha_on;
      plan.residue_first = tile;
    }
  }
  for (Lowered& x : lowered)
    if (x.walk == known.convolution) run_plans(plans, x.samples);
}

/// Reports the plans that did best on a sample, with their mismatches on all outputs.
void Search::report_nearest(const std::deque<Lowered>& lowered) {
  for (const PlanResult& near : nearest_.empty() ? far_ : nearest_) {
    for (const Lowered& x : lowered) {
      if (x.walk != near.plan.convolution) continue;
      if (is_stopped() && !result_.plans.empty()) break;
      const Sample& all = x.samples.back();
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

std::string distinguishing_operands(const std::vector<PlanResult>& plans) {
  bool units = false, cuts = false, endings = false, inputs = false, walks = false;
  const GemmPlan& x = plans.front().plan;
  for (const PlanResult& other : plans) {
    const GemmPlan& y = other.plan;
    units = units || x.unit != y.unit;
    inputs = inputs || x.input != y.input;
    walks = walks || x.convolution != y.convolution || x.loads != y.loads;
    cuts = cuts || x.split != y.split || x.stream_k != y.stream_k || x.slices != y.slices ||
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
