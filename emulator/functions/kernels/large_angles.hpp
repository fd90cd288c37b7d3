#pragma once

#include <cstdint>

namespace guardbit::emulator::kernels {

/// The angles of those codes whose bits are set in `which`: the nearest quarter turn, and what is
/// left, as a code. Infinities are reduced, too.
void reduce_large_angles(const std::uint32_t* codes, std::uint32_t which, std::uint32_t* quarters,
                         std::uint32_t* rests);

}  // namespace guardbit::emulator::kernels
