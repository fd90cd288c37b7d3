#pragma once

#include <random>
#include <string_view>
#include <vector>

#include "emulator/probe/answers.hpp"

namespace guardbit::emulator {

/// The row with other values of one field, or of two that hide each other, which no answer has
/// ruled out.
std::vector<MatrixInstruction> alternatives_of(const MatrixInstruction& row, const Pools& pools,
                                               const Pools& fresh);

/// The row with other values of the field of that name.
std::vector<MatrixInstruction> alternatives_in(const MatrixInstruction& row, std::string_view field,
                                               const Pools& pools, const Pools& fresh);

/// Asks what tells the row from the others; true when an answer refutes the row. Refutations go to
/// the last of `pools`, the other answers to the last of `fresh`.
bool ask_what_tells(const BlackBox& box, const MatrixInstruction& row,
                    const std::vector<MatrixInstruction>& others, Pools& pools, Pools& fresh,
                    std::mt19937_64& random);

}  // namespace guardbit::emulator
