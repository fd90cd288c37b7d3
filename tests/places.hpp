#pragma once

#include <string>
#include <string_view>

namespace guardbit::tests {

/// A path below the source folder: in_source("tests/golden/traces/").
std::string in_source(std::string_view below);

/// The command that this build made.
const std::string& command_path();

/// The python3 that has NumPy: the first of the path or the package manager's, to which
/// tools/test.sh gives it. Empty where neither has.
std::string python_with_numpy();

}  // namespace guardbit::tests
