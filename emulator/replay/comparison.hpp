#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "emulator/replay/recording.hpp"

// Two recordings of one program.
namespace guardbit::emulator::replay {

/// The first operator with equal operands and unequal results.
struct Divergence {
  /// the numbers of the calls
  std::size_t call_a = 0, call_b = 0;
  std::string op;
  /// which of its results, and how many of its elements differ
  std::size_t result = 0;
  std::int64_t index = 0, differing = 0;
  std::uint64_t code_a = 0, code_b = 0;
  formats::Format type;
  /// how the two calls differ besides: strides, offsets, sizes; empty where they do not
  std::string circumstances;
  /// the operands of the one are the first rows of the other's
  bool is_of_other_size = false;
};

struct Comparison {
  /// calls that were paired, and those of them whose results are equal
  std::size_t paired = 0, equal = 0;
  /// Calls whose operands differ already, and one that is there in one program only ends the
  /// comparison: the numbers of the calls where the programs part.
  std::size_t with_other_operands = 0;
  std::optional<std::pair<std::size_t, std::size_t>> parted;
  std::optional<Divergence> first;
};

/// Calls are paired in order; data that only one of them moves is passed over. Where a program ran
/// with another batch size, operands that differ in their first dimension alone are equal if the
/// rows are that both have, and so are results; what such a call reduces over its batch is not
/// compared.
Comparison compare(const Recording& a, const Recording& b);

}  // namespace guardbit::emulator::replay
