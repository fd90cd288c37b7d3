#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "formats/format.hpp"
#include "formats/rounding.hpp"
#include "formats/text.hpp"
#include "formats/value.hpp"

namespace guardbit::tools {

/// Converters that give one answer.
struct Answer {
  std::uint64_t code = 0;
  std::vector<std::string_view> converters;
};

/// A number taken apart in one format.
struct Dissection {
  formats::Format format;
  std::uint64_t code = 0;
  /// of the code
  formats::Value value;
  /// neighbouring codes by value
  std::optional<std::uint64_t> below;
  std::optional<std::uint64_t> above;
  /// value - number, exactly, where both are finite
  std::optional<formats::Decimal> error;
  /// of the number's own binade; where the number is in range
  std::optional<formats::Decimal> error_in_ulp;
  /// of every converter to the format, commonest rule first
  std::vector<Answer> answers;
};

/// Rounds the number into the format with IEEE overflow; a number written as a code of the format
/// keeps that code.
Dissection dissect(const formats::ParsedValue& number, const formats::Format& format,
                   formats::Rounding rounding);

/// Stable keys; every digit of every number.
nlohmann::ordered_json to_json(const Dissection& dissection);

}  // namespace guardbit::tools
