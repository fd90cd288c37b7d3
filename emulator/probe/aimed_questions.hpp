#pragma once

#include <random>
#include <vector>

#include "emulator/probe/probe.hpp"

namespace guardbit::emulator {

/// `count` questions aimed at what a row is thought to keep and to cut: terms at the last bits of
/// its grids, ties of its results, the least numbers that a zero's exponent leaves.
std::vector<Question> aimed_questions(const BlackBox& box, const MatrixInstruction& row,
                                      std::size_t count, std::mt19937_64& random);

}  // namespace guardbit::emulator
