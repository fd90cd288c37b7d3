#pragma once

#include <cstdint>
#include <optional>
#include <random>
#include <utility>
#include <vector>

#include "emulator/probe/probe.hpp"

namespace guardbit::emulator {

/// (-1)^negative * significand * 2^exponent as a code, rounded toward zero; the operand is a finite
/// one as long as the format reaches that far.
std::uint64_t number_code(const Format& f, bool negative, int exponent,
                          std::uint64_t significand = 1);

/// Exponents of the least and the greatest power of two of a floating format.
int least_power(const Format& f);
int greatest_power(const Format& f);

/// Codes of two powers of two whose product is 2^exponent, normal numbers where they reach.
std::optional<std::pair<std::uint64_t, std::uint64_t>> product_codes(const BlackBox& box,
                                                                     int exponent);

/// A question of zeros; scale factors are 1.
Question zero_question(const BlackBox& box);

/// Kinds of questions, each about some fields (NUMERICS 7.1).
enum class Topic : std::uint8_t {
  grid,      ///< what is kept below a large term, how it is cut, how the result is rounded
  tiny,      ///< zero addends, subnormal operands and results, signs of zeros
  specials,  ///< infinities, NaNs, overflow
  raw,       ///< random bits
};

/// `count` questions about a topic. Integers have their own: limits, overflow, random numbers.
std::vector<Question> questions(const BlackBox& box, Topic topic, std::size_t count,
                                std::mt19937_64& random);

}  // namespace guardbit::emulator
