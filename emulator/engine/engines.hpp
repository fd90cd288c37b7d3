#pragma once

#include <span>
#include <string_view>

#include "emulator/engine/engine.hpp"

// The list of engines, and the choice among them.
namespace guardbit::emulator {

/// Every engine of this machine, the preferred first; the last is the reference, which accepts
/// every instruction.
std::span<const Engine> engines();

/// The engine of that name; "auto" is the first model that accepts the instruction. formats::Error
/// if the name is unknown or the engine does not accept the instruction.
const Engine& require_engine(std::string_view name, const MatrixInstruction& instruction);

/// Executes a whole batch on `threads` threads (0: all the machine has). The result does not depend
/// on their number.
void run_batch(const Engine& engine, const MatrixInstruction& instruction, const MatrixBatch& batch,
               int threads = 0);

}  // namespace guardbit::emulator
