#pragma once

#include "emulator/operator_search/operator_question.hpp"

// Which ring or tree of NCCL gives an all-reduce's result.
namespace guardbit::emulator {

/// `input` has the tensors of all GPUs along its first dimension. formats::Error for shapes that do
/// not fit.
OperatorAnswer search_all_reduce(const OperatorQuestion& question);

}  // namespace guardbit::emulator
