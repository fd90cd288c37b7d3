#pragma once

// A unit under test, and what is asked of it.

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "emulator/model/instruction.hpp"

namespace guardbit::emulator {

/// The operands of one dot product as codes: k of a and b, and `scale.count` scale factors of each.
struct Question {
  std::vector<std::uint64_t> a, b;
  std::uint64_t c = 0;
  std::vector<std::uint64_t> a_scale, b_scale;
};

/// An unknown unit. `answer` returns one code of format `d` for each question, which must depend on
/// that question alone. An exception from it ends the probe.
struct BlackBox {
  Format a{}, b{}, c{}, d{};
  BlockScale scale{};
  int k = 0;
  /// false: the unit has no C, and questions leave it +0
  bool has_addend = true;
  /// all NaN answers count as equal
  bool nans_alike = false;
  std::function<std::vector<std::uint64_t>(std::span<const Question>)> answer;
};

/// A question and the unit's answer.
struct Answered {
  Question question;
  std::uint64_t d = 0;
  /// d is a NaN, and any NaN counts as equal to it
  bool any_nan = false;
};

}  // namespace guardbit::emulator
