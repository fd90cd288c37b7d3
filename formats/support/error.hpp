#pragma once

#include <stdexcept>
#include <string>

namespace guardbit::formats {

/// What the outside world did wrong: a file, a name, a value on the command line. `what()` is one
/// complete line that names the place and, where there is a choice, the valid choices. The command
/// prints it and exits with 2.
class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;

  /// "WHERE: WHAT"
  Error(const std::string& where, const std::string& what)
      : std::runtime_error(where + ": " + what) {}

  /// "WHERE: WHAT (valid: CHOICES)"
  Error(const std::string& where, const std::string& what, const std::string& choices)
      : std::runtime_error(where + ": " + what + " (valid: " + choices + ")") {}
};

}  // namespace guardbit::formats
