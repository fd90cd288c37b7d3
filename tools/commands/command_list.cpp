#include <algorithm>
#include <iostream>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "emulator/catalogue/accumulator_fields.hpp"
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

struct ListOptions {
  std::string name, arch, type, family, basis;
  bool json = false, markdown = false, names = false, machines = false;
};

void check_family(const std::string& name) {
  std::set<std::string_view> families;
  for (const MatrixInstruction& instruction : emulator::catalogue())
    families.insert(emulator::family_name(instruction.family));
  if (name.empty() || families.contains(name)) return;
  throw formats::Error("--family", "unknown family '" + name + "'",
                       joined(families, ", ", [](std::string_view f) { return f; }));
}

/// The instructions that the filters leave.
CatalogueInstructions select(const ListOptions& options) {
  check_family(options.family);
  const std::string_view page =
      options.arch.empty() ? std::string_view{} : emulator::require_page(options.arch, "--arch");
  std::optional<formats::Format> type;
  if (!options.type.empty()) type = formats::require_format(options.type, "--type");
  CatalogueInstructions instructions;
  for (const MatrixInstruction& instruction : emulator::catalogue()) {
    if (!page.empty() && instruction.arch != page) continue;
    if (!options.family.empty() && emulator::family_name(instruction.family) != options.family)
      continue;
    if (!options.basis.empty() && emulator::basis_name(instruction.evidence.basis) != options.basis)
      continue;
    if (type && instruction.a != *type && instruction.b != *type && instruction.c != *type &&
        instruction.d != *type)
      continue;
    instructions.push_back(&instruction);
  }
  return instructions;
}

// ---- Printing ----

void print_wrapped(const std::string& text, std::size_t indent, Colour colour = Colour::plain) {
  for (const std::string& line : wrapped(text, page_width - indent)) {
    std::cout << std::string(indent, ' ') << paint(line, colour) << '\n';
  }
}

