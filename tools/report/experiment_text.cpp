#include "tools/report/experiment_text.hpp"

#include <cmath>
#include <functional>
#include <nlohmann/json.hpp>
#include <ostream>
#include <string>

#include "experiments/suite/suite.hpp"
#include "formats/support/words.hpp"
#include "tools/console/columns.hpp"
#include "tools/plot/text_plot.hpp"
#include "tools/report/experiment_record.hpp"

namespace guardbit::tools {

namespace {

using experiments::Experiment;
using experiments::Finding;
using experiments::Parameter;
using experiments::Reference;
using experiments::Verdict;
using nlohmann::ordered_json;

constexpr std::size_t line_width = 100;

/// Whole numbers in full: codes and counts would be unreadable otherwise.
std::string number_text(double x) {
  return number(x, x == std::floor(x) && std::abs(x) < 1e15 ? "%.0f" : "%.4g");
}

Colour colour_of(Verdict verdict) {
  switch (verdict) {
    case Verdict::reproduced: return Colour::green;
    case Verdict::differs: return Colour::red;
    case Verdict::undecidable: break;
  }
  return Colour::yellow;
}

void print_wrapped(std::ostream& out, std::string_view text, std::string_view indent) {
  for (const std::string& line : wrapped(text, line_width - indent.size()))
    out << indent << line << '\n';
}

/// Of a description; the table's heads are the words of its command.
const Columns<Parameter>& parameter_columns() {
  using P = Parameter;
  static const Columns<P> columns = {
      {"name", "--set", Side::left, [](const P& p) { return p.name; }},
      {"meaning", "meaning", Side::left, [](const P& p) { return p.meaning; }},
      {"usual", "usual", Side::left, [](const P& p) { return p.usual; }},
      {"quick", "quick", Side::left,
       [](const P& p) { return p.quick.empty() ? p.usual : p.quick; }},
      {"range", "may be", Side::left, range_of}};
  return columns;
}

/// The columns of findings with a reference, of those that a person reads on a screen or a page.
Columns<Finding> finding_columns(Form form) {
  using F = Finding;
  const auto of_reference = [](const char* head, Side side, auto text) {
    return Column<F>{"", head, side, {}, [text](const F& f) {
                       return f.reference ? std::string(text(*f.reference)) : std::string();
                     }};
  };
  const Column<F> what = {"", "what", Side::left, {}, [](const F& f) { return f.key; }};
  const Column<F> measured = {"", "measured", Side::right, {}, measured_text};
  const Column<F> verdict = {"", "verdict", Side::left, {}, [form](const F& f) {
                               if (!f.reference) return std::string();
                               const std::string_view word = formats::word_of(f.verdict());
                               return form == Form::markdown ? std::string(word)
                                                             : paint(word, colour_of(f.verdict()));
                             }};
  if (form == Form::markdown)
    return {what,
            measured,
            of_reference("expected", Side::right, expected_text),
            of_reference("how we know", Side::left, source_text),
            of_reference("why the tolerance", Side::left, reason_of),
            verdict};
  return {what, measured, of_reference("expected", Side::left, expected_text),
          of_reference("how we know", Side::left, source_text), verdict};
}

void print_section(std::ostream& out, const Experiment& x, const ordered_json* result) {
  out << "\n## " << x.name << ": " << x.slug << "\n\n**" << x.question << "** " << x.method
      << "\n\nExpected: " << x.expected << "\n\n";
  Table parameters("llll");
  parameters.add({"parameter", "meaning", "usual (quick)", "may be"});
  for (const Parameter& p : x.parameters) {
    parameters.add({std::string(p.name), std::string(p.meaning),
                    "`" + std::string(p.usual) + "`" +
                        (p.quick.empty() ? "" : " (`" + std::string(p.quick) + "`)"),
                    range_of(p)});
  }
  if (!x.parameters.empty()) parameters.print_markdown(out);
  if (result == nullptr) {
    out << "\nNo result is recorded.\n";
    return;
  }
  const experiments::Outcome outcome = outcome_of(*result);
  out << "\nVerdict: **" << formats::word_of(outcome.verdict()) << "**\n\n";
  std::vector<std::reference_wrapper<const Finding>> judged;
  for (const Finding& f : outcome.findings)
    if (f.reference) judged.emplace_back(f);
  finding_columns(Form::markdown).print(out, judged, Form::markdown);
  const std::size_t others = outcome.findings.size() - judged.size();
  if (others != 0) out << "\nNumbers without a reference: " << others << ".\n";
  for (const std::string& note : outcome.notes) out << '\n' << note << '\n';
}

}  // namespace

std::string measured_text(const Finding& f) {
  return number_text(f.measured) + (f.unit.empty() ? "" : " " + f.unit);
}

std::string expected_text(const Reference& r) {
  std::string text;
  if (r.relation == Reference::Relation::at_most) text = "<= ";
  if (r.relation == Reference::Relation::at_least) text = ">= ";
  text += number_text(r.value);
  if (r.tolerance != 0) text += " +- " + number_text(r.tolerance);
  return text;
}

std::string source_text(const Reference& r) {
  return r.source + " (" + std::string(formats::word_of(r.certainty)) + ")";
}

const std::string& reason_of(const Reference& r) {
  return r.undecidable.empty() ? r.tolerance_reason : r.undecidable;
}

std::string range_of(const Parameter& p) {
  using Kind = Parameter::Kind;
  if (p.kind == Kind::word) return std::string(p.choices);
  if (p.kind == Kind::path) return "a path";
  return number_text(p.least) + " to " + number_text(p.most) + (p.many ? ", lists and ranges" : "");
}

void print_outcome(std::ostream& out, const Experiment& x, const experiments::Outcome& outcome,
                   std::optional<double> seconds) {
  const Verdict verdict = outcome.verdict();
  out << paint(std::string(x.name) + " " + std::string(x.slug), Colour::bold) << ": "
      << paint(formats::word_of(verdict), colour_of(verdict));
  if (seconds) out << ", " << number_text(*seconds) << " s";
  out << '\n';
  if (const std::string why = outcome.why(); !why.empty()) print_wrapped(out, "(" + why + ")", "");
  print_wrapped(out, x.question, "");
  print_wrapped(out, x.method, "");
  out << '\n';
  finding_columns(Form::terminal).print(out, outcome.findings);
  // Neighbours often have their tolerance for the same reason.
  std::string last;
  for (const Finding& f : outcome.findings) {
    if (!f.reference) continue;
    const std::string& reason = reason_of(*f.reference);
    if (reason.empty() || reason == last) continue;
    print_wrapped(out, f.key + ": " + reason, "  ");
    last = reason;
  }
  for (const std::string& note : outcome.notes) print_wrapped(out, note, "");
  const std::string plot = text_plot(outcome.figure);
  if (!plot.empty()) out << '\n' << plot;
}

void print_experiment(std::ostream& out, const Experiment& x) {
  out << paint(std::string(x.name) + " " + std::string(x.slug), Colour::bold) << '\n';
  print_wrapped(out, x.question, "");
  print_wrapped(out, x.method, "");
  print_wrapped(out, "Expected: " + std::string(x.expected), "");
  out << '\n';
  if (!x.parameters.empty()) parameter_columns().print(out, x.parameters);
}

ordered_json description_of(const Experiment& x) {
  return {{"name", x.name},         {"slug", x.slug},
          {"question", x.question}, {"method", x.method},
          {"expected", x.expected}, {"parameters", parameter_columns().json_list(x.parameters)}};
}

void print_suite_page(std::ostream& out, const ordered_json& results) {
  const auto result_of = [&](const Experiment& x) -> const ordered_json* {
    for (const ordered_json& r : results.at("experiments"))
      if (r.at("name") == x.name) return &r;
    return nullptr;
  };
  Table table("lllr");
  table.add({"name", "question", "verdict", "seconds"});
  for (const Experiment& x : experiments::suite()) {
    const ordered_json* const r = result_of(x);
    table.add({std::string(x.name), std::string(x.question),
               r == nullptr ? "" : r->at("verdict").get<std::string>(),
               r == nullptr ? "" : number_text(r->at("seconds").get<double>())});
  }
  table.print_markdown(out);
  for (const Experiment& x : experiments::suite()) print_section(out, x, result_of(x));
}

}  // namespace guardbit::tools
