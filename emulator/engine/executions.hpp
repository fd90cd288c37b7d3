#pragma once

#include <cstdint>

#include "emulator/engine/matrix_product.hpp"
#include "emulator/model/batch.hpp"
#include "emulator/model/instruction.hpp"

// A product as executions of an instruction, one after the other: what any engine can do.
namespace guardbit::emulator {

/// Runs executions [begin, end) of a batch on the calling thread.
using Executions = void (*)(const MatrixInstruction& instruction, const MatrixBatch& batch,
                            std::int64_t begin, std::int64_t end);

/// The product, execution after execution: the way of an engine without a better one. The
/// instruction must take the product's addend, or K must be one execution.
void multiply_by_executions(Executions run, const MatrixInstruction& instruction,
                            const MatrixProduct& product, int threads);

}  // namespace guardbit::emulator
