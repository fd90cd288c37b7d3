#pragma once

#include <algorithm>
#include <string>
#include <string_view>

namespace guardbit::formats {

/// What a library says of bad input as a part of our own message: without the name of its
/// exception, and without the text that it quotes, which may be long. What only the library's
/// authors understand becomes one plain sentence.
inline std::string without_library_words(std::string_view what) {
  std::string text(what);
  if (text.starts_with("[json.exception")) {
    const std::size_t end = text.find("] ");
    text.erase(0, end == std::string::npos ? text.size() : end + 2);
    text.erase(std::min(text.find("; last read"), text.size()));
    constexpr std::string_view head = "parse error ";
    if (text.starts_with(head)) text.erase(0, head.size());
    // "syntax error while parsing object key - unexpected '['; expected string literal"
    const std::size_t parser = text.find("syntax error while parsing ");
    if (const std::size_t dash = text.find(" - ", parser);
        parser != std::string::npos && dash != std::string::npos)
      text.erase(parser, dash + 3 - parser);
  }
  for (const std::string_view word : {"basic_", "std::", "vector::", "map::", "::at", "stoi",
                                      "stod", "stoul", "toml::", "bad_", "iostream error"})
    if (text.find(word) != std::string::npos) return "it is not what is expected here";
  return text;
}

}  // namespace guardbit::formats
