#include "formats/conversion/converters.hpp"

#include <algorithm>

#include "formats/support/suggestions.hpp"
#include "formats/support/words.hpp"
#include "formats/text.hpp"

namespace guardbit::formats {

namespace {

bool has_destination(const Converter& converter, const Format& destination) {
  return std::find(converter.destinations.begin(), converter.destinations.end(), destination) !=
         converter.destinations.end();
}

std::string destination_names(const Converter& converter) {
  std::string names;
  for (const Format& destination : converter.destinations)
    names += (names.empty() ? "" : ", ") + name_of(destination);
  return names;
}

/// "7e (448)"
std::string answer(const Converter& converter, const Format& destination, std::string_view input) {
  const std::uint64_t code =
      convert(converter, parse_value(input, "converters").value, destination);
  const Value value = decode(destination, code);
  const std::string text =
      value.kind == Kind::finite ? to_string(exact_decimal(value), 6) : exact_text(value);
  return hex_text(destination, code).substr(2) + " (" + text + ")";
}

std::string fp8_table(const Format& destination, std::span<const std::string_view> inputs) {
  std::string head = "| to " + name_of(destination);
  std::string rule = "|---";
  for (const std::string_view input : inputs) {
    head += " | " + std::string(input);
    rule += "|---";
  }
  std::string text = head + " |\n" + rule + "|\n";
  for (const Converter* converter : converters_to(destination)) {
    if (converter->rounding == Rounding::stochastic) continue;
    text += "| " + std::string(converter->name);
    for (const std::string_view input : inputs)
      text += " | " + answer(*converter, destination, input);
    text += " |\n";
  }
  return text;
}

}  // namespace

const Converter* find_converter(std::string_view name, const Format& destination) {
  std::string lower = lower_case(name);
  if (lower == "torch") lower = "pytorch";
  if (lower == "cvt") {
    const Converter* const plain = find_converter("cvt.rn", destination);
    return plain != nullptr ? plain : find_converter("cvt.rn.satfinite", destination);
  }
  for (const Converter& converter : converters) {
    if (converter.name == lower && has_destination(converter, destination)) return &converter;
  }
  return nullptr;
}

std::vector<const Converter*> converters_to(const Format& destination) {
  std::vector<const Converter*> rows;
  for (const Converter& converter : converters) {
    if (has_destination(converter, destination)) rows.push_back(&converter);
  }
  return rows;
}

std::vector<std::string_view> converter_names() {
  std::vector<std::string_view> names;
  for (const Converter& converter : converters) {
    if (std::find(names.begin(), names.end(), converter.name) == names.end())
      names.push_back(converter.name);
  }
  return names;
}

std::string converters_markdown() {
  std::string text =
      "| converter | destinations | rounding | what it does | reference |\n|---|---|---|---|---|\n";
  for (const Converter& converter : converters) {
    text += "| " + std::string(converter.name) + " | " + destination_names(converter) + " | " +
            std::string(word_of(converter.rounding)) + " | " + std::string(converter.description) +
            " | " + std::string(converter.reference) + " |\n";
  }
  // Just past the middle of 448 and 480, far outside, the specials, and ties at the bottom of each
  // format.
  constexpr std::array<std::string_view, 9> e4m3_inputs = {
      "464", "465", "-465", "1e9", "inf", "nan", "-nan", "0x1p-10", "0x1.8p-9"};
  constexpr std::array<std::string_view, 9> e5m2_inputs = {
      "465", "61440", "-61440", "1e9", "inf", "nan", "-nan", "0x1p-17", "0x1.8p-16"};
  text += "\n" + fp8_table(e4m3, e4m3_inputs) + "\n" + fp8_table(e5m2, e5m2_inputs);
  text += "\n" + fp8_table(e4m3fnuz, e4m3_inputs) + "\n" + fp8_table(e5m2fnuz, e5m2_inputs);
  return text;
}

}  // namespace guardbit::formats
