#pragma once

#include <string>

#include "emulator/replay/comparison.hpp"
#include "emulator/replay/replay.hpp"

// Why two recordings of a program part.
namespace guardbit::emulator::replay {

/// In words.
struct Difference {
  /// the rule that differs: "K = 4096 in one chain here, in 3 slices of 1408 there"
  std::string rule;
  /// what would make the results equal
  std::string remedy;
};

/// Of the first operator with unequal results; `of_a` and `of_b` say how the replay computed it.
Difference difference_of(const Recording& a, const Recording& b, const Divergence& first,
                         const CallResult& of_a, const CallResult& of_b);

}  // namespace guardbit::emulator::replay
