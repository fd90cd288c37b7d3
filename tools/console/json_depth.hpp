#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "formats/support/error.hpp"

// A limit to the depth of JSON that is read.
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

}  // namespace guardbit::tools
