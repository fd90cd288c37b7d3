#pragma once

// What users call the enumerators of an enumeration. The words stand beside it, as
//   constexpr auto words(Colour) { return std::array{"red", "green"}; }
// in the order of its enumerators, which count from 0. Parsers, help, errors and documents read
// them from there.

#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "formats/support/error.hpp"
#include "formats/support/suggestions.hpp"

namespace guardbit::formats {

/// Is that value an enumerator's? Compilers write "= (Colour)2" where it is none.
template <auto value>
constexpr bool is_enumerator() {
  const std::string_view name = __PRETTY_FUNCTION__;
  const std::size_t equals = name.rfind("= ");
  return equals != std::string_view::npos && name[equals + 2] != '(';
}

/// The words of an enumeration.
template <class Enum>
inline constexpr auto words_of = [] {
  constexpr auto list = words(Enum{});
  static_assert(!is_enumerator<static_cast<Enum>(list.size())>(), "an enumerator has no word");
  std::array<std::string_view, list.size()> all;
  std::copy(list.begin(), list.end(), all.begin());
  return all;
}();

/// Its enumerators.
template <class Enum>
inline constexpr auto enumerators_of = [] {
  std::array<Enum, words_of<Enum>.size()> all{};
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<Enum>(i);
  return all;
}();

template <class Enum>
constexpr std::string_view word_of(Enum value) {
  return words_of<Enum>.at(static_cast<std::size_t>(value));
}

/// The enumerator of exactly that word.
template <class Enum>
constexpr std::optional<Enum> find_word(std::string_view text) {
  const auto& all = words_of<Enum>;
  const auto found = std::find(all.begin(), all.end(), text);
  if (found == all.end()) return std::nullopt;
  return static_cast<Enum>(found - all.begin());
}

/// "red, green"
template <class Enum>
std::string list_of_words(std::string_view separator = ", ") {
  std::string list;
  for (const std::string_view word : words_of<Enum>)
    list.append(list.empty() ? "" : separator).append(word);
  return list;
}

/// "red,green", which lives as long as the program.
template <class Enum>
std::string_view choices_of() {
  static const std::string list = list_of_words<Enum>(",");
  return list;
}

/// The enumerator of that word (any case), or an Error that begins with `where`, says what `kind`
/// of word is unknown, and lists them.
template <class Enum>
Enum require_word(std::string_view kind, std::string_view text, std::string_view where) {
  if (const auto found = find_word<Enum>(lower_case(text))) return *found;
  const auto& all = words_of<Enum>;
  throw Error(std::string(where), unknown_name(kind, text, {all.begin(), all.end()}),
              list_of_words<Enum>());
}

}  // namespace guardbit::formats
