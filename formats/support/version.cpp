#include "formats/support/version.hpp"

namespace guardbit::formats {

std::string_view version() { return GUARDBIT_VERSION; }

}  // namespace guardbit::formats
