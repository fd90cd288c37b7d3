#pragma once

#include <iosfwd>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "emulator/probe/probe.hpp"

// What `probe` says of a unit.
namespace guardbit::tools {

/// `box` has the formats that were asked; `unit` is what the report calls it.
nlohmann::ordered_json probe_json(const std::string& unit, const emulator::BlackBox& box,
                                  const emulator::ProbeReport& report);
void print_probe(std::ostream& out, const std::string& unit, const emulator::BlackBox& box,
                 const emulator::ProbeReport& report);

/// The text of the instruction that was found, for any M and N.
std::string spec_of(const emulator::ProbeReport& report);

}  // namespace guardbit::tools
