#pragma once

#include <string_view>

namespace guardbit::formats {

/// The release, such as "0.1.0", as CMakeLists.txt names it.
std::string_view version();

}  // namespace guardbit::formats
