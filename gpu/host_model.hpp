#pragma once

#include <optional>
#include <string_view>

#include "emulator/instruction.hpp"
#include "gpu/batch.hpp"

namespace guardbit::gpu {

/// Fills batch.d with what `model` makes of the batch on this host; `row` says how the batch is
/// laid out and which operand choices (negation, ignored C) it asks for.
void run_on_host_model(const emulator::MatrixInstruction& model, const TensorCoreInstruction& row,
                       Batch& batch);

/// The catalogue's row of that machine for an instruction; empty where the machine lacks it.
std::optional<emulator::MatrixInstruction> find_catalogue_row(const TensorCoreInstruction& row,
                                                              std::string_view arch);

/// The same for sm_90, which has them all.
emulator::MatrixInstruction catalogue_row(const TensorCoreInstruction& row);

}  // namespace guardbit::gpu
