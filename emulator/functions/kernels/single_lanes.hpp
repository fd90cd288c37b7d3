#pragma once

#include <cstddef>
#include <cstdint>

// Steps that kernels take one lane at a time.
namespace guardbit::emulator::kernels {

/// The angles of those codes whose bits are set in `which`: the nearest quarter turn, and what is
/// left, as a code. Infinities are reduced, too.
void reduce_large_angles(const std::uint32_t* codes, std::uint32_t which, std::uint32_t* quarters,
                         std::uint32_t* rests);

/// truncated_remainder of codes, which take the places of the numerators.
void remainders(std::uint32_t* numerators, const std::uint32_t* divisors, int exponent,
                std::size_t count);

}  // namespace guardbit::emulator::kernels
