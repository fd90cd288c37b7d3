#pragma once

#include <cstdint>
#include <string>

#include "gpu/screening/screen_log.hpp"
#include "gpu/screening/screen_set.hpp"

// Faults that are injected to see which of them a screening finds.
namespace guardbit::gpu {

/// A permanent fault of that number: one bit of an operand, of the multipliers' operand, of the
/// addend or of a result of one instruction, stuck or always flipped, on one multiprocessor. No bit
/// that the instruction does not read.
struct DrawnFault {
  std::size_t instruction = 0;
  Fault fault;
};
DrawnFault draw_fault(const ScreenSet& set, int processors, std::uint64_t number);

std::string name_of(Fault::Place place);
std::string name_of(Fault::Effect effect);

}  // namespace guardbit::gpu
