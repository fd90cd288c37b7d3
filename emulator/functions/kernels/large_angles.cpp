#include "emulator/functions/kernels/large_angles.hpp"

#include <bit>

#include "emulator/functions/cuda/quarter_turns.hpp"
#include "emulator/functions/numbers/host_number.hpp"

namespace guardbit::emulator::kernels {

void reduce_large_angles(const std::uint32_t* codes, std::uint32_t which, std::uint32_t* quarters,
                         std::uint32_t* rests) {
  for (; which != 0; which &= which - 1) {
    const int i = std::countr_zero(which);
    const auto angle = cuda_math::angle_of(HostNumber::of(codes[i]));
    quarters[i] = angle.quarter;
    rests[i] = bits(angle.r);
  }
}

}  // namespace guardbit::emulator::kernels
