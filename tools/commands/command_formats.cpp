#include <CLI/CLI.hpp>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "formats/block_format.hpp"
#include "formats/conversion/converters.hpp"
#include "formats/format_catalogue.hpp"
#include "tools/catalogue/format_facts.hpp"
#include "tools/commands/commands.hpp"
#include "tools/console/columns.hpp"
#include "tools/console/print_json.hpp"
#include "tools/console/terminal.hpp"

namespace guardbit::tools {

namespace {

struct FormatsOptions {
  std::vector<std::string> names;
  bool json = false;
  bool markdown = false;
};

/// "2^-24 ≈ 5.96046e-8" without the decimal.
std::string short_number(const std::string& text) { return text.substr(0, text.find(' ')); }

using Facts = std::vector<Fact>;

/// A fact, and what the table makes of its text.
Column<Facts> fact_column(const char* head, Side side, const char* key,
                          std::string (*shown)(const std::string&) = nullptr) {
  return {"", head, side, {}, [key, shown](const Facts& facts) {
            const std::string& text = fact(facts, key).text;
            return shown == nullptr ? text : shown(text);
          }};
}

std::string bold(const std::string& text) { return paint(text, Colour::bold); }

/// One line per format.
Columns<Facts> overview(Form form) {
  const bool is_page = form == Form::markdown;
  return {fact_column("format", Side::left, "name", is_page ? nullptr : bold),
          fact_column("bits", Side::right, "bits"),
          fact_column("s-e-f", Side::left, "layout"),
          fact_column("bias", Side::right, "bias"),
          fact_column("subnormal", Side::left, "smallest_subnormal", short_number),
          fact_column("normal", Side::left, "smallest_normal", short_number),
          fact_column("largest", Side::left, "largest", short_number),
          // a terminal has 100 columns
          fact_column(is_page ? "ulp at 1" : "ulp(1)", Side::right, "ulp_at_1", short_number),
          {"",
           "digits",
           Side::right,
           {},
           [](const Facts& facts) {
             return fact(facts, "decimal_digits").text + "/" +
                    fact(facts, "distinguishing_digits").text;
           }},
          fact_column("specials", Side::left, "specials")};
}

Columns<Facts> block_overview(Form form) {
  return {fact_column("block format", Side::left, "name", form == Form::markdown ? nullptr : bold),
          fact_column("element", Side::left, "element"),
          fact_column("counts in", Side::right, "element_exponent"),
          fact_column("scale", Side::left, "scale"),
          fact_column("tensor scale", Side::left, "tensor_scale"),
          fact_column("block", Side::right, "block_size"),
          fact_column("bits/element", Side::left, "bits_per_element")};
}

/// Below a side-by-side table, what is too long for its columns.
void print_standards(const std::vector<std::vector<Fact>>& formats, std::size_t begin,
                     std::size_t end) {
  std::cout << paint("defined by", Colour::dim) << '\n';
  Table table("ll", false);
  for (std::size_t i = begin; i < end; ++i) {
    table.add({"  " + fact(formats[i], "name").text, fact(formats[i], "standard").text});
  }
  table.print(std::cout);
}

/// A column per format, as many side by side as 100 columns take.
void print_vertically(const std::vector<std::vector<Fact>>& formats) {
  constexpr std::size_t screen = 100;
  constexpr std::size_t label_width = 24;
  for (std::size_t begin = 0; begin < formats.size();) {
    std::size_t width = label_width;
    std::size_t end = begin;
    for (; end < formats.size(); ++end) {
      std::size_t widest = 0;
      for (const Fact& f : formats[end]) {
        // Long prose counts little: it is wrapped where formats stand side by side.
        if (f.key != "standard" && f.key != "aliases")
          widest = std::max(widest, display_width(f.text));
      }
      if (end > begin && width + widest + 2 > screen) break;
      width += widest + 2;
    }
    const bool alone = end == begin + 1;
    Table table(std::string(1 + end - begin, 'l'), false);
    for (std::size_t i = 0; i < formats[begin].size(); ++i) {
      const std::string_view key = formats[begin][i].key;
      if (!alone && (key == "standard" || key == "aliases")) continue;
      std::vector<std::string> cells = {paint(formats[begin][i].label, Colour::dim)};
      for (std::size_t column = begin; column < end; ++column) {
        cells.push_back(i == 0 ? paint(formats[column][i].text, Colour::bold)
                               : formats[column][i].text);
      }
      table.add(cells);
    }
    if (begin != 0) std::cout << '\n';
    table.print(std::cout);
    if (!alone) print_standards(formats, begin, end);
    begin = end;
  }
}

void print_overview(const FormatSelection& selection) {
  overview(Form::terminal).print(std::cout, selection.plain);
  std::cout << '\n';
  block_overview(Form::terminal).print(std::cout, selection.block);
  std::cout
      << '\n'
      << paint(
             "s-e-f: sign, exponent and fraction bits. digits: decimal digits kept / needed to distinguish.\n"
             "Any e<E>m<F>[:bias=B][:specials=ieee|fn|fnuz|none][:unsigned][:nosubnormals] is a format too.",
             Colour::dim)
      << '\n';
}

void print_markdown(const FormatSelection& selection) {
  constexpr Form page = Form::markdown;
  if (!selection.plain.empty()) overview(page).print(std::cout, selection.plain, page);
  if (!selection.block.empty()) {
    std::cout << '\n';
    block_overview(page).print(std::cout, selection.block, page);
  }
}

void run(const FormatsOptions& options) {
  const FormatSelection selection = select_formats(options.names);
  if (options.json) {
    const nlohmann::ordered_json document = to_json(selection);
    print_json(document);
  } else if (options.markdown) {
    print_markdown(selection);
  } else if (options.names.empty()) {
    print_overview(selection);
  } else {
    if (!selection.plain.empty()) print_vertically(selection.plain);
    if (!selection.plain.empty() && !selection.block.empty()) std::cout << '\n';
    if (!selection.block.empty()) print_vertically(selection.block);
  }
}

}  // namespace

void add_formats(CLI::App& app, int&) {
  CLI::App* command =
      app.add_subcommand("formats", "Number formats: bits, range, precision, specials");
  const auto options = std::make_shared<FormatsOptions>();
  const auto converters = std::make_shared<bool>(false);
  command
      ->add_option("NAME", options->names, "Formats to set side by side (default: a table of all)")
      ->type_name("FORMAT");
  CLI::Option* json = command->add_flag("--json", options->json, "Print JSON");
  CLI::Option* markdown =
      command->add_flag("--markdown", options->markdown, "Print Markdown tables");
  command
      ->add_flag("--converters", *converters,
                 "Print the converters' rules instead, as Markdown tables")
      ->excludes(json)
      ->excludes(markdown);
  json->excludes(markdown);
  command->footer(
      "Example: guardbit formats e4m3 e5m2 e5m6:bias=20\n"
      "A format is a name or e<E>m<F>[:bias=B][:specials=ieee|fn|fnuz|none][:unsigned][:nosubnormals].");
  command->callback([options, converters] {
    if (*converters) {
      std::cout << formats::converters_markdown();
    } else {
      run(*options);
    }
  });
}

}  // namespace guardbit::tools
