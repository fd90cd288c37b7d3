#include <fnmatch.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <iostream>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
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
#include "formats/support/joined.hpp"
#include "formats/support/printable.hpp"
#include "formats/support/suggestions.hpp"
#include "formats/support/words.hpp"
#include "tools/catalogue/catalogue_page.hpp"
#include "tools/catalogue/instruction_facts.hpp"
#include "tools/commands/commands.hpp"
#include "tools/console/counted.hpp"
#include "tools/console/print_json.hpp"
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
    families.insert(formats::word_of(instruction.family));
  if (name.empty() || families.contains(name)) return;
  throw formats::Error("--family", "unknown family '" + name + "'",
                       formats::joined(families, ", "));
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
    if (!options.family.empty() && formats::word_of(instruction.family) != options.family) continue;
    if (!options.basis.empty() && formats::word_of(instruction.evidence.basis) != options.basis)
      continue;
    if (type && instruction.a != *type && instruction.b != *type && instruction.c != *type &&
        instruction.d != *type)
      continue;
    instructions.push_back(&instruction);
  }
  return instructions;
}

// ---- Printing ----

std::string wrapped_text(const std::string& text, std::size_t indent,
                         Colour colour = Colour::plain) {
  std::string lines;
  for (const std::string& line : wrapped(text, page_width - indent))
    lines += std::string(indent, ' ') + paint(line, colour) + '\n';
  return lines;
}

void print_wrapped(const std::string& text, std::size_t indent, Colour colour = Colour::plain) {
  std::cout << wrapped_text(text, indent, colour);
}

/// `described` holds the text of each family on the pages before, with the machines that it stands
/// at: what is the same again is one line.
void print_page(const CataloguePage& page, std::map<std::string, std::string>& described) {
  std::cout << paint(machine_names(page), Colour::bold) << "  " << machine_titles(page) << "  ("
            << counted(page.instructions.size(), "instruction") << ")\n";
  std::vector<std::pair<std::string, std::string>> families;
  for (const CatalogueEntry& entry : entries_of(page.instructions)) {
    if (families.empty() || families.back().first != family_text(entry))
      families.emplace_back(family_text(entry), "");
    families.back().second += wrapped_text(pairs_text(entry) + " into " + result_text(entry) +
                                               "; " + shapes_text(entry) + "; " + basis_text(entry),
                                           4) +
                              wrapped_text(arithmetic_text(entry), 8, Colour::dim);
  }
  for (const auto& [family, text] : families) {
    const auto [place, is_new] = described.emplace(family + '\n' + text, page.machines[0]->name);
    std::cout << "  " << paint(family, Colour::cyan)
              << (is_new ? "\n" + text : ": as " + place->second + '\n');
  }
  std::cout << '\n';
}

/// A machine and how many of its instructions rest on which evidence.
struct Machine {
  const Arch* arch;
  std::map<emulator::Basis, std::size_t> counts;

  std::size_t instructions() const {
    std::size_t sum = 0;
    for (const auto& [basis, count] : counts) sum += count;
    return sum;
  }
};

void print_machines(const CatalogueInstructions& instructions, bool markdown) {
  std::vector<Machine> machines;
  for (const Arch& arch : emulator::architectures()) {
    Machine machine{&arch, {}};
    for (const MatrixInstruction* instruction : instructions)
      if (instruction->arch == arch.name) ++machine.counts[instruction->evidence.basis];
    if (!arch.alias_of.empty() || !machine.counts.empty()) machines.push_back(machine);
  }
  std::vector<Column<Machine>> columns = {
      {"", "machine", Side::left, [](const Machine& m) { return m.arch->name; }},
      {"", "", Side::left, [](const Machine& m) { return m.arch->title; }},
      {"", "instructions", Side::right, {}, [](const Machine& m) {
         const std::string alias(m.arch->alias_of);
         return alias.empty() ? std::to_string(m.instructions()) : "as " + alias;
       }}};
  for (const emulator::Basis basis : formats::enumerators_of<emulator::Basis>)
    columns.push_back(
        {"", std::string(formats::word_of(basis)), Side::right, {}, [basis](const Machine& m) {
           const auto count = m.counts.find(basis);
           return count == m.counts.end() ? "" : std::to_string(count->second);
         }});
  Columns<Machine>(std::move(columns))
      .print(std::cout, machines, markdown ? Form::markdown : Form::terminal);
}

