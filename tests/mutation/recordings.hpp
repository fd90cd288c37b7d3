#pragma once

#include <string>
#include <vector>

#include "tests/mutation/vectors.hpp"

namespace guardbit::tests {

/// Outputs of one instruction that a device gave, as vectors: dense, and once more with the
/// positions of a sparse instruction.
struct RecordedInstruction {
  MatrixInstruction instruction;
  std::vector<TestVector> dense, sparse;
};

/// A sample of every recording of an instruction in tests/golden, at most `outputs` of each, evenly
/// spread. Outputs that the model does not give bit for bit (NaNs of an unknown payload) are left
/// out.
std::vector<RecordedInstruction> read_recordings(std::int64_t outputs);

}  // namespace guardbit::tests
