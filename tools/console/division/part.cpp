#include "tools/console/division/part.hpp"

#include <charconv>
#include <system_error>

#include "formats/support/error.hpp"
#include "formats/support/printable.hpp"

namespace guardbit::tools {

std::optional<int> whole_number(std::string_view text) {
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < 0) return std::nullopt;
  return value;
}

Part part_of(const std::string& text) {
  const std::size_t slash = text.find('/');
  const auto part = whole_number(std::string_view(text).substr(0, slash)),
             parts = slash == std::string::npos
                         ? std::nullopt
                         : whole_number(std::string_view(text).substr(slash + 1));
  if (!part || !parts || *part < 1 || *part > *parts)
    throw formats::Error("--part", formats::in_quotes(text) + " is no part", "as 1/8, to 8/8");
  return {*part, *parts};
}

std::string text_of(const Part& part) {
  return std::to_string(part.part) + "/" + std::to_string(part.parts);
}

}  // namespace guardbit::tools
