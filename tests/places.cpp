#include "tests/places.hpp"

namespace guardbit::tests {

std::string in_source(std::string_view below) {
  return std::string(GUARDBIT_SOURCE_DIR "/").append(below);
}

const std::string& command_path() {
  static const std::string path = GUARDBIT_COMMAND;
  return path;
}

}  // namespace guardbit::tests
