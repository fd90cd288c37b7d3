#pragma once

#include <string>

#include "formats/support/words.hpp"

// Options that take words of an enumeration.
namespace guardbit::tools {

/// What the help shows of an option that takes words of an enumeration: "{flat,rows}".
template <class Enum>
std::string type_of_words() {
  return "{" + formats::list_of_words<Enum>(",") + "}";
}

}  // namespace guardbit::tools
