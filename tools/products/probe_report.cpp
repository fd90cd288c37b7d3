#include "tools/products/probe_report.hpp"

#include <algorithm>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <ostream>
#include <vector>

#include "emulator/catalogue/instruction_text.hpp"
#include "emulator/explain/explain.hpp"
#include "formats/format_catalogue.hpp"
#include "formats/text.hpp"
#include "tools/catalogue/instruction_facts.hpp"
#include "tools/console/columns.hpp"
#include "tools/console/terminal.hpp"

namespace guardbit::tools {

using emulator::BlackBox;
using emulator::Finding;
using emulator::MatrixInstruction;
using emulator::ProbeReport;
using nlohmann::ordered_json;

namespace {

ordered_json codes_json(const formats::Format& f, const std::vector<std::uint64_t>& codes) {
  ordered_json list = ordered_json::array();
  for (const std::uint64_t code : codes) list.push_back(formats::hex_text(f, code));
  return list;
}

ordered_json proof_json(const BlackBox& box, const ProbeReport& report, const Finding& f) {
  if (f.nearest_rejected.empty()) return nullptr;
  const emulator::Answered& x = report.answers.at(f.proof);
  ordered_json j = {{"rejects", f.nearest_rejected},
                    {"a", codes_json(box.a, x.question.a)},
                    {"b", codes_json(box.b, x.question.b)},
                    {"c", formats::hex_text(box.c, x.question.c)}};
  if (box.scale.count != 0) {
    j["a_scale"] = codes_json(box.scale.format, x.question.a_scale);
    j["b_scale"] = codes_json(box.scale.format, x.question.b_scale);
  }
  j["d"] = formats::hex_text(box.d, x.d);
  j["otherwise"] = formats::hex_text(box.d, f.otherwise);
  return j;
}

/// "VALUE: would give X, not Y"
std::string proof_text(const BlackBox& box, const ProbeReport& report, const Finding& f) {
  if (f.nearest_rejected.empty()) return {};
  return f.nearest_rejected + ": would give " + emulator::value_text(box.d, f.otherwise) +
         ", not " + emulator::value_text(box.d, report.answers.at(f.proof).d);
}

Columns<Finding> finding_columns(const BlackBox& box, const ProbeReport& report) {
  using F = Finding;
  const Column<F> proof = {"proof", "nearest value excluded", Side::left,
                           [&](const F& f) { return proof_json(box, report, f); },
                           [&](const F& f) { return proof_text(box, report, f); }};
  return {{"field", "field", Side::left, [](const F& f) { return f.field; }},
          {"value", "value", Side::left, [](const F& f) { return f.value; }},
          {"others", "not excluded", Side::left, [](const F& f) { return f.others; }},
          {"reason", "", Side::none, [](const F& f) { return f.reason; }},
          proof};
}

void print_catalogue(std::ostream& out, const ProbeReport& report) {
  if (report.catalogue.empty()) {
    out << "no instruction of the catalogue gives every answer\n";
    return;
  }
  out << "instructions of the catalogue that give every answer\n";
  for (const emulator::CatalogueMatch& match : report.catalogue) {
    out << "  " << arithmetic_summary(*match.instructions.front());
    if (match.executions > 1) out << ", " << match.executions << " executions in a chain";
    out << '\n';
    std::vector<std::string> archs;
    for (const MatrixInstruction* instruction : match.instructions) {
      const std::string arch(instruction->arch);
      if (std::find(archs.begin(), archs.end(), arch) != archs.end()) continue;
      archs.push_back(arch);
      const auto count = std::count_if(match.instructions.begin(), match.instructions.end(),
                                       [&](const auto* x) { return x->arch == arch; });
      out << "    " << arch << "  " << std::string_view(instruction->name);
      if (count > 1) out << " and " << count - 1 << " more";
      out << '\n';
    }
  }
}

}  // namespace

ordered_json probe_json(const std::string& unit, const BlackBox& box, const ProbeReport& report) {
  ordered_json matches = ordered_json::array();
  for (const emulator::CatalogueMatch& match : report.catalogue) {
    ordered_json rows = ordered_json::array();
    for (const MatrixInstruction* instruction : match.instructions)
      rows.push_back({{"arch", instruction->arch}, {"name", std::string_view(instruction->name)}});
    matches.push_back({{"arithmetic", arithmetic_summary(*match.instructions.front())},
                       {"executions", match.executions},
                       {"rows", rows}});
  }
  const bool has_tree = !emulator::leaves(report.tree).empty();
  return {
      {"unit", unit},
      {"a", formats::name_of(box.a)},
      {"b", formats::name_of(box.b)},
      {"c", box.has_addend ? ordered_json(formats::name_of(box.c)) : ordered_json(nullptr)},
      {"d", formats::name_of(box.d)},
      {"k", box.k},
      {"narrowed", report.narrowed.empty() ? ordered_json(nullptr) : ordered_json(report.narrowed)},
      {"tree",
       {{"observable", report.tree_observable},
        {"text", has_tree ? emulator::tree_text(report.tree, box.k) : ""},
        {"note", report.tree_note},
        {"arithmetic", report.tree_arithmetic},
        {"mismatches", report.tree_arithmetic.empty() ? ordered_json(nullptr)
                                                      : ordered_json(report.tree_mismatches)}}},
      {"explained", report.explained},
      {"nans_alike", report.nans_alike},
      {"answers", report.answers.size()},
      {"mismatches", report.mismatches},
      {"arithmetic", report.explained ? arithmetic_summary(report.instruction) : ""},
      {"fields", finding_columns(box, report).json_list(report.findings)},
      {"alike", report.alike},
      {"catalogue", matches}};
}

void print_probe(std::ostream& out, const std::string& unit, const BlackBox& box,
                 const ProbeReport& report) {
  out << unit << '\n';
  if (!report.narrowed.empty()) out << "formats: " << report.narrowed << '\n';
  if (!report.tree_note.empty()) out << "order: " << report.tree_note << '\n';
  const bool node_by_node = !report.tree_arithmetic.empty() && report.tree_mismatches == 0;
  if (!report.explained && !node_by_node)
    out << paint("nothing found", Colour::red) << ": no arithmetic gives all "
        << report.answers.size() << " answers\n";
  if (!emulator::leaves(report.tree).empty()) {
    constexpr int most_drawn = 128;
    if (box.k <= most_drawn) {
      out << "tree: " << emulator::tree_text(report.tree, box.k) << '\n'
          << emulator::tree_drawing(report.tree, box.k);
    } else {
      out << "tree: of " << box.k << " products, too large to print; --json, --svg and --dot "
          << "have it\n";
    }
  }
  if (!report.tree_arithmetic.empty())
    out << "each node of the tree: " << report.tree_arithmetic << " ("
        << (report.tree_mismatches == 0
                ? "all " + std::to_string(report.answers.size()) +
                      " answers; all NaNs count as equal"
                : "every ordinary answer, not " + std::to_string(report.tree_mismatches) + " of " +
                      std::to_string(report.answers.size()))
        << ")\n";
  if (report.nans_alike && report.explained)
    out << "all NaNs count as equal: no policy of the model gives their signs and payloads\n";
  if (!report.explained) {
    if (box.k > emulator::max_k) {
      out << "the model's instructions have at most " << emulator::max_k
          << " products, so none was tried: --k " << emulator::max_k
          << " or less asks for the arithmetic, too\n";
      return;
    }
    if (!report.has_structure) {
      out << "the model has no instruction that adds in this order\n";
    } else {
      out << "no arithmetic of the model gives every answer; the nearest differs in "
          << report.mismatches << " of " << report.answers.size() << '\n';
    }
    return print_catalogue(out, report);
  }
  out << "arithmetic: " << arithmetic_summary(report.instruction) << " (all "
      << report.answers.size() << " answers)\n\n";
  finding_columns(box, report).print(out, report.findings);
  for (const std::string& other : report.alike)
    out << "another structure gives every answer, too: " << other << '\n';
  out << '\n';
  print_catalogue(out, report);
}

/// The text of the instruction that was found, for any M and N.
std::string spec_of(const ProbeReport& report) {
  MatrixInstruction instruction = report.instruction;
  instruction.shape.m = instruction.shape.n = 0;
  for (int i = 0; report.nans_alike && i < instruction.steps.count; ++i)
    instruction.steps.list[static_cast<std::size_t>(i)].spec.nan = emulator::NanPolicy::unspecified;
  return "# Found by guardbit probe; all " + std::to_string(report.answers.size()) +
         " answers are its own. Run it with --spec.\n" + emulator::instruction_text(instruction);
}

}  // namespace guardbit::tools
