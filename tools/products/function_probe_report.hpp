#pragma once

#include <iosfwd>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "emulator/probe/function_probe.hpp"

// What `probe --function` says.
namespace guardbit::tools {

struct FunctionProbeReport {
  std::string unit;
  emulator::FunctionShape shape;
  std::vector<std::vector<std::uint64_t>> questions, answers;
  /// the nearest first
  std::vector<emulator::FunctionFit> fits;

  bool is_found() const { return !fits.empty() && fits[0].differing == 0; }
};

void print_function_probe(std::ostream& out, const FunctionProbeReport& report);
nlohmann::ordered_json function_probe_json(const FunctionProbeReport& report);

}  // namespace guardbit::tools
