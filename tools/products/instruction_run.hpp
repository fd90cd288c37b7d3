#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "emulator/engine/engine.hpp"
#include "emulator/model/batch.hpp"
#include "emulator/model/instruction.hpp"
#include "formats/tensors/tensor.hpp"

// One instruction executed on tensors.
namespace guardbit::tools {

/// The format that the instruction gives the operand of that name: a, b, c, e, a_scale or b_scale.
formats::Format operand_format(const emulator::MatrixInstruction& instruction,
                               std::string_view tensor);

/// wgmma and tcgen05 negate operands and ignore C.
bool takes_modifiers(const emulator::MatrixInstruction& instruction);
/// formats::Error if its operands cannot be negated so.
void require_modifiers(const emulator::MatrixInstruction& instruction,
                       const emulator::Modifiers& modifiers);

struct InstructionRun {
  /// the operands, and last D
  std::vector<formats::Tensor> tensors;
  std::int64_t executions = 0, outputs = 0;
};

/// Executes it on a [T, M, K], b [T, K, N] and what else it takes; C is +0 where there is none.
/// formats::Error names `where` for operands that do not fit.
InstructionRun run_instruction(const emulator::MatrixInstruction& instruction,
                               const emulator::Engine& engine,
                               std::vector<formats::Tensor> operands,
                               const emulator::Modifiers& modifiers, int threads,
                               const std::string& where);

}  // namespace guardbit::tools
