#include "emulator/operator_search/all_reduce_search.hpp"

#include <algorithm>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "emulator/operators/collectives/all_reduce.hpp"
#include "formats/support/error.hpp"
#include "formats/support/parallel.hpp"

namespace guardbit::emulator {

namespace {

namespace ops = operators;
using formats::Error;
using ops::AllReducePlan;
using ops::ReductionOrder;
using OrderKind = ReductionOrder::Kind;

/// Orders fit into a word of bits with both trees.
constexpr std::int64_t most_ranks = 62;

/// For each element the orders that give its result, a bit each: rings by their first rank, then
/// the two trees.
class Orders {
 public:
  explicit Orders(const OperatorQuestion& q)
      : ranks_(static_cast<int>(q.input.shape[0])),
        reduction_(q.op == SearchedOperator::all_reduce ? ops::Reduction::sum
                                                        : ops::Reduction::average),
        right_(static_cast<std::size_t>(q.output.count())) {
    for (int rank = 0; rank < ranks_; ++rank) orders_.push_back({OrderKind::ring, rank});
    for (const int tree : {0, 1})
      if (ops::knows_order(reduction_, ranks_, {OrderKind::tree, tree}))
        orders_.push_back({OrderKind::tree, tree});
    std::vector<ops::OrderedReduction> reductions;
    for (const ReductionOrder& order : orders_)
      reductions.emplace_back(q.output.type, reduction_, ranks_, order);
    constexpr std::size_t grain = 1024;
    formats::parallel_for(right_.size(), grain, q.threads, [&](std::size_t begin, std::size_t end) {
      if (q.interrupted()) return;
      std::vector<std::uint64_t> codes(static_cast<std::size_t>(ranks_));
      for (std::size_t i = begin; i < end; ++i) {
        const auto at = static_cast<std::int64_t>(i);
        for (std::int64_t rank = 0; rank < ranks_; ++rank)
          codes[static_cast<std::size_t>(rank)] =
              ops::code_at(q.input, rank * q.output.count() + at);
        const std::uint64_t recorded = ops::code_at(q.output, at);
        for (std::size_t o = 0; o < reductions.size(); ++o)
          if (reductions[o](codes) == recorded) right_[i] |= std::uint64_t{1} << o;
      }
    });
  }

  int ranks() const { return ranks_; }
  bool knows_trees() const { return orders_.size() == static_cast<std::size_t>(ranks_) + 2; }
  std::int64_t elements() const { return std::ssize(right_); }
  /// Elements that no order gives, and those that some order does not.
  std::int64_t wrong() const { return std::ranges::count(right_, std::uint64_t{0}); }
  std::int64_t telling() const {
    const std::uint64_t all = (std::uint64_t{1} << orders_.size()) - 1;
    return std::ssize(right_) - std::ranges::count(right_, all);
  }

  /// Elements that a plan misses, counted up to `most`.
  std::int64_t misses(const AllReducePlan& plan, std::int64_t most) const {
    std::int64_t count = 0;
    for (const ops::OrderedRun& run : ops::runs_of(plan)) {
      const std::uint64_t bit = std::uint64_t{1} << number_of(run.order);
      for (std::int64_t i = run.begin; i < run.end && count <= most; ++i)
        count += (right_[static_cast<std::size_t>(i)] & bit) == 0 ? 1 : 0;
    }
    return count;
  }

  /// Runs of elements, as long as they can be, that one order gives.
  std::vector<ops::OrderedRun> runs() const {
    std::vector<ops::OrderedRun> runs;
    std::uint64_t common = 0;
    for (std::int64_t i = 0; i < elements(); ++i) {
      const std::uint64_t mine = right_[static_cast<std::size_t>(i)];
      if (runs.empty() || (common & mine) == 0) {
        runs.push_back({i, i, {}});
        common = mine;
      }
      common &= mine;
      runs.back().end = i + 1;
      for (std::size_t o = orders_.size(); o-- > 0;)
        if ((common >> o & 1) != 0) runs.back().order = orders_[o];
    }
    return runs;
  }

 private:
  std::size_t number_of(const ReductionOrder& order) const {
    const auto which = static_cast<std::size_t>(order.which);
    return order.kind == OrderKind::ring ? which : static_cast<std::size_t>(ranks_) + which;
  }

