#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string_view>

// What a program of numbers does otherwise than its text says: another constant, or another step.
// mutant_number.hpp has the numbers that do it.
namespace guardbit::tests {

/// How a step is another one. Bits, because a step may have several.
enum StepChange : std::uint8_t {
  /// a directed rounding in place of the nearest number, the nearest in place of a directed one;
  /// an integer toward zero in place of the nearest, and the other way round
  rounded_otherwise = 1,
  /// a fused step as a product and a sum, each rounded
  split = 2,
  /// subnormal operands and results as zeros; of the special function unit's `.ftz` forms the
  /// form without
  flushed_otherwise = 4,
  /// a sign that is not changed; a selection that takes the second number; x == y that is false
  left_out = 8,
  /// x <= y for x < y, and the other way round
  equal_otherwise = 16,
};
inline constexpr std::array step_changes = {rounded_otherwise, split, flushed_otherwise, left_out,
                                            equal_otherwise};
inline constexpr std::uint8_t every_step_change = 31;
constexpr std::string_view name_of(StepChange change) {
  switch (change) {
    case rounded_otherwise: return "rounded_otherwise";
    case split: return "split";
    case flushed_otherwise: return "flushed_otherwise";
    case left_out: return "left_out";
    case equal_otherwise: return "equal_otherwise";
  }
  return "";
}

/// A step is named by a number of 16 bits made of its operation, its operands' and the branches
/// that lead to it: the same step in every evaluation, whatever the compiler's order.
using StepPlace = std::uint16_t;
using StepChanges = std::array<std::uint8_t, 1 << 16>;

inline constexpr StepChanges no_step_changes = {};

/// A number of FP32 that is a place further from zero, or a place nearer and through it.
constexpr std::uint32_t next_code(std::uint32_t code, bool is_up) {
  if (is_up) return code + 1;
  return (code & 0x7fffffff) == 0 ? (code ^ 0x80000000) + 1 : code - 1;
}

/// A constant and what stands in its place; equal ones change nothing.
struct ConstantChange {
  std::uint32_t constant = 0, replacement = 0;
};

/// Beside the changes of steps in a table of places, which constants have as well: one place more,
/// one less.
inline constexpr std::uint8_t one_up = 32, one_down = 64;

struct ProgramChange {
  /// constants of FP32 by their codes, and words
  ConstantChange number, word;
  const StepChanges* steps = &no_step_changes;
};
/// What this thread's mutant numbers do.
constinit inline thread_local ProgramChange program_change = {};

/// What programs are made of, as evaluations meet it.
struct ProgramParts {
  std::set<std::uint32_t> numbers, words;
  /// the operation, and the changes that it can have
  struct Step {
    std::string_view operation;
    std::uint8_t changes = 0;
  };
  std::map<StepPlace, Step> steps;
};
/// Evaluations of this thread are written down here.
constinit inline thread_local ProgramParts* program_parts = nullptr;

}  // namespace guardbit::tests
