#pragma once

#include <cstdint>
#include <string>
#include <vector>

// `gpu validate --functions` and `gpu record --function`.
namespace guardbit::tools {

struct FunctionCampaign {
  /// empty: all
  std::vector<std::string> names;
  /// inputs of an instruction that has too many to take all
  std::uint64_t inputs = 0;
  std::string output;
  bool json = false;
  /// numbers of devices of this host
  std::vector<int> devices;
};

/// Compares instructions that are functions of numbers with their models on the device; returns the
/// exit status.
int validate_functions(const FunctionCampaign& campaign);

/// Writes what the device gives for the first `count` inputs as a capture of kind `function`.
void record_function(const std::string& name, const std::string& path, std::uint32_t count);

}  // namespace guardbit::tools
