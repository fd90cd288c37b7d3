#pragma once

#include <array>

#include "formats/format.hpp"
#include "formats/format_catalogue.hpp"

namespace guardbit::emulator::operators {

/// Numbers that a call gives besides tensors, as the kernel holds them, and the type it stores.
struct Parameters {
  std::array<float, 4> numbers{};
  formats::Format type = formats::fp32;
};

}  // namespace guardbit::emulator::operators
