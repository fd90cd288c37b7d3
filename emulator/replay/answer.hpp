#pragma once

#include "emulator/replay/handler.hpp"

// One call computed, of a recording or of a program that runs.
namespace guardbit::emulator::replay {

/// What the call gives. Its results are compared with nothing; a call without a model, or with
/// arguments that its model does not know, is answered so.
Answer answer_of(const Call& call, Context& context);

}  // namespace guardbit::emulator::replay