  int ranks_;
  ops::Reduction reduction_;
  std::vector<ReductionOrder> orders_;
  std::vector<std::uint64_t> right_;
};

std::string text_of(const ops::OrderedRun& run) {
  return std::to_string(run.begin) + " on: " +
         (run.order.kind == OrderKind::ring ? "from rank " + std::to_string(run.order.which)
                                            : "up tree " + std::to_string(run.order.which + 1));
}

/// Every cut that NCCL's scheduler can make, the one of few channels first.
std::vector<AllReducePlan> plans_of(const Orders& orders, int element_bytes) {
  constexpr int most_channels = 64;
  std::vector<AllReducePlan> plans;
  std::set<std::pair<std::vector<std::int64_t>, std::int64_t>> cuts;
  for (int channels = 1; channels <= most_channels; ++channels)
    for (const bool low_latency : {false, true}) {
      AllReducePlan plan;
      plan.ranks = orders.ranks();
      plan.element_bytes = element_bytes;
      plan.channels =
          ops::channel_elements(orders.elements(), element_bytes, low_latency, channels);
      const std::int64_t limit = ops::longest_chunk(element_bytes, low_latency);
      // A limit that no chunk reaches is none.
      const std::int64_t chunk = (plan.channels.front() + plan.ranks - 1) / plan.ranks;
      plan.longest_chunk = limit != 0 && chunk > limit ? limit : 0;
      if (!cuts.insert({plan.channels, plan.longest_chunk}).second) continue;
      plans.push_back(plan);
      if (!orders.knows_trees() || plan.longest_chunk != 0) continue;
      plan.kind = OrderKind::tree;
      const int used = static_cast<int>(plan.channels.size());
      plan.first_tree_channels = used;
      plans.push_back(plan);
      // Half of all channels of the communicator have the second tree, of which some are used.
      for (int first = 1; first < used; ++first) {
        plan.first_tree_channels = first;
        plans.push_back(plan);
      }
    }
  return plans;
}

}  // namespace

OperatorAnswer search_all_reduce(const OperatorQuestion& q) {
  const ops::Dimensions& shape = q.input.shape;
  if (shape.empty() || shape[0] < 2 || shape[0] > most_ranks ||
      !std::equal(shape.begin() + 1, shape.end(), q.output.shape.begin(), q.output.shape.end()))
    throw Error(q.input_place, "needs the tensors of 2 to " + std::to_string(most_ranks) +
                                   " GPUs, each of the output's shape, along its first dimension");
  if (q.input.type != q.output.type)
    throw Error(q.output_place,
                "has another type than " + q.input_place + ", which no all-reduce gives");
  if (q.output.count() == 0) throw Error(q.output_place, "has no elements");
  const Orders orders(q);
  OperatorAnswer answer;
  answer.outputs = q.output.count();
  if (q.interrupted()) return answer;
  constexpr std::size_t most_rules = 8;
  for (const AllReducePlan& plan : plans_of(orders, q.output.element_bytes())) {
    if (answer.exact.size() >= most_rules) break;
    ++answer.tried;
    const std::int64_t most = answer.nearest ? answer.nearest->mismatches : answer.outputs;
    const std::int64_t misses = orders.misses(plan, most);
    if (misses == 0)
      answer.exact.push_back({ops::text_of(plan), 0});
    else if (!answer.nearest || misses < most)
      answer.nearest = {ops::text_of(plan), misses};
  }
  answer.refuting = orders.telling();
  if (answer.explained()) return answer;
  // Rings of another cut, of several tensors in one call for example.
  ++answer.tried;
  if (const std::int64_t wrong = orders.wrong(); wrong != 0) {
    answer.nearest = {"any order of NCCL's rings and trees, element by element", wrong};
    return answer;
  }
  const std::vector<ops::OrderedRun> runs = orders.runs();
  constexpr std::size_t listed = 16;
  if (std::ssize(runs) > answer.outputs / 8) return answer;  // says nothing
  std::string rule = "NCCL's rings or trees in " + std::to_string(runs.size()) +
                     " runs of elements, which no cut of one tensor by NCCL gives: elements ";
  for (std::size_t i = 0; i < std::min(listed, runs.size()); ++i)
    rule += (i == 0 ? "" : ", ") + text_of(runs[i]);
  answer.exact.push_back({rule + (runs.size() > listed ? ", …" : ""), 0});
  return answer;
}

}  // namespace guardbit::emulator
