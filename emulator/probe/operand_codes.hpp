#pragma once

// The codes that questions are made of: powers of two, products of them, and a question of zeros.

#include <cstdint>
#include <optional>
#include <utility>

#include "emulator/probe/black_box.hpp"

namespace guardbit::emulator {

/// The code of (-1)^negative * significand * 2^exponent, rounded toward zero; the largest finite
/// number if that is out of range.
std::uint64_t number_code(const Format& f, bool negative, int exponent,
                          std::uint64_t significand = 1);

/// Exponents of the least and the greatest power of two that a floating format holds.
int least_power(const Format& f);
int greatest_power(const Format& f);

/// Codes of A and B, powers of two, whose product is 2^exponent; normal numbers if possible. Empty
/// if the formats do not reach that exponent.
std::optional<std::pair<std::uint64_t, std::uint64_t>> product_codes(const BlackBox& box,
                                                                     int exponent);

/// The question whose operands are all zero and whose scale factors are 1.
Question zero_question(const BlackBox& box);

}  // namespace guardbit::emulator