void print_markdown(const CataloguePage& page) {
  static const Columns<CatalogueEntry> columns = {
      {"", "family", Side::left, family_text},
      {"", "A x B", Side::left, pairs_text},
      {"", "D", Side::left, result_text},
      {"", "shapes", Side::left, shapes_text},
      {"", "arithmetic", Side::left, arithmetic_text},
      {"", "basis", Side::left, basis_text},
      {"", "source", Side::left, [](const CatalogueEntry& x) { return x.first->evidence.source; }}};
  std::cout << "### " << machine_names(page) << "\n\n" << machine_titles(page) << "\n\n";
  columns.print(std::cout, entries_of(page.instructions), Form::markdown);
  std::cout << '\n';
}

/// The fields that describe an accumulation in the text of an instruction.
void print_fields_markdown() {
  using Field = emulator::AccumulatorField;
  static const Columns<Field> columns = {
      {"", "field", Side::left, [](const Field& f) { return f.name; }},
      {"",
       "values",
       Side::left,
       {},
       [](const Field& f) {
         const auto words = f.accepted_words();
         return words.empty() ? std::to_string(f.least) + " to " + std::to_string(f.greatest)
                              : formats::joined(words, ", ");
       }},
      {"", "default", Side::left, [](const Field& f) { return f.text(f.get({})); }},
      {"", "meaning", Side::left, [](const Field& f) { return f.meaning; }}};
  std::cout
      << "### Fields of an arithmetic\n\nThe text of an instruction (`--spec FILE`, `probe -o`) names them. "
         "A field that a summation does not read has no effect.\n\n";
  columns.print(std::cout, emulator::accumulator_fields(), Form::markdown);
}

void print_instruction(const MatrixInstruction& instruction, const std::string& machines) {
  const auto fact = [](const std::string& label, const std::string& text) {
    if (!text.empty())
      std::cout << "  " << label << std::string(12 - label.size(), ' ') << text << '\n';
  };
  std::cout << paint(instruction.name, Colour::bold) << '\n';
  fact("machines", machines);
  instruction_columns().for_each_cell(
      instruction, [&](const auto& column, const std::string& text) { fact(column.head, text); });
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

bool is_pattern(const std::string& name) { return name.find_first_of("*?[") != std::string::npos; }

/// Instructions whose names the pattern matches.
CatalogueInstructions matching_instructions(const ListOptions& options,
                                            CatalogueInstructions instructions) {
  std::erase_if(instructions, [&](const MatrixInstruction* instruction) {
    return fnmatch(options.name.c_str(), std::string(instruction->name).c_str(), 0) != 0;
  });
  if (instructions.empty())
    throw formats::Error("list",
                         "no instruction's name matches " + formats::in_quotes(options.name));
  return instructions;
}

void list(const ListOptions& options) {
  CatalogueInstructions instructions = select(options);
  const bool by_pattern = is_pattern(options.name);
  if (by_pattern) {
    instructions = matching_instructions(options, std::move(instructions));
  } else if (!options.name.empty()) {
    instructions = find_instructions(options, instructions);
  }
  if (options.json) {
    nlohmann::ordered_json all = nlohmann::ordered_json::array();
    for (const MatrixInstruction* instruction : instructions)
      all.push_back(instruction_columns().json(*instruction));
    print_json(nlohmann::ordered_json{{"instructions", all}});
  } else if (options.names) {
    std::vector<std::string_view> names;
    for (const MatrixInstruction* instruction : instructions)
      add_once(names, std::string_view(instruction->name));
    for (const std::string_view name : names) std::cout << name << '\n';
  } else if (options.machines) {
    print_machines(instructions, options.markdown);
  } else if (!options.name.empty() && !by_pattern) {
    print_instructions(instructions);
  } else {
    std::map<std::string, std::string> described;
    for (const CataloguePage& page : pages_of(instructions))
      options.markdown ? print_markdown(page) : print_page(page, described);
    const bool whole = instructions.size() == emulator::catalogue().size();
    if (options.markdown && whole) print_fields_markdown();
  }
}

}  // namespace

void add_list(CLI::App& app, int&) {
  CLI::App* command = app.add_subcommand(
      "list", "The catalogue of instructions, how each computes and how we know");
  const auto options = std::make_shared<ListOptions>();
  command->add_option(
      "NAME", options->name,
      "Describe this one instruction, or list those that a pattern such as '*.f32.e4m3.*' matches");
  command->add_option("--arch", options->arch, "Only this machine: sm_90, cdna3, ...");
  command->add_option("--type", options->type,
                      "Only instructions with an operand or result of this format");
  command->add_option("--family", options->family,
                      "Only this family: mma.sync, mma.sp, wmma, wgmma, tcgen05, ...");
  command->add_option("--basis", options->basis, "Only instructions of this evidence")
      ->check(CLI::IsMember(std::vector<std::string>(formats::words_of<emulator::Basis>.begin(),
                                                     formats::words_of<emulator::Basis>.end())));
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
