#pragma once

#include <string>
#include <string_view>

#include "emulator/functions/function.hpp"

// Which toolkits give CUDA's functions the results of CUDA 13.0, whose programs these are.
namespace guardbit::emulator {

/// The oldest toolkit whose compiler, like all since, gives the function the results of CUDA 13.0,
/// as major * 100 + minor; 1200 is the oldest that was asked. Of what was not compared (other modes
/// and formats, instructions, operators) it is the newest one.
int oldest_toolkit(const Function& function);
/// Is it a function of NVIDIA's machines, which a toolkit of CUDA compiles?
bool has_toolkit(const Function& function);
/// Does that toolkit give the function the results of CUDA 13.0, as far as is known?
bool is_known_of(const Function& function, int toolkit);

/// The toolkit that `version` names, as 1300, the newest where it is empty; formats::Error that
/// begins with `where` where the function is not known of it.
int require_function_toolkit(const Function& function, std::string_view version,
                             const std::string& where);

}  // namespace guardbit::emulator
