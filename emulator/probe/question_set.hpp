#pragma once

// Questions to a unit under test, drawn at random by topic: operands that make one kind of rule of
// its arithmetic visible. probe.cpp asks them and fits the fields of an instruction to the answers.
// They are constructions at the exponents of a unit's formats, and no families of emulator/inputs/.

#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

#include "emulator/catalogue/accumulator_fields.hpp"
#include "emulator/probe/black_box.hpp"

namespace guardbit::emulator {

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
