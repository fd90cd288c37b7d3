#include "experiments/harness/settings.hpp"

#include <algorithm>
#include <array>
#include <cassert>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <utility>

#include "formats/support/error.hpp"
#include "formats/support/printable.hpp"

namespace guardbit::experiments {

namespace {

using formats::Error;

/// More values than anyone waits for; a slip in a step would otherwise fill the memory.
constexpr std::size_t most_values = 10000;

std::vector<std::string_view> parts_of(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  for (;;) {
    const std::size_t end = text.find(separator);
    parts.push_back(text.substr(0, end));
    if (end == std::string_view::npos) return parts;
    text.remove_prefix(end + 1);
  }
}

std::string written(double x) {
  std::array<char, 40> text{};
  const auto end = std::to_chars(text.data(), text.data() + text.size(), x).ptr;
  return {text.data(), end};
}

/// Reads the numbers of one parameter.
class NumberReader {
 public:
  NumberReader(const Parameter& parameter, std::string_view where)
      : parameter_(parameter), where_(where) {}

  std::vector<std::string> item(std::string_view text) const {
    const std::vector<std::string_view> parts = parts_of(text, ':');
    if (parts.size() == 1) return {value(number(text, text), text)};
    if (parts.size() > 3) refuse(text, "has more than three parts");
    const bool multiplies = parts.size() == 3 && parts[2].starts_with('x');
    const double first = number(parts[0], text), last = number(parts[1], text);
    const double step =
        parts.size() == 2 ? 1 : number(multiplies ? parts[2].substr(1) : parts[2], text);
    if (!(multiplies ? step > 1 && first > 0 : step > 0)) refuse(text, "never ends");
    if (first > last) refuse(text, "is empty");
    std::vector<std::string> values;
    // Each from the first, so that rounding errors of the steps do not add up.
    for (int i = 0;; ++i) {
      const double x = multiplies ? first * std::pow(step, i) : first + step * i;
      if (x > last) return values;
      if (values.size() == most_values) refuse(text, "has too many values");
      values.push_back(value(x, text));
    }
  }

 private:
  bool is_integer() const { return parameter_.kind == Parameter::Kind::integer; }

  double number(std::string_view text, std::string_view item) const {
    double x = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), x);
    if (error != std::errc{} || end != text.data() + text.size() || !std::isfinite(x))
      refuse(item, "is not a number or a range of them");
    return x;
  }

  std::string value(double x, std::string_view item) const {
    if (is_integer() && x != std::floor(x)) refuse(item, "is not a whole number");
    if (!(x >= parameter_.least && x <= parameter_.most)) refuse(item, "is out of range");
    return written(x);
  }

  [[noreturn]] void refuse(std::string_view item, const std::string& what) const {
    std::string valid = written(parameter_.least) + " to " + written(parameter_.most);
    if (parameter_.many) valid += ", several between commas, FIRST:LAST:STEP, FIRST:LAST:xFACTOR";
    throw Error(std::string(where_), formats::in_quotes(item) + " " + what, valid);
  }

  const Parameter& parameter_;
  std::string_view where_;
};

}  // namespace

std::vector<std::string> parse_values(const Parameter& parameter, std::string_view text,
                                      std::string_view where) {
  using Kind = Parameter::Kind;
  const bool numeric = parameter.kind == Kind::integer || parameter.kind == Kind::number;
  const auto items =
      parameter.kind == Kind::path ? std::vector<std::string_view>{text} : parts_of(text, ',');
  std::vector<std::string> values;
  for (const std::string_view item : items) {
    if (numeric) {
      for (std::string& value : NumberReader(parameter, where).item(item))
        values.push_back(std::move(value));
      continue;
    }
    const auto choices = parts_of(parameter.choices, ',');
    if (!parameter.choices.empty() && std::ranges::find(choices, item) == choices.end())
      throw Error(std::string(where), formats::in_quotes(item) + " is not known",
                  std::string(parameter.choices));
    if (item.empty()) throw Error(std::string(where), "has an empty value");
    values.emplace_back(item);
  }
  if (!parameter.many && values.size() != 1) throw Error(std::string(where), "takes one value");
  if (values.size() > most_values) throw Error(std::string(where), "has too many values");
  return values;
}

void Settings::set(std::string_view name, std::vector<std::string> values) {
  assert(!values.empty());
  values_[std::string(name)] = std::move(values);
}

const std::vector<std::string>& Settings::words(std::string_view name) const {
  return values_.at(std::string(name));
}

std::vector<std::int64_t> Settings::integers(std::string_view name) const {
  std::vector<std::int64_t> result;
  for (const double x : numbers(name)) result.push_back(static_cast<std::int64_t>(x));
  return result;
}

std::vector<double> Settings::numbers(std::string_view name) const {
  std::vector<double> result;
  for (const std::string& text : words(name)) result.push_back(std::strtod(text.c_str(), nullptr));
  return result;
}

Settings usual_settings(const std::vector<Parameter>& parameters, bool quick) {
  Settings settings;
  for (const Parameter& parameter : parameters) {
    const bool has_quick = quick && !parameter.quick.empty();
    settings.set(
        parameter.name,
        parse_values(parameter, has_quick ? parameter.quick : parameter.usual, parameter.name));
  }
  return settings;
}

}  // namespace guardbit::experiments
