#pragma once

#include <cstdint>

#include "emulator/inputs/input_draw.hpp"
#include "formats/format.hpp"

/// Single operand codes, drawn from a seeded stream.
namespace guardbit::tests {

using formats::Format;

using emulator::inputs::Random;

/// Code of the number (-1)^negative * 2^exponent * 1.fraction in the format: clamped to its largest
/// number, subnormal below the normal range, never zero. `fraction` gives as many low bits as the
/// format has.
std::uint64_t code_with_exponent(const formats::Format& f, bool negative, int exponent,
                                 std::uint64_t fraction);

bool is_floating(const Format& f);
/// Exponent of the smallest subnormal number.
int lowest_exponent(const Format& f);
double value_of(const Format& f, std::uint64_t code);
/// Nearest code, the largest finite one at most.
std::uint64_t nearest_code(const Format& f, double value);

std::uint64_t zero_code(const Format& f, bool negative);
/// An infinity, or the largest number of a format without.
std::uint64_t infinity_like(const Format& f, bool negative);

std::uint64_t random_code(const Format& f, Random& random);
std::uint64_t finite_code(const Format& f, Random& random);
/// Any sign, an exponent from low to high, a dense or a sparse fraction.
std::uint64_t code_between(const Format& f, int low, int high, Random& random);
std::uint64_t subnormal_code(const Format& f, Random& random);
/// NaNs of every kind, infinities, zeros, the ends of the subnormal and the normal range, one.
std::uint64_t special_code(const Format& f, Random& random);

}  // namespace guardbit::tests
