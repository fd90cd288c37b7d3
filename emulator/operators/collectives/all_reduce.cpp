#include "emulator/operators/collectives/all_reduce.hpp"

#include <algorithm>
#include <optional>

#include "formats/arithmetic.hpp"
#include "formats/codec.hpp"

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

/// The larger one; a NaN gives way, and -0 is below +0.
Value larger(const Value& x, const Value& y, bool smaller) {
  if (x.kind == formats::Kind::nan) return y;
  if (y.kind == formats::Kind::nan) return x;
  const auto is_below = [](const Value& a, const Value& b) {
    if (a.negative != b.negative) return a.negative;
    const auto size = [](const Value& v) {
      // Zero, finite numbers by exponent and significand, infinity.
      const int top = v.kind == formats::Kind::finite
                          ? v.exponent + formats::leading_bit(v.significand)
                      : v.kind == formats::Kind::infinity ? 1 << 20
                                                          : -(1 << 20);
      return top;
    };
    const int p = size(a), q = size(b);
    if (p != q) return (p < q) != a.negative;
    if (a.kind != formats::Kind::finite) return false;
    const int least = std::min(a.exponent, b.exponent);
    const auto s = formats::uint128{a.significand} << (a.exponent - least),
               t = formats::uint128{b.significand} << (b.exponent - least);
    return s != t && (s < t) != a.negative;
  };
  return is_below(x, y) != smaller ? y : x;
}

/// A reduction as its steps: a rank's own value first, then the values of others.
class Steps {
 public:
  Steps(const Format& format, Reduction reduction, std::span<const std::uint64_t> codes)
      : format_(format), reduction_(reduction), codes_(codes) {
    // 1 / N, rounded into the format.
    const Value one{formats::Kind::finite, false, 0, 1};
    const Value ranks{formats::Kind::finite, false, 0, codes.size()};
    share_ = formats::decode(format, rounded(format, formats::divide(one, ranks)));
  }

  std::uint64_t own(int rank) const {
    const std::uint64_t code = codes_[static_cast<std::size_t>(rank)];
    if (reduction_ != Reduction::average) return code;
    return rounded(format_, formats::multiply(value_of(code), share_));
  }

  /// The partial result with another rank's own value.
  std::uint64_t with_own(std::uint64_t partial, int rank) const {
    const std::uint64_t code = codes_[static_cast<std::size_t>(rank)];
    // FP8 is scaled by itself; the others scale and add in one step.
    if (reduction_ == Reduction::average && formats::container_bits(format_) == 8)
      return with(own(rank), partial);
    if (reduction_ == Reduction::average)
      return rounded(format_,
                     formats::fused_multiply_add(value_of(code), share_, value_of(partial)));
    return with(code, partial);
  }

  std::uint64_t with(std::uint64_t x, std::uint64_t y) const {
    const Value a = value_of(x), b = value_of(y);
    switch (reduction_) {
      case Reduction::sum:
      case Reduction::average:
        return rounded(format_, formats::add(formats::exactly(a), formats::exactly(b)));
      case Reduction::product: return rounded(format_, formats::multiply(a, b));
      case Reduction::maximum:
      case Reduction::minimum: break;
    }
    return rounded(format_, formats::exactly(larger(a, b, reduction_ == Reduction::minimum)));
  }

  std::uint64_t up_tree(const ReductionTree& tree, int rank) const {
    const std::vector<int>& children = tree.children[static_cast<std::size_t>(rank)];
    if (children.empty()) return own(rank);
    std::uint64_t sum = with_own(up_tree(tree, children.front()), rank);
    for (std::size_t i = 1; i < children.size(); ++i) sum = with(sum, up_tree(tree, children[i]));
    return sum;
  }

 private:
  Value value_of(std::uint64_t code) const { return formats::decode(format_, code); }

  const Format& format_;
  Reduction reduction_;
  std::span<const std::uint64_t> codes_;
  Value share_;
};

std::int64_t rounded_up(std::int64_t x, std::int64_t multiple) {
  return (x + multiple - 1) / multiple * multiple;
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

std::uint64_t reduced(const Format& format, Reduction reduction,
                      std::span<const std::uint64_t> codes, const ReductionOrder& order) {
  const Steps steps(format, reduction, codes);
  const auto ranks = static_cast<int>(codes.size());
  if (order.kind == ReductionOrder::Kind::tree) {
    const ReductionTree tree = reduction_tree(ranks, order.which);
    return steps.up_tree(tree, tree.root);
  }
  std::uint64_t result = steps.own(order.which);
  for (int k = 1; k < ranks; ++k) result = steps.with_own(result, (order.which + k) % ranks);
  return result;
}

std::vector<std::int64_t> channel_elements(std::int64_t elements, int element_bytes,
                                           bool low_latency, int most_channels) {
  const std::int64_t cell = (low_latency ? 2048 : 8192) / element_bytes;
  const std::int64_t cells = rounded_up(elements, cell) / cell,
                     each = rounded_up(cells, most_channels) / most_channels * cell;
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
      std::int64_t chunk = rounded_up(rounded_up(left, plan.ranks) / plan.ranks, vector);
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
