#include "tools/catalogue/dissection.hpp"

#include <nlohmann/json.hpp>

#include "formats/codec.hpp"
#include "formats/conversion/conversion.hpp"
#include "formats/conversion/converters.hpp"
#include "formats/format_catalogue.hpp"
#include "formats/neighbour.hpp"

namespace guardbit::tools {

namespace {

using formats::Decimal;
using formats::Format;
using formats::Kind;

bool is_number(Kind kind) { return kind == Kind::finite || kind == Kind::zero; }

void add_answer(std::vector<Answer>& answers, std::uint64_t code, std::string_view converter) {
  for (Answer& answer : answers) {
    if (answer.code == code) {
      answer.converters.push_back(converter);
      return;
    }
  }
  answers.push_back({code, {converter}});
}

nlohmann::ordered_json code_json(const Format& format, std::optional<std::uint64_t> code) {
  if (!code) return nullptr;
  const formats::Value value = formats::decode(format, *code);
  return {{"code", formats::hex_text(format, *code)}, {"decimal", formats::exact_text(value)}};
}

nlohmann::ordered_json decimal_json(const std::optional<Decimal>& decimal) {
  if (!decimal) return nullptr;
  return formats::to_string(*decimal);
}

}  // namespace

Dissection dissect(const formats::ParsedValue& number, const Format& format,
                   formats::Rounding rounding) {
  Dissection result;
  result.format = format;
  result.code =
      number.format == format ? number.code : formats::encode(format, number.value, rounding);
  result.value = formats::decode(format, result.code);
  result.below = formats::neighbour(format, result.code, false);
  result.above = formats::neighbour(format, result.code, true);
  if (number.decimal && is_number(result.value.kind)) {
    result.error = formats::difference(formats::exact_decimal(result.value), *number.decimal);
    if (formats::is_in_range(format, number.value, rounding)) {
      result.error_in_ulp =
          formats::scaled(*result.error, -formats::unit_exponent(format, number.value));
    }
  }
  for (const formats::Converter* converter : formats::converters_to(format)) {
    if (converter->rounding == formats::Rounding::stochastic)
      continue;  // its answer is not a function of the number
    add_answer(result.answers, formats::convert(*converter, number.value, format), converter->name);
  }
  return result;
}

nlohmann::ordered_json to_json(const Dissection& d) {
  const formats::Fields fields = formats::fields_of(d.format, d.code);
  nlohmann::ordered_json object = {
      {"format", formats::name_of(d.format)},
      {"code", formats::hex_text(d.format, d.code)},
      {"fields",
       {{"sign", fields.sign}, {"exponent", fields.exponent}, {"fraction", fields.fraction}}},
      {"decimal", formats::exact_text(d.value)},
      {"shortest", formats::shortest_text(d.format, d.code)},
      {"hex_float", formats::hex_float(d.value)},
      {"error", decimal_json(d.error)},
      {"error_ulp", decimal_json(d.error_in_ulp)},
      {"below", code_json(d.format, d.below)},
      {"above", code_json(d.format, d.above)}};
  object["converters"] = nlohmann::ordered_json::array();
  for (const Answer& answer : d.answers) {
    nlohmann::ordered_json entry = code_json(d.format, answer.code);
    entry["names"] = answer.converters;
    object["converters"].push_back(entry);
  }
  return object;
}

}  // namespace guardbit::tools
