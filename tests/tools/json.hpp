#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/catch.hpp"
#include "tests/tools/command.hpp"

namespace guardbit::tests {

/// The JSON that `guardbit` with these words prints; it must end well.
inline nlohmann::json json_of(const std::vector<std::string>& words) {
  const CommandResult result = run_command(words);
  INFO(result.error);
  REQUIRE(result.status == 0);
  return nlohmann::json::parse(result.out);
}

}  // namespace guardbit::tests
