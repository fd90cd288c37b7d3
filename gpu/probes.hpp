#pragma once

#include <string>
#include <vector>

#include "gpu/batch.hpp"

namespace guardbit::gpu {

/// Hand-made executions that each decide one question about an instruction. Terms are placed in row
/// r and column r at positions rotated by r, so the diagonal of D answers the same question at up
/// to eight positions.
struct Probes {
  std::vector<std::string> labels;  // one per execution
  Batch batch;
  int rotations = 1;
};
Probes make_probes(const TensorCoreInstruction& row);

/// "label: word" lines from the diagonals; one word where all rotations agree.
std::string describe_results(const TensorCoreInstruction& row, const Probes& probes);

}  // namespace guardbit::gpu
