#pragma once

// A unit whose results, or whose operands, are of a narrower format than its files have: it is
// probed as a unit of that format.

#include <optional>
#include <span>
#include <string>

#include "emulator/probe/answers.hpp"
#include "emulator/probe/black_box.hpp"

namespace guardbit::emulator {

/// The unit as one of a narrower format, and what shows that it is one.
struct Narrowed {
  BlackBox box;
  std::string remark;
};

/// If every answer is a number of a narrower format. The unit must outlive the box.
std::optional<Narrowed> with_narrower_result(const BlackBox& unit,
                                             std::span<const Answered> answers);

/// If the unit answers alike once A and B are rounded to a narrower format: it is asked so. The
/// unit must outlive the box.
std::optional<Narrowed> with_narrower_operands(const BlackBox& unit,
                                               std::span<const Answered> answers);

}  // namespace guardbit::emulator
