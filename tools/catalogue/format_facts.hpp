#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "formats/block_format.hpp"
#include "formats/format.hpp"

namespace guardbit::tools {

/// One property of a format: what a table calls it, what a person reads, what a program reads.
struct Fact {
  /// in JSON, stable
  std::string_view key;
  /// in tables
  std::string_view label;
  std::string text;
  nlohmann::json value;
};

/// Everything worth saying about a format, derived from its descriptor; the same keys for every
/// format.
std::vector<Fact> facts_of(const formats::Format& format);
std::vector<Fact> facts_of(const std::string& name, const formats::BlockFormat& format,
                           std::string_view standard);

/// The facts of the formats asked for, plain ones and block ones.
struct FormatSelection {
  std::vector<std::vector<Fact>> plain;
  std::vector<std::vector<Fact>> block;
};

/// The formats of these names; all where there are none. formats::Error for an unknown one.
FormatSelection select_formats(const std::vector<std::string>& names);
/// "formats" and "block_formats": an object of facts each.
nlohmann::ordered_json to_json(const FormatSelection& selection);

/// The format of that name, as formats::require_format; a block format is refused as such, since
/// codes alone say nothing there.
formats::Format require_element_format(std::string_view name, std::string_view where);

/// The fact of that key.
const Fact& fact(const std::vector<Fact>& facts, std::string_view key);

/// Decimal digits that every number of so many survives a round trip through the format: the most n
/// with 10^n <= 2^(precision - 1); of integers, the most n whose every n-digit number is one.
int decimal_digits(const formats::Format& format);

/// Decimal digits that tell any two numbers of the format apart: the least n with 10^(n - 1) >
/// 2^precision; of integers, the digits of the largest.
int distinguishing_digits(const formats::Format& format);

}  // namespace guardbit::tools
