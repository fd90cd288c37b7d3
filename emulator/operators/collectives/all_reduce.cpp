#include "emulator/operators/collectives/all_reduce.hpp"

#include <algorithm>
#include <cmath>
#include <optional>

#include "emulator/functions/function_errors.hpp"
#include "formats/arithmetic.hpp"
#include "formats/codec.hpp"
#include "formats/support/whole_division.hpp"

namespace guardbit::emulator::operators {

namespace {

using formats::Format;
using formats::Unrounded;
using formats::Value;

/// Rounds a step.
std::uint64_t rounded(const Format& format, const Unrounded& x) {
  formats::Overflow overflow;
  overflow.nan = formats::Overflow::Nan::all_ones;
  if (formats::container_bits(format) == 8) {
    overflow.finite = formats::Overflow::Finite::saturate;
    overflow.infinity = formats::Overflow::Infinity::saturate;
  }
  return formats::encode(format, x, formats::Rounding::nearest_even, overflow);
}

/// In the order of numbers, -0 below +0.
bool is_below(double x, double y) {
  return x < y || (x == y && std::signbit(x) && !std::signbit(y));
}

/// Parent and children of a rank in the plain binary tree of ranks 0 … N-1: the lowest bit that is
/// set says how high a rank stands.
struct PlainNode {
  std::optional<int> parent;
  std::vector<int> children;
};

PlainNode plain_node(int ranks, int rank) {
  int bit = 1;
  while (bit < ranks && (bit & rank) == 0) bit <<= 1;
  PlainNode node;
  if (rank == 0) {
    if (ranks > 1) node.children.push_back(bit >> 1);
    return node;
  }
  const int parent = (rank ^ bit) | (bit << 1);
  node.parent = parent < ranks ? parent : rank ^ bit;
  int low = bit >> 1;
  if (low == 0) return node;
  node.children.push_back(rank - low);
  while (low != 0 && rank + low >= ranks) low >>= 1;
  if (low != 0) node.children.push_back(rank + low);
  return node;
}

}  // namespace

ReductionTree reduction_tree(int ranks, int which) {
  // The second tree is the first one seen from the other end, or for an odd number turned by a
  // rank.
  const auto turned = [&](int rank, int by) {
    if (which == 0) return rank;
    return ranks % 2 == 0 ? ranks - 1 - rank : (rank + by + ranks) % ranks;
  };
  ReductionTree tree;
  for (int rank = 0; rank < ranks; ++rank) {
    const PlainNode node = plain_node(ranks, turned(rank, -1));
    std::vector<int>& children = tree.children.emplace_back();
    for (const int child : node.children) children.push_back(turned(child, 1));
    if (!node.parent) tree.root = rank;
  }
  return tree;
}

bool knows_order(Reduction reduction, int ranks, const ReductionOrder& order) {
  if (order.kind == ReductionOrder::Kind::ring || reduction != Reduction::average) return true;
  const ReductionTree tree = reduction_tree(ranks, order.which);
  return std::ranges::all_of(tree.children,
                             [](const std::vector<int>& list) { return list.size() < 2; });
}

OrderedReduction::OrderedReduction(const Format& format, Reduction reduction, int ranks,
                                   const ReductionOrder& order)
    : format_(format), reduction_(reduction), ranks_(ranks), order_(order) {
  if (order.kind == ReductionOrder::Kind::tree) tree_ = reduction_tree(ranks, order.which);
  if (reduction != Reduction::average) return;
  const Value one{formats::Kind::finite, false, 0, 1};
  const Value all{formats::Kind::finite, false, 0, static_cast<std::uint64_t>(ranks)};
  share_ = formats::decode(format, rounded(format, formats::divide(one, all)));
}

std::uint64_t OrderedReduction::operator()(std::span<const std::uint64_t> codes) const {
  if (order_.kind == ReductionOrder::Kind::tree) return up_tree(codes, tree_.root);
  std::uint64_t result = own(codes, order_.which);
  for (int k = 1; k < ranks_; ++k) result = with_own(result, codes, (order_.which + k) % ranks_);
  return result;
}

std::uint64_t OrderedReduction::own(std::span<const std::uint64_t> codes, int rank) const {
  const std::uint64_t code = codes[static_cast<std::size_t>(rank)];
  if (reduction_ != Reduction::average) return code;
  return rounded(format_, formats::multiply(formats::decode(format_, code), share_));
}

std::uint64_t OrderedReduction::with_own(std::uint64_t partial,
                                         std::span<const std::uint64_t> codes, int rank) const {
  const std::uint64_t code = codes[static_cast<std::size_t>(rank)];
  if (reduction_ != Reduction::average) return with(code, partial);
  // FP8 is scaled by itself; the others scale and add in one step.
  if (formats::container_bits(format_) == 8) return with(own(codes, rank), partial);
  return rounded(format_, formats::fused_multiply_add(formats::decode(format_, code), share_,
                                                      formats::decode(format_, partial)));
}

std::uint64_t OrderedReduction::with(std::uint64_t x, std::uint64_t y) const {
  const Value a = formats::decode(format_, x), b = formats::decode(format_, y);
  switch (reduction_) {
    case Reduction::sum:
    case Reduction::average:
      return rounded(format_, formats::add(formats::exactly(a), formats::exactly(b)));
    case Reduction::product: return rounded(format_, formats::multiply(a, b));
    case Reduction::maximum:
    case Reduction::minimum: break;
  }
  // A NaN gives way.
  const double p = double_of(format_, x), q = double_of(format_, y);
  const bool is_other =
      std::isnan(p) || (!std::isnan(q) && is_below(p, q) != (reduction_ == Reduction::minimum));
  return rounded(format_, formats::exactly(is_other ? b : a));
}

std::uint64_t OrderedReduction::up_tree(std::span<const std::uint64_t> codes, int rank) const {
  const std::vector<int>& children = tree_.children[static_cast<std::size_t>(rank)];
  if (children.empty()) return own(codes, rank);
  std::uint64_t sum = with_own(up_tree(codes, children.front()), codes, rank);
  for (std::size_t i = 1; i < children.size(); ++i) sum = with(sum, up_tree(codes, children[i]));
  return sum;
}

std::vector<std::int64_t> channel_elements(std::int64_t elements, int element_bytes,
                                           bool low_latency, int most_channels) {
  const std::int64_t cell = (low_latency ? 2048 : 8192) / element_bytes;
  const std::int64_t cells = formats::divided_up(elements, cell),
                     each = formats::divided_up(cells, most_channels) * cell;
  std::vector<std::int64_t> channels;
  for (std::int64_t begin = 0; begin < elements; begin += each)
    channels.push_back(std::min(each, elements - begin));
  return channels;
}

std::int64_t longest_chunk(int element_bytes, bool low_latency) {
  return low_latency ? 32768 / element_bytes : 0;
}

std::vector<OrderedRun> runs_of(const AllReducePlan& plan) {
  using Kind = ReductionOrder::Kind;
  std::vector<OrderedRun> runs;
  const auto add = [&](std::int64_t begin, std::int64_t end, ReductionOrder order) {
    if (begin >= end) return;
    if (!runs.empty() && runs.back().order == order && runs.back().end == begin)
      runs.back().end = end;
    else
      runs.push_back({begin, end, order});
  };
  std::int64_t begin = 0;
  for (std::size_t channel = 0; channel < plan.channels.size(); ++channel) {
    const std::int64_t end = begin + plan.channels[channel];
    if (plan.kind == Kind::tree) {
      add(begin, end, {Kind::tree, static_cast<int>(channel) < plan.first_tree_channels ? 0 : 1});
      begin = end;
      continue;
    }
    while (begin < end) {
      // Chunks are whole vectors of 16 bytes.
      const std::int64_t left = end - begin, vector = 16 / plan.element_bytes;
      std::int64_t chunk = formats::rounded_up(formats::divided_up(left, plan.ranks), vector);
      if (plan.longest_chunk != 0) chunk = std::min(chunk, plan.longest_chunk);
      for (int c = 0; c < plan.ranks && begin < end; ++c) {
        const std::int64_t next = std::min(end, begin + chunk);
        add(begin, next, {Kind::ring, (c + 1) % plan.ranks});
        begin = next;
      }
    }
  }
  return runs;
}

std::string text_of(const AllReducePlan& plan) {
  std::string channels;
  constexpr std::size_t listed = 8;
  for (std::size_t i = 0; i < std::min(listed, plan.channels.size()); ++i)
    channels += (i == 0 ? "" : ", ") + std::to_string(plan.channels[i]);
  if (plan.channels.size() > listed) channels += ", …";
  const std::string cut = std::to_string(plan.channels.size()) +
                          (plan.channels.size() == 1 ? " channel of " : " channels of ") +
                          channels + " elements";
  if (plan.kind == ReductionOrder::Kind::tree) {
    const auto first = std::min<std::size_t>(static_cast<std::size_t>(plan.first_tree_channels),
                                             plan.channels.size());
    return "NCCL's double binary tree over " + std::to_string(plan.ranks) + " ranks: " + cut +
           ", " +
           (first == plan.channels.size() ? "all up the first tree"
                                          : "the first " + std::to_string(first) +
                                                " up the first tree, the others up the second");
  }
  return "NCCL's ring over " + std::to_string(plan.ranks) + " ranks: " + cut +
         ", each in one chunk a rank" +
         (plan.longest_chunk == 0 ? ""
                                  : " (of at most " + std::to_string(plan.longest_chunk) +
                                        " elements, then round again)") +
         "; chunk i is added from rank i + 1 on and ends at rank i";
}

}  // namespace guardbit::emulator::operators
