#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace guardbit::formats {

/// Text from a file or a command line as part of a one-line message: control characters escaped,
/// long text cut short.
inline std::string printable(std::string_view text, std::size_t limit = 200) {
  constexpr std::string_view digits = "0123456789abcdef";
  std::string result;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    const bool continuation = (byte & 0xC0U) == 0x80U;
    if (result.size() >= limit && !continuation) return result + "...";
    // U+0080 to U+009F are control characters, too: 0xC2 and one more byte in UTF-8.
    const bool is_c1 = byte == 0xC2U && i + 1 < text.size() &&
                       (static_cast<unsigned char>(text[i + 1]) & 0xE0U) == 0x80U;
    if (is_c1) {
      const auto code = static_cast<unsigned char>(text[++i]);
      result += "\\x";
      result += digits[code >> 4U];
      result += digits[code & 0xFU];
    } else if (byte < 0x20U || byte == 0x7FU) {
      result += "\\x";
      result += digits[byte >> 4U];
      result += digits[byte & 0xFU];
    } else {
      result += text[i];
    }
    if (result.size() >= limit + 4) return result + "...";
  }
  return result;
}

/// printable, in quotes.
inline std::string in_quotes(std::string_view text) { return "'" + printable(text, 80) + "'"; }

}  // namespace guardbit::formats
