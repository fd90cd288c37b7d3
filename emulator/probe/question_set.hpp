#pragma once

// Questions to a unit under test, drawn at random by topic: operands that make one kind of rule of
// its arithmetic visible. probe.cpp asks them and fits the fields of an instruction to the answers.
// They are constructions at the exponents of a unit's formats, and no families of emulator/inputs/.

#include <cstdint>
#include <optional>
#include <random>
#include <utility>
#include <vector>

#include "emulator/catalogue/accumulator_fields.hpp"
#include "emulator/probe/probe.hpp"

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

/// Kinds of questions (NUMERICS 7.1).
enum class Topic : std::uint8_t {
  /// what is kept below a large term, how it is cut, how the result is rounded
  grid,
  /// zero addends, subnormal operands and results, signs of zeros
  tiny,
  /// infinities, NaNs, overflow
  specials,
  /// random bits
  raw,
};

/// The topic whose questions show the fields of that concern; `grid` for the structure, too.
constexpr Topic topic_of(FieldConcern concern) {
  switch (concern) {
    case FieldConcern::structure:
    case FieldConcern::precision: return Topic::grid;
    case FieldConcern::small_numbers: return Topic::tiny;
    case FieldConcern::specials: return Topic::specials;
  }
  return Topic::raw;
}

/// `count` questions about a topic. Integer formats get limits, overflow and random
/// numbers instead.
std::vector<Question> questions(const BlackBox& box, Topic topic, std::size_t count,
                                std::mt19937_64& random);

}  // namespace guardbit::emulator
