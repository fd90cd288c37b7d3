#pragma once

#include <string>

namespace guardbit::formats {

/// Path of the file that this code was loaded from: the program, or the Python module that holds
/// it. Empty where the system does not tell.
std::string own_file();

}  // namespace guardbit::formats
