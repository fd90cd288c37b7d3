#pragma once

#include "emulator/functions/function.hpp"

// Which toolkits give CUDA's functions the results of CUDA 13.0, whose programs these are.
namespace guardbit::emulator {

/// The oldest toolkit whose compiler, like all since, gives the function the results of CUDA 13.0,
/// as major * 100 + minor; 1200 is the oldest that was asked. Of what was not compared (other modes
/// and formats, instructions, operators) it is the newest one.
int oldest_toolkit(const Function& function);
/// Does that toolkit give the function the results of CUDA 13.0, as far as is known?
bool is_known_of(const Function& function, int toolkit);

}  // namespace guardbit::emulator
