#pragma once

#include "gpu/operands/tensor_core_batch.hpp"

// Plain forms: an instruction's operand choices undone, so that its results can be compared with
// the simplest form's.
namespace guardbit::gpu {

/// The operands with which the plain form of an instruction should give the same results: operands
/// negated by imm-scale are negated here, an ignored addend is +0, descending sparse positions are
/// sorted, and a wider N becomes several executions of the plain N (column block p of execution t
/// is execution t * blocks + p).
Batch as_plain_form(const TensorCoreInstruction& instruction, const TensorCoreInstruction& plain,
                    const Batch& batch);

/// Outputs of `batch` that differ from those of its plain form.
int count_differences(const TensorCoreInstruction& instruction, const TensorCoreInstruction& plain,
                      const Batch& batch, const Batch& of_plain);

}  // namespace guardbit::gpu
