#pragma once

#include "emulator/functions/largest_errors.hpp"

namespace guardbit::tests {

/// The largest error over those inputs, as emulator::function_errors has it over all. Of functions
/// of one FP32 or FP64 number the exact function is interpolated where it is smooth enough, and
/// only errors that come near the largest one are computed.
emulator::LargestError search_largest_error(const emulator::Function& function,
                                            emulator::ErrorInputs asked, int threads = 0);

}  // namespace guardbit::tests
