#pragma once

#include "emulator/operator_search/operator_question.hpp"

// How an unknown library computed a reduction, a softmax or a norm: the formula and the order of
// its additions, told from one input and output.
namespace guardbit::emulator {

/// formats::Error for shapes that do not fit and types that have no arithmetic here.
OperatorAnswer search_operator(const OperatorQuestion& question);

}  // namespace guardbit::emulator
