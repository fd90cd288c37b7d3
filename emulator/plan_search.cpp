#include "emulator/plan_search.hpp"

#include <algorithm>
#include <map>
#include <memory>
#include <mutex>
#include <utility>

#include "emulator/gemm.hpp"
#include "emulator/gemm_scalar.hpp"
#include "emulator/plan_candidates.hpp"
#include "formats/error.hpp"
#include "formats/parallel.hpp"

namespace guardbit::emulator {

namespace {

bool same(const Format& format, std::uint64_t recorded, std::uint64_t computed) {
  if (recorded == computed) return true;
  if (formats::is_integer(format)) return false;
  return formats::decode(format, recorded).kind == formats::Kind::nan &&
         formats::decode(format, computed).kind == formats::Kind::nan;
}

std::int64_t count_mismatches(const CodeMatrix& recorded, const CodeMatrix& computed) {
  std::int64_t count = 0;
  for (std::int64_t i = 0; i < recorded.size(); ++i)
    count += same(recorded.format, recorded[i], computed[i]) ? 0 : 1;
  return count;
}

/// Up to `count` of `all` indices, evenly spread, the first and the last among them.
std::vector<std::int64_t> spread(std::int64_t all, std::int64_t count) {
  std::vector<std::int64_t> result;
  if (all <= count) {
    for (std::int64_t i = 0; i < all; ++i) result.push_back(i);
    return result;
  }
  for (std::int64_t i = 0; i < count; ++i) result.push_back(i * (all - 1) / (count - 1));
  return result;
}

/// A problem with its answer.
struct Task {
  GemmProblem problem;
  CodeMatrix d;
};

/// Operands by unit and conversion, prepared once.
class Preparations {
 public:
  explicit Preparations(const GemmProblem& problem) : problem_(problem) {}

  /// Null where the unit does not take the problem.
  std::shared_ptr<const GemmOperands> get(const GemmPlan& plan) {
    const std::scoped_lock lock(mutex_);
    const std::string key = plan.unit.arch + plan.unit.instruction +
                            std::to_string(static_cast<int>(plan.input.rounding)) + "/" +
                            std::to_string(plan.input.pieces) + "/" + std::to_string(plan.input.ranks);
    auto [entry, is_new] = prepared_.try_emplace(key);
    if (is_new) {
      try {
        entry->second = std::make_shared<const GemmOperands>(prepare(plan, problem_, "search"));
      } catch (const formats::Error&) {
        entry->second = nullptr;
      }
    }
    return entry->second;
  }

 private:
  const GemmProblem& problem_;
  std::mutex mutex_;
  std::map<std::string, std::shared_ptr<const GemmOperands>> prepared_;
};

/// A plan with every order of reduction and every epilogue that matter to it.
template <class Visit>
void for_each_ending(const Candidates& candidates, const GemmPlan& plan, bool split, bool lanes,
                     const Visit& visit) {
  static const std::vector<SumOrder> one = {SumOrder::ascending};
  static const std::vector<Format> plain = {formats::fp32};
  GemmPlan x = plan;
  for (const Format& workspace : split ? candidates.workspaces : plain) {
    for (const SumOrder split_order : split ? candidates.orders : one) {
      for (const SumOrder lane_order : lanes ? candidates.orders : one) {
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
  void run_stage(const std::vector<GemmPlan>& stage, const Task& all, Preparations& prepared_all,
                 const Task& sample, Preparations& prepared_sample);
  void try_plan(const GemmPlan& plan, const Task& task, const GemmOperands& operands, int threads,
                std::vector<PlanResult>& results) const;

  const GemmCapture& capture_;
  const SearchOptions& options_;
  Candidates candidates_;
  SearchResult result_;
  std::vector<PlanResult> nearest_;  ///< on the sample
};

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
      GemmPlan whole = x;
      whole.epilogue = epilogue;
      const Sums sums = add_up(whole.split, epilogue.compute, parts);
      const CodeMatrix d = finish(epilogue, task.problem, sums);
      results.push_back({whole, count_mismatches(task.d, d)});
    }
  });
}

void Search::run_stage(const std::vector<GemmPlan>& stage, const Task& all,
                       Preparations& prepared_all, const Task& sample,
                       Preparations& prepared_sample) {
  std::vector<std::vector<PlanResult>> tried(stage.size());
  formats::parallel_for(stage.size(), 1, options_.threads, [&](std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i) {
      if (options_.interrupted && options_.interrupted()) return;
      const auto operands = prepared_sample.get(stage[i]);
      if (operands) try_plan(stage[i], sample, *operands, 1, tried[i]);
    }
  });
  std::vector<PlanResult> passed;
  for (const auto& results : tried) {
    result_.tried += std::ssize(results);
    for (const PlanResult& x : results) (x.mismatches == 0 ? passed : nearest_).push_back(x);
  }
  const auto fewer = [](const PlanResult& x, const PlanResult& y) {
    return x.mismatches < y.mismatches;
  };
  std::stable_sort(nearest_.begin(), nearest_.end(), fewer);
  if (nearest_.size() > 8) nearest_.resize(8);
  for (const PlanResult& candidate : passed) {
    if (options_.interrupted && options_.interrupted()) return;
    if (result_.plans.size() >= options_.most_plans && result_.explained()) return;
    const auto operands = prepared_all.get(candidate.plan);
    const Sums sums = add_up(candidate.plan.split, candidate.plan.epilogue.compute,
                             partial_sums(candidate.plan, *operands, all.problem, options_.threads));
    const CodeMatrix d = finish(candidate.plan.epilogue, all.problem, sums);
    result_.plans.push_back({candidate.plan, count_mismatches(all.d, d)});
    std::stable_sort(result_.plans.begin(), result_.plans.end(), fewer);
    if (result_.plans.size() > options_.most_plans) result_.plans.resize(options_.most_plans);
  }
}

