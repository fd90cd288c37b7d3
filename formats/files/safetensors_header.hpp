#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace guardbit::formats {

/// One tensor of a safetensors header, as written there.
struct SafetensorsEntry {
  std::string name;
  std::string dtype;
  std::vector<std::int64_t> shape;
  /// offsets into the data that follows the header
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
};

struct SafetensorsHeader {
  std::map<std::string, std::string> metadata;
  /// in the header's order
  std::vector<SafetensorsEntry> entries;
};

/// The syntax of a safetensors header: one JSON object padded with spaces, every name once, nothing
/// unknown. What the entries mean is not checked. `where` names the file in errors.
SafetensorsHeader parse_safetensors_header(const std::string& where, std::string_view text);

/// The header's JSON text, without padding; an Error when a name or a value is not UTF-8.
std::string safetensors_header_text(const std::string& where, const SafetensorsHeader& header);

}  // namespace guardbit::formats
