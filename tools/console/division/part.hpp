#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

// A share of work that several processes divide without knowing of each other.
namespace guardbit::tools {

/// A whole number, zero or more, that is all of the text.
std::optional<int> whole_number(std::string_view text);

/// Part `part` of `parts`, from 1 on.
struct Part {
  int part = 1, parts = 1;

  bool operator==(const Part&) const = default;
  /// Does it take piece `piece` of the work? Every piece has one part, and parts differ by one
  /// piece at most.
  bool takes(std::size_t piece) const {
    return piece % static_cast<std::size_t>(parts) == static_cast<std::size_t>(part - 1);
  }
};

/// "3/8". formats::Error of the option --part for what is none.
Part part_of(const std::string& text);
std::string text_of(const Part& part);

}  // namespace guardbit::tools
