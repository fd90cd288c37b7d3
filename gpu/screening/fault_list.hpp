#pragma once

#include <cstddef>
#include <string>

#include "gpu/screening/screen_report.hpp"

// Which faults of a device its report lists: a few of each instruction, so that one bad unit does
// not hide another; all are counted.
namespace guardbit::gpu {

inline constexpr std::size_t most_faults = 96, most_faults_of_instruction = 3;

/// How many more faults of an instruction the report takes.
std::size_t room_for(const DeviceReport& report, const std::string& instruction);

/// Adds what a pass found: faults at places that are not listed yet, as far as there is room, and
/// the counts.
void note(DeviceReport& report, const ScreenFinding& finding);

}  // namespace guardbit::gpu
