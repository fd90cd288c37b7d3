#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "gpu/cuda/device/device.hpp"

namespace guardbit::tools {

/// "2026-11-21", in UTC.
std::string today();

/// {"device": {"name", "driver", "capability"}, "toolkit", "compiled_for"}: who answered.
nlohmann::ordered_json provenance(const gpu::Device& device);

}  // namespace guardbit::tools
