#pragma once

#include <string>

namespace guardbit::formats {

/// The words that `word_of` gives of each item, with `separator` between them.
template <class List, class WordOf>
std::string joined(const List& list, const std::string& separator, const WordOf& word_of) {
  std::string text;
  bool first = true;
  for (const auto& item : list) {
    if (!first) text += separator;
    text += word_of(item);
    first = false;
  }
  return text;
}

/// Strings with `separator` between them.
template <class List>
std::string joined(const List& list, const std::string& separator) {
  return joined(
      list, separator, [](const auto& item) -> const auto& { return item; });
}

}  // namespace guardbit::formats
