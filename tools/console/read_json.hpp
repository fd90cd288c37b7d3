#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "formats/files/text_file.hpp"
#include "formats/support/error.hpp"
#include "formats/support/library_words.hpp"
#include "formats/support/printable.hpp"

// JSON that is read.
namespace guardbit::tools {

/// For the parsers of nlohmann::json, as their callback: formats::Error of `where` for a document
/// that nests deeper than any of ours. What copies or compares a document calls itself once for
/// each level, and a hostile file of some 100 kB would have it run out of stack.
inline auto limited_depth(std::string where) {
  return [where = std::move(where)](int depth, nlohmann::json::parse_event_t, auto&) {
    constexpr int deepest = 256;
    if (depth > deepest)
      throw formats::Error(where, "nests deeper than " + std::to_string(deepest) + " levels");
    return true;
  };
}

/// A JSON document of a file or standard input. formats::Error where it is none.
template <class Json = nlohmann::json>
Json read_json(const std::string& path) {
  const std::string where = formats::printable(path);
  try {
    return Json::parse(formats::read_text(path), limited_depth(where));
  } catch (const nlohmann::json::exception& error) {
    throw formats::Error(
        where, "not JSON: " + formats::printable(formats::without_library_words(error.what())));
  }
}

}  // namespace guardbit::tools
