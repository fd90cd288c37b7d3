#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "emulator/probe.hpp"

namespace guardbit::emulator {

/// How a tree of two-way nodes adds: every node rounds into D's format.
struct TreeArithmetic {
  bool fused = false;  ///< a product joins its sum by one fused multiply-add, else it is rounded
  Rounding rounding = Rounding::nearest_even;
};

/// What a tree gives in that arithmetic; empty where a node has more than two children. Subnormals
/// are kept.
std::optional<std::uint64_t> evaluate(const BlackBox& box, const SumTree& tree,
                                      const TreeArithmetic& arithmetic, const Question& question);

/// "fused multiply-add, nearest_even"
std::string text_of(const TreeArithmetic& arithmetic);

}  // namespace guardbit::emulator
