#pragma once

#include <cstdint>
#include <string_view>

#include "formats/block_format.hpp"

namespace guardbit::experiments {

/// The E8M0 code that the mode, a word of MxMode, gives for an FP32 amax above zero.
std::uint64_t mx_scale(const formats::BlockFormat& format, float amax, std::string_view mode);

}  // namespace guardbit::experiments
