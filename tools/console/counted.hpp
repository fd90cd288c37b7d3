#pragma once

#include <concepts>
#include <string>

namespace guardbit::tools {

/// "1 mismatch", "2 mismatches": `ending` makes the noun a plural.
std::string counted(std::integral auto count, const std::string& noun,
                    const std::string& ending = "s") {
  return std::to_string(count) + " " + noun + (count == 1 ? "" : ending);
}

}  // namespace guardbit::tools
