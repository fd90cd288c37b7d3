#pragma once

#include <string>
#include <string_view>

namespace guardbit::tests {

/// A path below the source folder: in_source("tests/golden/traces/").
std::string in_source(std::string_view below);

/// The command that this build made.
const std::string& command_path();

}  // namespace guardbit::tests
