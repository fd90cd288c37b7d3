#pragma once

#include <string>

#include "formats/support/error.hpp"

namespace guardbit::formats {

/// A parameter has a value that it cannot have. A library names the parameter as its own struct
/// does; who asked a person for it names what that person wrote.
class ParameterError : public Error {
 public:
  ParameterError(const std::string& parameter, const std::string& problem)
      : Error(parameter, problem), parameter_(parameter), problem_(problem) {}

  const std::string& parameter() const { return parameter_; }
  const std::string& problem() const { return problem_; }

 private:
  std::string parameter_, problem_;
};

}  // namespace guardbit::formats
