#include "formats/block_format.hpp"

#include "formats/support/suggestions.hpp"

namespace guardbit::formats {

std::optional<BlockFormat> find_block_format(std::string_view name) {
  const std::string lower = lower_case(name);
  for (const BlockFormatEntry& entry : block_format_catalogue) {
    if (entry.name == lower || is_alias(entry.aliases, lower)) return entry.format;
  }
  return std::nullopt;
}

}  // namespace guardbit::formats
