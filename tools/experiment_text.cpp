#include "tools/experiment_text.hpp"

#include <array>
#include <cmath>
#include <cstdio>
#include <ostream>
#include <string>

#include "experiments/suite/suite.hpp"
#include "tools/plot.hpp"
#include "tools/terminal.hpp"

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

std::string expectation(std::string_view relation, double value, double tolerance) {
  std::string text;
  if (relation == "at most") text = "<= ";
  if (relation == "at least") text = ">= ";
  text += number(value);
  if (tolerance != 0) text += " +- " + number(tolerance);
  return text;
}

std::string_view word_of(Reference::Relation relation) {
  switch (relation) {
    case Reference::Relation::at_most: return "at most";
    case Reference::Relation::at_least: return "at least";
    case Reference::Relation::equals: break;
  }
  return "equals";
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

std::string range_of(const Parameter& p) {
  using Kind = Parameter::Kind;
  if (p.kind == Kind::word) return std::string(p.choices);
  if (p.kind == Kind::path) return "a path";
  return number(p.least) + " to " + number(p.most) + (p.many ? ", lists and ranges" : "");
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
  out << "\nVerdict: **" << result->at("verdict").get<std::string>() << "**\n\n";
  Table table("lrrlll");
  table.add({"what", "measured", "expected", "how we know", "why the tolerance", "verdict"});
  std::size_t others = 0;
  for (const ordered_json& f : result->at("findings")) {
    if (!f.contains("reference")) {
      ++others;
      continue;
    }
    const std::string unit = f.at("unit").get<std::string>();
    const ordered_json& measured = f.at("measured");
    const std::string shown =
        measured.is_number() ? number(measured.get<double>()) : measured.get<std::string>();
    table.add(
        {f.at("key").get<std::string>(),
         unit.empty() ? shown : std::string(shown).append(" ").append(unit),
         expectation(f.at("relation").get<std::string>(), f.at("reference").get<double>(),
                     f.at("tolerance").get<double>()),
         f.at("source").get<std::string>() + " (" + f.at("certainty").get<std::string>() + ")",
         f.value("undecidable", f.at("tolerance_reason").get<std::string>()),
         f.at("verdict").get<std::string>()});
  }
  table.print_markdown(out);
  if (others != 0) out << "\nNumbers without a reference: " << others << ".\n";
  for (const ordered_json& note : result->at("notes"))
    out << '\n' << note.get<std::string>() << '\n';
}

}  // namespace

void print_outcome(std::ostream& out, const Experiment& x, const experiments::Outcome& outcome,
                   double seconds) {
  const Verdict verdict = outcome.verdict(x.relations_only);
  out << paint(std::string(x.name) + " " + std::string(x.slug), Colour::bold) << ": "
      << paint(experiments::word_of(verdict), colour_of(verdict)) << ", " << number(seconds)
      << " s\n";
  print_wrapped(out, x.question, "");
  print_wrapped(out, x.method, "");
  out << '\n';
  Table table("lrlll");
  table.add({"what", "measured", "expected", "how we know", "verdict"});
  for (const Finding& f : outcome.findings) {
    const std::string measured = number(f.measured) + (f.unit.empty() ? "" : " " + f.unit);
    if (!f.reference) {
      table.add({f.key, measured});
      continue;
    }
    const Reference& r = *f.reference;
    table.add({f.key, measured, expectation(word_of(r.relation), r.value, r.tolerance),
               r.source + " (" + std::string(experiments::word_of(r.certainty)) + ")",
               paint(experiments::word_of(f.verdict()), colour_of(f.verdict()))});
  }
  table.print(out);
  // Neighbours often have their tolerance for the same reason.
  std::string last;
  for (const Finding& f : outcome.findings) {
    if (!f.reference) continue;
    const std::string& reason =
        f.reference->undecidable.empty() ? f.reference->tolerance_reason : f.reference->undecidable;
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
