#include "tools/report/experiment_text.hpp"

#include <array>
#include <cmath>
#include <cstdio>
#include <ostream>
#include <string>

#include "experiments/suite/suite.hpp"
#include "tools/console/terminal.hpp"
#include "tools/page/plot.hpp"
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

std::string number(double x) {
  std::array<char, 40> text{};
  // Whole numbers in full: codes and counts would be unreadable otherwise.
  const bool whole = x == std::floor(x) && std::abs(x) < 1e15;
  std::snprintf(text.data(), text.size(), whole ? "%.0f" : "%.4g", x);
  return text.data();
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
  out << "\nVerdict: **" << experiments::word_of(outcome.verdict(x.relations_only)) << "**\n\n";
  Table table("lrrlll");
  table.add({"what", "measured", "expected", "how we know", "why the tolerance", "verdict"});
  std::size_t others = 0;
  for (const Finding& f : outcome.findings) {
    if (!f.reference) {
      ++others;
      continue;
    }
    table.add({f.key, measured_text(f), expected_text(*f.reference), source_text(*f.reference),
               reason_of(*f.reference), std::string(experiments::word_of(f.verdict()))});
  }
  table.print_markdown(out);
  if (others != 0) out << "\nNumbers without a reference: " << others << ".\n";
  for (const std::string& note : outcome.notes) out << '\n' << note << '\n';
}

}  // namespace

std::string measured_text(const Finding& f) {
  return number(f.measured) + (f.unit.empty() ? "" : " " + f.unit);
}

std::string expected_text(const Reference& r) {
  std::string text;
  if (r.relation == Reference::Relation::at_most) text = "<= ";
  if (r.relation == Reference::Relation::at_least) text = ">= ";
  text += number(r.value);
  if (r.tolerance != 0) text += " +- " + number(r.tolerance);
  return text;
}

std::string source_text(const Reference& r) {
  return r.source + " (" + std::string(experiments::word_of(r.certainty)) + ")";
}

const std::string& reason_of(const Reference& r) {
  return r.undecidable.empty() ? r.tolerance_reason : r.undecidable;
}

std::string range_of(const Parameter& p) {
  using Kind = Parameter::Kind;
  if (p.kind == Kind::word) return std::string(p.choices);
  if (p.kind == Kind::path) return "a path";
  return number(p.least) + " to " + number(p.most) + (p.many ? ", lists and ranges" : "");
}

void print_outcome(std::ostream& out, const Experiment& x, const experiments::Outcome& outcome,
                   std::optional<double> seconds) {
  const Verdict verdict = outcome.verdict(x.relations_only);
  out << paint(std::string(x.name) + " " + std::string(x.slug), Colour::bold) << ": "
      << paint(experiments::word_of(verdict), colour_of(verdict));
  if (seconds) out << ", " << number(*seconds) << " s";
  out << '\n';
  print_wrapped(out, x.question, "");
  print_wrapped(out, x.method, "");
  out << '\n';
  Table table("lrlll");
  table.add({"what", "measured", "expected", "how we know", "verdict"});
  for (const Finding& f : outcome.findings) {
    if (!f.reference) {
      table.add({f.key, measured_text(f)});
      continue;
    }
    const Reference& r = *f.reference;
    table.add({f.key, measured_text(f), expected_text(r), source_text(r),
               paint(experiments::word_of(f.verdict()), colour_of(f.verdict()))});
  }
  table.print(out);
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
  if (x.relations_only)
    out << "It asserts what theory demands, and says undecidable where that holds.\n";
  out << '\n';
  Table table("lllll");
  table.add({"--set", "meaning", "usual", "quick", "may be"});
  for (const Parameter& p : x.parameters)
    table.add({std::string(p.name), std::string(p.meaning), std::string(p.usual),
               std::string(p.quick.empty() ? p.usual : p.quick), range_of(p)});
  if (!x.parameters.empty()) table.print(out);
}

ordered_json description_of(const Experiment& x) {
  ordered_json parameters = ordered_json::array();
  for (const Parameter& p : x.parameters) {
    parameters.push_back({{"name", p.name},
                          {"meaning", p.meaning},
                          {"usual", p.usual},
                          {"quick", p.quick.empty() ? p.usual : p.quick},
                          {"range", range_of(p)}});
  }
  return {{"name", x.name},          {"slug", x.slug},         {"question", x.question},
          {"method", x.method},      {"expected", x.expected}, {"relations_only", x.relations_only},
          {"parameters", parameters}};
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
               r == nullptr ? "" : number(r->at("seconds").get<double>())});
  }
  table.print_markdown(out);
  for (const Experiment& x : experiments::suite()) print_section(out, x, result_of(x));
}

}  // namespace guardbit::tools
