#pragma once

#include <cstdint>
#include <string_view>

#include "formats/block_format.hpp"

namespace guardbit::experiments {

/// How an MX scale follows from a block's largest magnitude: floor (OCP MX 1.0, microxcaling), ceil
/// and even (options of torchao), rceil (cuBLAS, Transformer Engine, CUTLASS).
inline constexpr std::string_view mx_scale_modes = "floor,ceil,even,rceil";

/// The E8M0 code that the mode gives for an FP32 amax above zero.
std::uint64_t mx_scale(const formats::BlockFormat& format, float amax, std::string_view mode);

}  // namespace guardbit::experiments
