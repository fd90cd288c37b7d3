#pragma once

// Files of instruction captures (docs: `guardbit gpu record`): the operands and results of a batch
// as tensors, with the instruction's name and variant as metadata.

#include <map>
#include <string>

#include "gpu/operands/tensor_core_batch.hpp"

namespace guardbit::gpu {

/// The file name, without ending, of an instruction and its variant: "wgmma….s8.s8.neg_a". "::"
/// becomes "__".
std::string capture_stem(const TensorCoreInstruction& instruction);

/// Writes one capture file (kind `instruction`). `metadata` is added to the keys that the
/// instruction gives itself.
void write_capture(const std::string& path, const TensorCoreInstruction& instruction,
                   const Batch& batch, const std::map<std::string, std::string>& metadata);

/// Reads a capture of this instruction. Throws formats::Error if the tensors do not fit it.
Batch read_capture(const std::string& path, const TensorCoreInstruction& instruction);

}  // namespace guardbit::gpu
