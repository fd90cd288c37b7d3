#pragma once

#include <cstdint>
#include <vector>

#include "tests/emulator/inputs/catalogue_inputs.hpp"

/// Operands for the instructions of x86: the families of every instruction, and one for what is
/// special here, sums around the smallest normal number, where flushing decides.
namespace guardbit::tests {

/// Families of an instruction; the last of a floating instruction is subnormal_results.
std::vector<InputFamily> unit_families(const MatrixInstruction& instruction);

/// `count` executions of shape {m, n, k} of one family. Deterministic in instruction types, family
/// and seed.
BatchInputs unit_inputs(const MatrixInstruction& instruction, InputFamily family,
                        std::uint64_t seed, const Shape& shape, std::int64_t count);

/// `count` executions of the instruction's own shape that together hold every family: row i of A
/// and of C, and column i of B, of execution t belong to family (t * m + i) mod the number of
/// families.
BatchInputs mixed_unit_inputs(const MatrixInstruction& instruction, std::uint64_t seed,
                              std::int64_t count);

/// Of the recordings in tests/golden/x86.
inline constexpr std::uint64_t recording_seed = 20261121;

/// The operands of an instruction's recording: executions that hold every family several times and
/// make a file of a few kilobytes.
BatchInputs recorded_unit_inputs(const MatrixInstruction& instruction);

}  // namespace guardbit::tests
