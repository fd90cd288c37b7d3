#pragma once

// Scalar arithmetic along a tree of additions: how nodes of two children multiply, add and round.
// It describes programs whose order of additions no instruction of the model has.

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "emulator/probe/black_box.hpp"
#include "emulator/probe/sum_tree.hpp"

namespace guardbit::emulator {

/// How the nodes of a tree compute if each has two children.
struct TreeArithmetic {
  /// products are added by fused multiply-adds; else they are rounded first
  bool fused = false;
  Rounding rounding = Rounding::nearest_even;
  /// the format of every node; the last sum is converted to that of D
  Format sums{};
  Subnormals input = Subnormals::keep, output = Subnormals::keep;
  /// a sum that begins with a product adds it to +0
  bool from_zero = false;
};

/// The code of D; empty if a node has more than two children.
std::optional<std::uint64_t> evaluate(const BlackBox& box, const SumTree& tree,
                                      const TreeArithmetic& arithmetic, const Question& question);

/// The arithmetic that reproduces every ordinary answer and the most of all answers; empty if none
/// does. All NaNs count as equal.
std::optional<TreeArithmetic> arithmetic_of_tree(const BlackBox& box, const SumTree& tree,
                                                 std::span<const Answered> ordinary,
                                                 std::span<const Answered> all);

/// The number of answers that the tree does not give. All NaNs count as equal.
std::size_t mismatches(const BlackBox& box, const SumTree& tree, const TreeArithmetic& arithmetic,
                       std::span<const Answered> answers);

/// "fused multiply-adds, rounded nearest even"
std::string text_of(const TreeArithmetic& arithmetic, const Format& d);

}  // namespace guardbit::emulator
