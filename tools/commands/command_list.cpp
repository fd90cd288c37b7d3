#include <algorithm>
#include <iostream>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "emulator/catalogue/instruction_catalogue.hpp"
#include "emulator/catalogue/instruction_name.hpp"
#include "formats/format_catalogue.hpp"
#include "formats/support/error.hpp"
#include "formats/support/suggestions.hpp"
#include "tools/catalogue/catalogue_page.hpp"
#include "tools/catalogue/instruction_facts.hpp"
#include "tools/commands/commands.hpp"
#include "tools/console/terminal.hpp"

namespace guardbit::tools {

namespace {

using emulator::Arch;
using emulator::MatrixInstruction;

constexpr std::size_t page_width = 100;

struct Options {
  std::string name, arch, type, family, basis;
  bool json = false, markdown = false, names = false, machines = false;
};

void check_family(const std::string& name) {
  std::set<std::string_view> families;
  for (const MatrixInstruction& row : emulator::catalogue())
    families.insert(emulator::family_name(row.family));
  if (name.empty() || families.contains(name)) return;
  throw formats::Error("--family", "unknown family '" + name + "'",
                       joined(families, ", ", [](std::string_view f) { return f; }));
}

/// The rows that the filters leave.
CatalogueRows select(const Options& options) {
  check_family(options.family);
  const std::string_view page =
      options.arch.empty() ? std::string_view{} : emulator::require_page(options.arch, "--arch");
  std::optional<formats::Format> type;
  if (!options.type.empty()) type = formats::require_format(options.type, "--type");
  CatalogueRows rows;
  for (const MatrixInstruction& row : emulator::catalogue()) {
    if (!page.empty() && row.arch != page) continue;
    if (!options.family.empty() && emulator::family_name(row.family) != options.family) continue;
    if (!options.basis.empty() && emulator::basis_name(row.evidence.basis) != options.basis)
      continue;
    if (type && row.a != *type && row.b != *type && row.c != *type && row.d != *type) continue;
    rows.push_back(&row);
  }
  return rows;
}

// ---- Printing ----

void print_wrapped(const std::string& text, std::size_t indent, Colour colour = Colour::plain) {
  for (const std::string& line : wrapped(text, page_width - indent)) {
    std::cout << std::string(indent, ' ') << paint(line, colour) << '\n';
  }
}

void print_page(const CataloguePage& page) {
  std::cout << paint(machine_names(page), Colour::bold) << "  " << machine_titles(page) << "  ("
            << page.rows.size() << " instructions)\n";
  std::string family;
  for (const CatalogueEntry& entry : entries_of(page.rows)) {
    if (family_text(entry) != family)
      std::cout << "  " << paint(family_text(entry), Colour::cyan) << '\n';
    family = family_text(entry);
    print_wrapped(pairs_text(entry) + " into " + result_text(entry) + "; " + shapes_text(entry) +
                      "; " + basis_text(entry),
                  4);
    print_wrapped(arithmetic_text(entry), 8, Colour::dim);
  }
  std::cout << '\n';
}

/// Machines with the number of their instructions by evidence.
void print_machines(const CatalogueRows& rows, bool markdown) {
  Table table("llrrrr");
  table.add({"machine", "", "instructions", "measured", "documented", "inferred"});
  for (const Arch& arch : emulator::architectures()) {
    if (!arch.alias_of.empty()) {
      table.add({std::string(arch.name), std::string(arch.title),
                 "as " + std::string(arch.alias_of), "", "", ""});
      continue;
    }
    std::map<emulator::Basis, std::size_t> counts;
    for (const MatrixInstruction* row : rows) {
      if (row->arch == arch.name) ++counts[row->evidence.basis];
    }
    std::vector<std::string> cells = {std::string(arch.name), std::string(arch.title), ""};
    std::size_t total = 0;
    for (const emulator::Basis basis :
         {emulator::Basis::measured, emulator::Basis::documented, emulator::Basis::inferred}) {
      total += counts[basis];
      cells.push_back(counts[basis] == 0 ? "" : std::to_string(counts[basis]));
    }
    cells[2] = std::to_string(total);
    if (total != 0) table.add(cells);
  }
  markdown ? table.print_markdown(std::cout) : table.print(std::cout);
}

void print_markdown(const CataloguePage& page) {
  std::cout << "### " << machine_names(page) << "\n\n" << machine_titles(page) << "\n\n";
  Table table("lllllll");
  table.add({"family", "A x B", "D", "shapes", "arithmetic", "basis", "source"});
  for (const CatalogueEntry& entry : entries_of(page.rows)) {
    table.add({family_text(entry), pairs_text(entry), result_text(entry), shapes_text(entry),
               arithmetic_text(entry), basis_text(entry),
               std::string(entry.first->evidence.source)});
  }
  table.print_markdown(std::cout);
  std::cout << '\n';
}

void print_row(const MatrixInstruction& row, const std::string& machines) {
  const auto fact = [](const std::string& label, const std::string& text) {
    if (!text.empty())
      std::cout << "  " << label << std::string(12 - label.size(), ' ') << text << '\n';
  };
  std::cout << paint(row.name, Colour::bold) << '\n';
  fact("machines", machines);
  fact("family", std::string(emulator::family_name(row.family)));
  fact("shape", shape_name(row.shape));
  fact("A, B", formats::name_of(row.a) + ", " + formats::name_of(row.b));
  fact("C, D", formats::name_of(row.c) + ", " + formats::name_of(row.d));
  fact("sparsity", sparsity_text(row.sparsity));
  fact("scales", scale_text(row));
  fact("toolkit", toolkit_text(row.toolkit));
  fact("basis", std::string(emulator::basis_name(row.evidence.basis)));
  print_wrapped("source      " + std::string(row.evidence.source), 2);
  print_wrapped(arithmetic_summary(row), 2, Colour::dim);
  std::cout << '\n';
  for (const std::string& line : arithmetic_description(row)) print_wrapped(line, 2);
  std::cout << '\n';
}

/// CatalogueRows that a name means, whatever the machine and toolkit.
CatalogueRows find_rows(const Options& options, const CatalogueRows& rows) {
  const emulator::ParsedName parsed = emulator::parse_name(options.name);
  CatalogueRows found;
  for (const MatrixInstruction* row : rows) {
    if (emulator::parse_name(row->name).key == parsed.key &&
        emulator::accepts_geometry(*row, parsed))
      found.push_back(row);
  }
  if (!found.empty()) return found;
  std::vector<std::string_view> names;
  for (const MatrixInstruction* row : rows) add_once(names, std::string_view(row->name));
  throw formats::Error("list", formats::unknown_name("instruction", options.name, names));
}

/// One description for all machines that compute alike.
void print_rows(const CatalogueRows& rows) {
  std::vector<std::pair<const MatrixInstruction*, std::string>> groups;
  for (const MatrixInstruction* row : rows) {
    const auto same = std::find_if(groups.begin(), groups.end(),
                                   [&](const auto& g) { return compute_alike(*g.first, *row); });
    if (same == groups.end()) {
      groups.emplace_back(row, row->arch);
    } else {
      same->second += ", " + std::string(row->arch);
    }
  }
  for (const auto& [row, machines] : groups) print_row(*row, machines);
}

void list(const Options& options) {
  CatalogueRows rows = select(options);
  if (!options.name.empty()) rows = find_rows(options, rows);
  if (options.json) {
    nlohmann::ordered_json all = nlohmann::ordered_json::array();
    for (const MatrixInstruction* row : rows) all.push_back(row_json(*row));
    std::cout << nlohmann::ordered_json{{"instructions", all}}.dump(2) << '\n';
  } else if (options.names) {
    std::vector<std::string_view> names;
    for (const MatrixInstruction* row : rows) add_once(names, std::string_view(row->name));
    for (const std::string_view name : names) std::cout << name << '\n';
  } else if (options.machines) {
    print_machines(rows, options.markdown);
  } else if (!options.name.empty()) {
    print_rows(rows);
  } else {
    for (const CataloguePage& page : pages_of(rows))
      options.markdown ? print_markdown(page) : print_page(page);
  }
}

}  // namespace

void add_list(CLI::App& app, int&) {
  CLI::App* command = app.add_subcommand(
      "list", "The catalogue of instructions, how each computes and how we know");
  const auto options = std::make_shared<Options>();
  command->add_option("NAME", options->name, "Describe this one instruction");
  command->add_option("--arch", options->arch, "Only this machine: sm_90, cdna3, ...");
  command->add_option("--type", options->type,
                      "Only instructions with an operand or result of this format");
  command->add_option("--family", options->family,
                      "Only this family: mma.sync, mma.sp, wmma, wgmma, tcgen05, ...");
  command->add_option("--basis", options->basis, "Only rows of this evidence")
      ->check(CLI::IsMember({"measured", "documented", "inferred"}));
  command->add_flag("--names", options->names, "Print names only, one per line");
  command->add_flag("--machines", options->machines,
                    "Print the machines and how many instructions rest on which evidence");
  command->add_flag("--json", options->json, "Print JSON");
  command->add_flag("--markdown", options->markdown, "Print the tables of the documents");
  command->footer(
      "Terms of a block are aligned to the largest exponent E among them and cut F bits below it; "
      "a zero has exponent e0.\n"
      "Example: guardbit list --arch sm_90 --type e4m3");
  command->callback([options] { list(*options); });
}

}  // namespace guardbit::tools
