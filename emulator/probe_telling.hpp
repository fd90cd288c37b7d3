#pragma once

#include <random>

#include "emulator/probe_answers.hpp"

namespace guardbit::emulator {

/// Asks what tells the values of fields apart that no answer has ruled out; true when an answer
/// refutes the row. Refutations go to the last of `pools`, the others to the last of `fresh`.
bool ask_what_tells(const BlackBox& box, const MatrixInstruction& row, Pools& pools, Pools& fresh,
                    std::mt19937_64& random);

}  // namespace guardbit::emulator