SearchResult Search::run() {
  std::vector<ConvolutionOrder> walks = {{}};
  if (capture_.convolution) {
    using Walk = ConvolutionOrder::Walk;
    walks.clear();
    for (const Walk walk : {Walk::rsc, Walk::crs, Walk::src}) {
      for (const int fill : {1, 4, 8, 16, 32, 64}) {
        if (walk == Walk::crs && fill != 1) continue;
        walks.push_back({walk, 0, fill});
        const std::int64_t channels = capture_.convolution->c / capture_.convolution->groups;
        for (const int block : {8, 16, 32, 64, 128})
          if (block < channels && block % fill == 0) walks.push_back({walk, block, fill});
      }
    }
  }
  const std::int64_t side = formats::bits(capture_.d.format) <= 16 ? 16 : 8;
  Selection2d selection;
  struct Lowered {
    Task all, sample;
    std::unique_ptr<Preparations> prepared_all, prepared_sample;
    ConvolutionOrder walk;
  };
  std::vector<std::unique_ptr<Lowered>> lowered;
  for (const ConvolutionOrder& walk : walks) {
    auto x = std::make_unique<Lowered>();
    x->walk = walk;
    x->all = {capture_.lowered(walk), capture_.d};
    selection = {spread(x->all.problem.m(), side), spread(x->all.problem.n(), side)};
    x->sample = {select(x->all.problem, selection), select(x->all.d, selection)};
    x->prepared_all = std::make_unique<Preparations>(x->all.problem);
    x->prepared_sample = std::make_unique<Preparations>(x->sample.problem);
    lowered.push_back(std::move(x));
  }
  for (const std::vector<GemmPlan>& stage : candidates_.stages) {
    for (const auto& x : lowered) {
      std::vector<GemmPlan> plans = stage;
      for (GemmPlan& plan : plans) plan.convolution = x->walk;
      run_stage(plans, x->all, *x->prepared_all, x->sample, *x->prepared_sample);
      if (result_.explained()) return result_;
    }
  }
  if (result_.plans.empty()) {
    for (const PlanResult& near : nearest_) {
      for (const auto& x : lowered) {
        if (x->walk != near.plan.convolution) continue;
        const CodeMatrix d = execute(near.plan, x->all.problem, options_.threads);
        result_.plans.push_back({near.plan, count_mismatches(x->all.d, d)});
      }
    }
    std::stable_sort(result_.plans.begin(), result_.plans.end(), [](const auto& x, const auto& y) {
      return x.mismatches < y.mismatches;
    });
  }
  return result_;
}

}  // namespace

std::vector<std::int64_t> mismatches(const GemmCapture& capture, const CodeMatrix& computed) {
  std::vector<std::int64_t> list;
  for (std::int64_t i = 0; i < capture.d.size(); ++i)
    if (!same(capture.d.format, capture.d[i], computed[i])) list.push_back(i);
  return list;
}

SearchResult search_plans(const GemmCapture& capture, const SearchOptions& options) {
  return Search(capture, options).run();
}

}  // namespace guardbit::emulator
