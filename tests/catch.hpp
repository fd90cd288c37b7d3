#pragma once

#include <string>

// Debian 12 ships Catch2 2.13, Ubuntu 24.04 ships 3.x: tests include this file instead of either,
// and `contains_text` instead of the matcher of texts, whose name changed.
#if __has_include(<catch2/catch_all.hpp>)
#include <catch2/catch_all.hpp>
using Catch::Approx;  // as 2.13 has it
namespace guardbit::tests {
inline auto contains_text(const std::string& text) {
  return Catch::Matchers::ContainsSubstring(text);
}
}  // namespace guardbit::tests
#else
#include <catch2/catch.hpp>
namespace guardbit::tests {
inline auto contains_text(const std::string& text) { return Catch::Matchers::Contains(text); }
}  // namespace guardbit::tests
#endif
