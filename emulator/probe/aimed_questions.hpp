#pragma once

// Questions aimed at one arithmetic: operands at the bits where an assumed instruction cuts or
// rounds. distinguishing.cpp searches them for those that expose a wrong field.
// They are constructions for one instruction, and no families of emulator/inputs/.

#include <random>
#include <vector>

#include "emulator/probe/probe.hpp"

namespace guardbit::emulator {

/// `count` questions with terms at the last bits that the instruction keeps, ties of its results,
/// and the smallest numbers that its e0 (min_exponent) leaves.
std::vector<Question> aimed_questions(const BlackBox& box, const MatrixInstruction& instruction,
                                      std::size_t count, std::mt19937_64& random);

}  // namespace guardbit::emulator
