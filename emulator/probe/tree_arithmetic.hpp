#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "emulator/probe/probe.hpp"

namespace guardbit::emulator {

/// How a tree of two-way nodes adds.
struct TreeArithmetic {
  bool fused = false;  ///< a product joins its sum by one fused multiply-add, else it is rounded
  Rounding rounding = Rounding::nearest_even;
  Format sums{};  ///< every node rounds into it; the last sum is converted to D's format
  Subnormals input = Subnormals::keep, output = Subnormals::keep;
  bool from_zero = false;  ///< what begins with a product begins with +0 before it
};

/// What a tree gives in that arithmetic; empty where a node has more than two children.
std::optional<std::uint64_t> evaluate(const BlackBox& box, const SumTree& tree,
                                      const TreeArithmetic& arithmetic, const Question& question);

/// The arithmetic that gives every one of the ordinary answers, and as many of all as can be; NaNs
/// are compared as NaN.
std::optional<TreeArithmetic> arithmetic_of_tree(const BlackBox& box, const SumTree& tree,
                                                 std::span<const Answered> ordinary,
                                                 std::span<const Answered> all);

/// Answers that the tree does not give, NaNs compared as NaN.
std::size_t mismatches(const BlackBox& box, const SumTree& tree, const TreeArithmetic& arithmetic,
                       std::span<const Answered> answers);

/// "fused multiply-adds, rounded nearest even"
std::string text_of(const TreeArithmetic& arithmetic, const Format& d);

}  // namespace guardbit::emulator
