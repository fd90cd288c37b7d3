#include "tests/emulator/operators/recorded_calls.hpp"

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <string>

namespace guardbit::tests {

std::optional<emulator::replay::Recording> shared_recording(const std::string& name) {
  namespace fs = std::filesystem;
  const char* const place = std::getenv("GUARDBIT_SHARED");
  const fs::path folder = fs::path(place != nullptr ? place : "../shared") / "recordings";
  const fs::path plain = folder / (name + ".safetensors");
  if (fs::exists(plain)) return emulator::replay::read_recording(plain.string());
  const fs::path packed = folder / (name + ".safetensors.xz");
  // Several tests may run at the same time.
  const fs::path unpacked = fs::temp_directory_path() / ("guardbit_operators_" + name + "_" +
                                                         std::to_string(getpid()) + ".safetensors");
  const std::string command = "xz -dc '" + packed.string() + "' >'" + unpacked.string() + "'";
  if (!fs::exists(packed) || std::system(command.c_str()) != 0) {
    std::cout << "SKIPPED: no recordings (GUARDBIT_SHARED or ../shared), or no xz\n";
    return std::nullopt;
  }
  auto recording = emulator::replay::read_recording(unpacked.string());
  // The mapping keeps the content.
  fs::remove(unpacked);
  return recording;
}

}  // namespace guardbit::tests
