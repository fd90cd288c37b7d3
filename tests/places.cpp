#include "tests/places.hpp"

#include <cstdlib>

namespace guardbit::tests {

std::string in_source(std::string_view below) {
  return std::string(GUARDBIT_SOURCE_DIR "/").append(below);
}

const std::string& command_path() {
  static const std::string path = GUARDBIT_COMMAND;
  return path;
}

std::string python_with_numpy() {
  for (const std::string python : {"python3", "/usr/bin/python3"})
    if (std::system((python + " -c 'import numpy' 2>/dev/null").c_str()) == 0) return python;
  return "";
}

}  // namespace guardbit::tests
