#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "gpu/cuda/device/device.hpp"
#include "gpu/cuda/screening/device_screen.hpp"

// The option --devices.
namespace guardbit::tools {

inline void add_devices_option(CLI::App& command, std::string& words) {
  command
      .add_option("--devices", words,
                  "Devices of this host, all at the same time: all, or numbers as 0,2")
      ->capture_default_str();
}

/// formats::Error for a word that is none of the host's devices.
std::vector<gpu::HostDevice> chosen_devices(const std::string& words,
                                            const std::vector<gpu::HostDevice>& devices);

/// Numbers of the chosen ones, which must run the code that this program holds.
std::vector<int> usable_devices(const std::string& words);

/// "NVIDIA H200", "2 of NVIDIA H200".
inline std::string devices_text(const std::vector<int>& numbers, const gpu::Device& first) {
  return (numbers.size() == 1 ? "" : std::to_string(numbers.size()) + " of ") + first.name;
}

}  // namespace guardbit::tools
