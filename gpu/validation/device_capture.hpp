#pragma once

#include <map>
#include <string>

#include "gpu/operands/tensor_core_batch.hpp"

namespace guardbit::gpu {

/// "wgmma….s8.s8.neg_a": what names the file of an instruction and its variant; "::" becomes "__".
std::string capture_stem(const TensorCoreInstruction& row);

/// Writes one capture file (kind `instruction`) with the batch's operands and results; `metadata`
/// is added to the keys that the row itself gives.
void write_capture(const std::string& path, const TensorCoreInstruction& row, const Batch& batch,
                   const std::map<std::string, std::string>& metadata);

/// Reads the operands and results of a capture of this very row. formats::Error when the tensors do
/// not fit the row.
Batch read_capture(const std::string& path, const TensorCoreInstruction& row);

}  // namespace guardbit::gpu
