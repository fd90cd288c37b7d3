#include "emulator/functions/kernels/single_lanes.hpp"

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

void remainders(std::uint32_t* numerators, const std::uint32_t* divisors, int exponent,
                std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    numerators[i] = bits(
        truncated_remainder(HostNumber::of(numerators[i]), HostNumber::of(divisors[i]), exponent));
  }
}

}  // namespace guardbit::emulator::kernels
