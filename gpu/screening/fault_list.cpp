#include "gpu/screening/fault_list.hpp"

#include <algorithm>

namespace guardbit::gpu {

namespace {

std::size_t room_in(const std::vector<ScreenFault>& listed, const std::string& instruction) {
  const auto of_instruction = static_cast<std::size_t>(
      std::ranges::count(listed, instruction, [](const ScreenFault& x) { return x.instruction; }));
  if (listed.size() >= most_faults || of_instruction >= most_faults_of_instruction) return 0;
  return std::min(most_faults - listed.size(), most_faults_of_instruction - of_instruction);
}

/// Of the same instruction and at the same place, or of the same operands where that is not known.
bool is_at(const ScreenFault& fault, const ScreenFault& other) {
  return fault.instruction == other.instruction && fault.processor == other.processor &&
         fault.block == other.block && (fault.processor || fault.operands == other.operands);
}

}  // namespace

std::size_t room_for(const DeviceReport& report, const std::string& instruction) {
  return room_in(report.faults, instruction);
}

void note(DeviceReport& report, const ScreenFinding& finding) {
  const FaultCount& found = finding.count;
  auto known = std::ranges::find_if(report.counts, [&](const FaultCount& x) {
    return x.test == found.test && x.instruction == found.instruction &&
           x.unproven == found.unproven;
  });
  if (known == report.counts.end())
    known = report.counts.insert(known, {found.test, found.instruction, 0, {}, found.unproven});
  known->mismatches += found.mismatches;
  known->places.insert(found.places.begin(), found.places.end());
  std::vector<ScreenFault>& listed = found.unproven ? report.unproven : report.faults;
  for (const ScreenFault& fault : finding.faults) {
    if (room_in(listed, fault.instruction) == 0) return;
    if (std::ranges::none_of(listed, [&](const ScreenFault& x) { return is_at(x, fault); }))
      listed.push_back(fault);
  }
}

}  // namespace guardbit::gpu
