#pragma once

#include <string>

namespace guardbit::formats {

/// The text of a file, a pipe or, for "-", of standard input. Error when it cannot be read.
std::string read_text(const std::string& path);

}  // namespace guardbit::formats
