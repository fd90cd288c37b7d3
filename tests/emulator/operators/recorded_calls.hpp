#pragma once

#include <optional>
#include <string>

#include "emulator/replay/recording.hpp"

namespace guardbit::tests {

/// A recording of the shared folder (recordings/NAME.safetensors, or NAME.safetensors.xz, unpacked
/// for this run); nothing where there is none, after saying so.
std::optional<emulator::replay::Recording> shared_recording(const std::string& name);

}  // namespace guardbit::tests
