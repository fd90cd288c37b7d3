#include <CLI/CLI.hpp>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "formats/codec.hpp"
#include "formats/conversion/converters.hpp"
#include "formats/format_catalogue.hpp"
#include "formats/support/error.hpp"
#include "formats/support/words.hpp"
#include "formats/text.hpp"
#include "tools/catalogue/dissection.hpp"
#include "tools/catalogue/format_facts.hpp"
#include "tools/commands/commands.hpp"
#include "tools/console/print_json.hpp"
#include "tools/console/terminal.hpp"

namespace guardbit::tools {

namespace {

struct ShowOptions {
  std::vector<std::string> values;
  std::vector<std::string> formats;
  std::string rounding = "nearest_even";
  bool json = false;
};

constexpr std::size_t indent = 12;
constexpr std::size_t label_width = 12;
constexpr std::size_t screen = 98;
constexpr std::size_t overview_digits = 20;

/// The format the number was written in, then every floating one.
std::vector<formats::Format> overview_formats(const formats::ParsedValue& number) {
  std::vector<formats::Format> list;
  if (number.format) list.push_back(*number.format);
  for (const formats::FormatEntry& entry : formats::format_catalogue) {
    if (!formats::is_integer(entry.format) && entry.format != number.format)
      list.push_back(entry.format);
  }
  return list;
}

/// Programs get the integer formats in the same shape as the others.
void append_integers(const formats::ParsedValue& number, std::vector<formats::Format>& list) {
  for (const formats::FormatEntry& entry : formats::format_catalogue) {
    if (formats::is_integer(entry.format) && entry.format != number.format)
      list.push_back(entry.format);
  }
}

std::string painted_fields(const formats::Format& format, std::uint64_t code) {
  const formats::Fields fields = formats::fields_of(format, code);
  std::string text = paint(fields.sign, Colour::red);
  for (const auto& [field, colour] :
       {std::pair(fields.exponent, Colour::green), std::pair(fields.fraction, Colour::cyan)}) {
    if (!text.empty() && !field.empty()) text += ' ';
    text += paint(field, colour);
  }
  return text;
}

/// All digits, or so many of them and how many there are.
std::string number_text(const formats::Decimal& number, std::size_t digits) {
  if (digits == 0 || number.digits.size() <= digits) return formats::to_string(number);
  return formats::to_string(number, static_cast<int>(digits)) + "… (" +
         std::to_string(number.digits.size()) + " digits)";
}

std::string value_text(const formats::Value& value, int digits) {
  if (value.kind != formats::Kind::finite) return formats::exact_text(value);
  return formats::to_string(formats::exact_decimal(value), digits);
}

std::string padded(std::string text, std::size_t width) {
  text.resize(std::max(text.size(), width), ' ');
  return text;
}

/// At least as wide as the indent, which user-defined formats exceed.
std::string format_name(const formats::Format& format) {
  return padded(formats::name_of(format) + "  ", indent);
}

/// "LABEL  LEAD TEXT", the text wrapped below itself.
void print_line(std::string_view label, const std::string& lead, const std::string& text) {
  std::string margin =
      std::string(indent, ' ') + paint(padded(std::string(label), label_width), Colour::dim) + lead;
  const std::size_t width = indent + label_width + lead.size();
  for (const std::string& line : wrapped(text, screen - width)) {
    std::cout << margin << line << '\n';
    margin.assign(width, ' ');
  }
}

/// "-0.4 ulp = -2.4414e-5"; all digits of the difference for 0.
std::string error_text(const Dissection& d, const formats::ParsedValue& number, int digits) {
  const bool is_zero = number.value.kind == formats::Kind::zero;
  if (is_zero && number.value.negative != d.value.negative) return "the sign is lost";
  if (d.error && d.error->digits == "0") return "exact";
  if (!d.error) {
    if (number.value.kind == d.value.kind) return "exact";
    if (number.value.negative && !d.format.has_sign) return "the format has no negative numbers";
    if (number.value.kind != formats::Kind::finite) return "the format has no such number";
    const bool lost = d.value.kind == formats::Kind::infinity || d.value.kind == formats::Kind::nan;
    return lost ? "overflow" : "underflow";
  }
  const std::string difference = formats::to_string(*d.error, digits);
  if (!d.error_in_ulp)
    return "out of range by " + (d.error->negative ? difference.substr(1) : difference);
  return formats::to_string(*d.error_in_ulp, 4) + " ulp = " + difference;
}

std::string code_value_text(const Dissection& d, const std::optional<std::uint64_t>& code,
                            int digits) {
  return code ? value_text(formats::decode(d.format, *code), digits) : "nothing";
}

std::string names_text(const Answer& answer) {
  std::string text;
  for (const std::string_view name : answer.converters)
    text += (text.empty() ? "" : ", ") + std::string(name);
  return text;
}

/// What the converters give, a line per answer.
void print_answers(const Dissection& d) {
  std::string_view label = "converters";
  for (const Answer& answer : d.answers) {
    const std::string code = formats::hex_text(d.format, answer.code) + "  ";
    const std::string value = code_value_text(d, answer.code, 9);
    print_line(label, padded(code + value, 22) + "  ", names_text(answer));
    label = "";
  }
}

bool converters_differ(const Dissection& d) {
  return d.answers.size() > 1 || (d.answers.size() == 1 && d.answers.front().code != d.code);
}

/// Two lines, and what the converters give where they differ from each other or from the code
/// shown.
void print_short(const Dissection& d, const formats::ParsedValue& number) {
  constexpr std::size_t value_column = 60;
  std::string line = paint(format_name(d.format), Colour::bold) +
                     padded(formats::hex_text(d.format, d.code), 10) + "  " +
                     painted_fields(d.format, d.code);
  const std::string value = d.value.kind == formats::Kind::finite
                                ? number_text(formats::exact_decimal(d.value), overview_digits)
                                : formats::exact_text(d.value);
  std::size_t column = display_width(line);
  if (column + 2 > value_column) {
    std::cout << line << '\n';
    line.clear();
    column = indent;
    line.assign(indent, ' ');
  } else {
    line.append(value_column - column, ' ');
  }
  std::cout << line << paint(value, Colour::bold) << '\n'
            << std::string(indent, ' ') << error_text(d, number, 5);
  const int digits = std::max(9, distinguishing_digits(d.format));
  if (d.below && d.above) {
    std::cout << paint(", between ", Colour::dim) << code_value_text(d, d.below, digits)
              << paint(" and ", Colour::dim) << code_value_text(d, d.above, digits);
  } else if (d.below || d.above) {
    std::cout << paint(d.below ? "; the largest number, after " : "; the smallest number, before ",
                       Colour::dim)
              << code_value_text(d, d.below ? d.below : d.above, digits);
  }
  std::cout << '\n';
  if (converters_differ(d)) print_answers(d);
}

/// A line per property, with every digit.
void print_fully(const Dissection& d, const formats::ParsedValue& number) {
  std::cout << paint(format_name(d.format), Colour::bold) << formats::hex_text(d.format, d.code)
            << "  " << painted_fields(d.format, d.code) << '\n';
  print_line("exactly", "", value_text(d.value, 0));
  if (d.value.kind == formats::Kind::finite) {
    // What is past the largest number becomes it in some conversions, and is no way to write it.
    if (!d.error || d.error_in_ulp || d.error->digits == "0")
      print_line("shortest", "", formats::shortest_text(d.format, d.code));
    print_line("hex float", "", formats::hex_float(d.value));
  }
  print_line("error", "", error_text(d, number, 0));
  for (const auto& [label, code] : {std::pair("below", d.below), std::pair("above", d.above)}) {
    if (d.value.kind == formats::Kind::nan) break;
    print_line(label, code ? formats::hex_text(d.format, *code) + "  " : "",
               code_value_text(d, code, 0));
  }
  print_answers(d);
}

/// One line per integer format.
void print_integers(const formats::ParsedValue& number, formats::Rounding rounding) {
  Table table("lrl", false);
  for (const formats::FormatEntry& entry : formats::format_catalogue) {
    if (!formats::is_integer(entry.format) || entry.format == number.format) continue;
    const Dissection d = dissect(number, entry.format, rounding);
    table.add({paint(padded(std::string(entry.name), indent - 2), Colour::bold),
               formats::hex_text(d.format, d.code),
               formats::exact_text(d.value) + paint("  " + error_text(d, number, 5), Colour::dim)});
  }
  table.print(std::cout);
}

std::string without_blanks(std::string text) {
  std::erase(text, ' ');
  return text;
}

void run(const ShowOptions& options) {
  const formats::Rounding rounding =
      formats::require_word<formats::Rounding>("rounding", options.rounding, "--rounding");
  if (rounding == formats::Rounding::stochastic) {
    throw formats::Error("--rounding",
                         "stochastic rounding has no single answer; 'guardbit cast' does it");
  }
  std::vector<formats::Format> wanted;
  for (const std::string& name : options.formats)
    wanted.push_back(require_element_format(name, "--format"));
  std::vector<formats::ParsedValue> numbers;
  numbers.reserve(options.values.size());
  for (const std::string& value : options.values)
    numbers.push_back(formats::parse_value(value, "show"));

  nlohmann::ordered_json document;
  document["values"] = nlohmann::ordered_json::array();
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    const std::string text = without_blanks(options.values[i]);
    nlohmann::ordered_json entry = {{"value", text}, {"rounding", formats::word_of(rounding)}};
    entry["formats"] = nlohmann::ordered_json::array();
    if (!options.json) std::cout << (i == 0 ? "" : "\n") << paint(text, Colour::yellow) << '\n';
    std::vector<formats::Format> list = wanted.empty() ? overview_formats(numbers[i]) : wanted;
    if (options.json && wanted.empty()) append_integers(numbers[i], list);
    for (const formats::Format& format : list) {
      const Dissection dissection = dissect(numbers[i], format, rounding);
      if (options.json) {
        entry["formats"].push_back(to_json(dissection));
      } else {
        std::cout << '\n';
        wanted.empty() ? print_short(dissection, numbers[i]) : print_fully(dissection, numbers[i]);
      }
    }
    if (!options.json && wanted.empty()) {
      std::cout << '\n';
      print_integers(numbers[i], rounding);
    }
    document["values"].push_back(entry);
  }
  if (options.json) print_json(document);
}

}  // namespace

void add_show(CLI::App& app, int&) {
  CLI::App* command = app.add_subcommand("show", "A number taken apart in every format");
  const auto options = std::make_shared<ShowOptions>();
  command
      ->add_option("VALUE", options->values,
                   "Decimals, 0x1.8p-3, inf, nan, or codes as in 0x3c00:fp16")
      ->type_name("")
      ->required();
  command->add_option("-f,--format", options->formats, "Only these formats, with every digit")
      ->type_name("FORMAT")
      ->expected(1)
      ->allow_extra_args(false)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  command
      ->add_option("--rounding", options->rounding,
                   "How the number is rounded (default nearest_even)")
      ->type_name("ROUNDING");
  command->add_flag("--json", options->json, "Print JSON, with every digit");
  command->footer("Example: guardbit show 465 -inf 0x7e:e4m3 --format e4m3 --format e5m2");
  command->callback([options] { run(*options); });
}

}  // namespace guardbit::tools
