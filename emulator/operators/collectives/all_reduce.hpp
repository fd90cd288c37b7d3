#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "formats/codec.hpp"
#include "formats/format.hpp"

// What NCCL's all-reduce and reduce-scatter make of the tensors of several GPUs (ranks): the order
// in which an element's values are added decides its bits. Every step rounds into the tensors'
// format, to nearest even.
namespace guardbit::emulator::operators {

enum class Reduction : std::uint8_t { sum, average, product, maximum, minimum };
constexpr auto words(Reduction) { return std::array{"sum", "avg", "product", "max", "min"}; }

/// One element's order.
struct ReductionOrder {
  enum class Kind : std::uint8_t {
    /// along the ring 0, 1, …, N-1, 0, …, beginning at rank `which`
    ring,
    /// up the first or the second tree of the double binary tree (`which` 0 or 1)
    tree
  };
  Kind kind = Kind::ring;
  int which = 0;

  bool operator==(const ReductionOrder&) const = default;
};

/// The children of each rank in a tree, in the order in which their sums are added to the rank's
/// own value, and the root.
struct ReductionTree {
  std::vector<std::vector<int>> children;
  int root = 0;
};
ReductionTree reduction_tree(int ranks, int which);

/// Is the result of such an order known? Averages of trees with nodes of two children are not.
bool knows_order(Reduction reduction, int ranks, const ReductionOrder& order);

/// A reduction in one order. NaNs are canonical; FP8 saturates, infinities too.
class OrderedReduction {
 public:
  OrderedReduction(const formats::Format& format, Reduction reduction, int ranks,
                   const ReductionOrder& order);

  /// One element, of which `codes` has a code of each rank.
  std::uint64_t operator()(std::span<const std::uint64_t> codes) const;

 private:
  std::uint64_t own(std::span<const std::uint64_t> codes, int rank) const;
  /// A partial result with a rank's own value.
  std::uint64_t with_own(std::uint64_t partial, std::span<const std::uint64_t> codes,
                         int rank) const;
  std::uint64_t with(std::uint64_t x, std::uint64_t y) const;
  std::uint64_t up_tree(std::span<const std::uint64_t> codes, int rank) const;

  formats::Format format_;
  Reduction reduction_;
  int ranks_;
  ReductionOrder order_;
  ReductionTree tree_;
  /// of averages: 1 / ranks, rounded into the format
  formats::Value share_;
};

/// How NCCL cuts a tensor among channels, and a ring's channel among the ranks.
struct AllReducePlan {
  ReductionOrder::Kind kind = ReductionOrder::Kind::ring;
  int ranks = 2;
  /// elements of each
  std::vector<std::int64_t> channels;
  /// of a ring: a channel goes round again after `ranks` chunks of so many elements; 0: never
  std::int64_t longest_chunk = 0;
  /// bytes of an element
  int element_bytes = 4;
  /// of trees: channels of the first tree; the others have the second
  int first_tree_channels = 0;
};

/// Elements of each of at most so many channels: whole cells of 8 KiB, or of 2 KiB by the protocol
/// of low latency (LL), as evenly as they go.
std::vector<std::int64_t> channel_elements(std::int64_t elements, int element_bytes,
                                           bool low_latency, int most_channels);
/// Of the protocol LL, as recorded; of the others recorded chunks were shorter than any limit.
std::int64_t longest_chunk(int element_bytes, bool low_latency);

/// Elements that follow one another and have one order.
struct OrderedRun {
  std::int64_t begin = 0, end = 0;
  ReductionOrder order;
};
std::vector<OrderedRun> runs_of(const AllReducePlan& plan);

/// A sentence.
std::string text_of(const AllReducePlan& plan);

}  // namespace guardbit::emulator::operators