void print_page(const CataloguePage& page) {
  std::cout << paint(machine_names(page), Colour::bold) << "  " << machine_titles(page) << "  ("
            << page.instructions.size() << " instructions)\n";
  std::string family;
  for (const CatalogueEntry& entry : entries_of(page.instructions)) {
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
void print_machines(const CatalogueInstructions& instructions, bool markdown) {
  Table table("llrrrr");
  table.add({"machine", "", "instructions", "measured", "documented", "inferred"});
  for (const Arch& arch : emulator::architectures()) {
    if (!arch.alias_of.empty()) {
      table.add({std::string(arch.name), std::string(arch.title),
                 "as " + std::string(arch.alias_of), "", "", ""});
      continue;
    }
    std::map<emulator::Basis, std::size_t> counts;
    for (const MatrixInstruction* instruction : instructions) {
      if (instruction->arch == arch.name) ++counts[instruction->evidence.basis];
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
  for (const CatalogueEntry& entry : entries_of(page.instructions)) {
    table.add({family_text(entry), pairs_text(entry), result_text(entry), shapes_text(entry),
               arithmetic_text(entry), basis_text(entry),
               std::string(entry.first->evidence.source)});
  }
  table.print_markdown(std::cout);
  std::cout << '\n';
}

/// The fields that describe an accumulation in the text of an instruction.
void print_fields_markdown() {
  std::cout
      << "### Fields of an arithmetic\n\nThe text of an instruction (`--spec FILE`, `probe -o`) names them. "
         "A field that a summation does not read has no effect.\n\n";
  Table table("llll");
  table.add({"field", "values", "default", "meaning"});
  for (const emulator::AccumulatorField& field : emulator::accumulator_fields()) {
    const auto words = field.accepted_words();
    const std::string values =
        words.empty() ? std::to_string(field.least) + " to " + std::to_string(field.greatest)
                      : joined(words, ", ", [](std::string_view word) { return word; });
    table.add(
        {std::string(field.name), values, field.text(field.get({})), std::string(field.meaning)});
  }
  table.print_markdown(std::cout);
}

void print_instruction(const MatrixInstruction& instruction, const std::string& machines) {
  const auto fact = [](const std::string& label, const std::string& text) {
    if (!text.empty())
      std::cout << "  " << label << std::string(12 - label.size(), ' ') << text << '\n';
  };
  std::cout << paint(instruction.name, Colour::bold) << '\n';
  fact("machines", machines);
  fact("family", std::string(emulator::family_name(instruction.family)));
  fact("shape", shape_name(instruction.shape));
  fact("A, B", formats::name_of(instruction.a) + ", " + formats::name_of(instruction.b));
  fact("C, D", formats::name_of(instruction.c) + ", " + formats::name_of(instruction.d));
  fact("sparsity", sparsity_text(instruction.sparsity));
  fact("scales", scale_text(instruction));
  fact("toolkit", toolkit_text(instruction.toolkit));
  fact("basis", std::string(emulator::basis_name(instruction.evidence.basis)));
  print_wrapped("source      " + std::string(instruction.evidence.source), 2);
  print_wrapped(arithmetic_summary(instruction), 2, Colour::dim);
  std::cout << '\n';
  for (const std::string& line : arithmetic_description(instruction)) print_wrapped(line, 2);
  std::cout << '\n';
}

/// CatalogueInstructions that a name means, whatever the machine and toolkit.
CatalogueInstructions find_instructions(const ListOptions& options,
                                        const CatalogueInstructions& instructions) {
  const emulator::ParsedName parsed = emulator::parse_name(options.name);
  CatalogueInstructions found;
  for (const MatrixInstruction* instruction : instructions) {
    if (emulator::parse_name(instruction->name).key == parsed.key &&
        emulator::accepts_geometry(*instruction, parsed))
      found.push_back(instruction);
  }
  if (!found.empty()) return found;
  std::vector<std::string_view> names;
  for (const MatrixInstruction* instruction : instructions)
    add_once(names, std::string_view(instruction->name));
  throw formats::Error("list", formats::unknown_name("instruction", options.name, names));
}

/// One description for all machines that compute alike.
void print_instructions(const CatalogueInstructions& instructions) {
  std::vector<std::pair<const MatrixInstruction*, std::string>> groups;
  for (const MatrixInstruction* instruction : instructions) {
    const auto same = std::find_if(groups.begin(), groups.end(), [&](const auto& g) {
      return compute_alike(*g.first, *instruction);
    });
    if (same == groups.end()) {
      groups.emplace_back(instruction, instruction->arch);
    } else {
      same->second += ", " + std::string(instruction->arch);
    }
  }
  for (const auto& [instruction, machines] : groups) print_instruction(*instruction, machines);
}

void list(const ListOptions& options) {
  CatalogueInstructions instructions = select(options);
  if (!options.name.empty()) instructions = find_instructions(options, instructions);
  if (options.json) {
    nlohmann::ordered_json all = nlohmann::ordered_json::array();
    for (const MatrixInstruction* instruction : instructions)
      all.push_back(instruction_json(*instruction));
    std::cout << nlohmann::ordered_json{{"instructions", all}}.dump(2) << '\n';
  } else if (options.names) {
    std::vector<std::string_view> names;
    for (const MatrixInstruction* instruction : instructions)
      add_once(names, std::string_view(instruction->name));
    for (const std::string_view name : names) std::cout << name << '\n';
  } else if (options.machines) {
    print_machines(instructions, options.markdown);
  } else if (!options.name.empty()) {
    print_instructions(instructions);
  } else {
    for (const CataloguePage& page : pages_of(instructions))
      options.markdown ? print_markdown(page) : print_page(page);
    const bool whole = instructions.size() == emulator::catalogue().size();
    if (options.markdown && whole) print_fields_markdown();
  }
}

}  // namespace

void add_list(CLI::App& app, int&) {
  CLI::App* command = app.add_subcommand(
      "list", "The catalogue of instructions, how each computes and how we know");
  const auto options = std::make_shared<ListOptions>();
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
      "Terms of a block are aligned to the largest exponent E among them and cut F bits below it; a zero has exponent e0.\n"
      "Example: guardbit list --arch sm_90 --type e4m3");
  command->callback([options] { list(*options); });
}

}  // namespace guardbit::tools
