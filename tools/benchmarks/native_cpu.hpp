#pragma once

#include <string>

namespace guardbit::tools {

/// Why code compiled with -march=native may not run here: the first instruction set that the
/// compiler was free to use and this CPU lacks, or that nobody knows how to ask it for. Empty: it
/// may run.
std::string native_obstacle();

}  // namespace guardbit::tools
