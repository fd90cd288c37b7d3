#include <algorithm>
#include <iostream>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "emulator/catalogue.hpp"
#include "emulator/name.hpp"
#include "formats/catalogue.hpp"
#include "formats/error.hpp"
#include "formats/nearest.hpp"
#include "tools/commands.hpp"
#include "tools/row_text.hpp"
#include "tools/terminal.hpp"

namespace guardbit::tools {

namespace {

using emulator::Arch;
using emulator::MatrixInstruction;

constexpr std::size_t page_width = 100;

struct Options {
  std::string name, arch, type, family, basis;
  bool json = false, markdown = false, names = false;
};

using Rows = std::vector<const MatrixInstruction*>;

template <class List, class NameOf>
std::string joined(const List& list, const std::string& separator, NameOf name_of) {
  std::string text;
  for (const auto& item : list) text += (text.empty() ? "" : separator) + std::string(name_of(item));
  return text;
}

/// The machine's own page, or that of the machine it computes like; sm_90a means sm_90.
std::string_view require_page(const std::string& name) {
  for (const bool suffixed : {false, true}) {
    if (suffixed && !(name.starts_with("sm_") && (name.ends_with('a') || name.ends_with('f')))) break;
    const std::string_view sought = std::string_view(name).substr(0, name.size() - (suffixed ? 1 : 0));
    for (const Arch& arch : emulator::architectures()) {
      if (arch.name == sought) return arch.alias_of.empty() ? arch.name : arch.alias_of;
    }
  }
  throw formats::Error("--arch", "unknown architecture '" + name + "'",
                       joined(emulator::architectures(), ", ", [](const Arch& a) { return a.name; }));
}

void check_family(const std::string& name) {
  std::set<std::string_view> families;
  for (const MatrixInstruction& row : emulator::catalogue()) families.insert(emulator::family_name(row.family));
  if (name.empty() || families.contains(name)) return;
  throw formats::Error("--family", "unknown family '" + name + "'",
                       joined(families, ", ", [](std::string_view f) { return f; }));
}

/// The rows that the filters leave.
Rows select(const Options& options) {
  check_family(options.family);
  const std::string_view page = options.arch.empty() ? std::string_view{} : require_page(options.arch);
  std::optional<formats::Format> type;
  if (!options.type.empty()) type = formats::require_format(options.type, "--type");
  Rows rows;
  for (const MatrixInstruction& row : emulator::catalogue()) {
    if (!page.empty() && row.arch != page) continue;
    if (!options.family.empty() && emulator::family_name(row.family) != options.family) continue;
    if (!options.basis.empty() && emulator::basis_name(row.evidence.basis) != options.basis) continue;
    if (type && row.a != *type && row.b != *type && row.c != *type && row.d != *type) continue;
    rows.push_back(&row);
  }
  return rows;
}

// ---- Rows that compute alike, as one entry ----------------------------------------------------------------------------

/// "kind::mxf4" of a name, or nothing.
std::string kind_of(std::string_view name) {
  const std::size_t begin = name.find("kind::");
  if (begin == std::string_view::npos) return "";
  return std::string(name.substr(begin, name.find('.', begin) - begin));
}

struct Entry {
  const MatrixInstruction* first = nullptr;
  std::string kind, arithmetic;
  std::vector<std::string> shapes;
  std::vector<std::pair<std::string, std::string>> pairs;  ///< formats of A and B
};

template <class List, class Item>
void add_once(List& list, const Item& item) {
  if (std::find(list.begin(), list.end(), item) == list.end()) list.push_back(item);
}

/// The format of D, and of C where it is another.
std::string result_text(const MatrixInstruction& row) {
  const std::string d = formats::name_of(row.d);
  return row.c == row.d ? d : d + " with C in " + formats::name_of(row.c);
}

/// Everything but shape and operand formats; integers of one width stay together.
std::string key_of(const MatrixInstruction& row) {
  std::string key;
  for (const std::string& part :
       {std::string(emulator::family_name(row.family)), kind_of(row.name), result_text(row), arithmetic_summary(row),
        scale_text(row), sparsity_text(row.sparsity), toolkit_text(row.toolkit),
        formats::is_integer(row.a) ? std::to_string(formats::bits(row.a)) : std::string(),
        std::string(emulator::basis_name(row.evidence.basis)), std::string(row.evidence.source)}) {
    key += part + '\n';
  }
  return key;
}

/// "exact sum, wraps" and "exact sum, saturates once" as "exact sum, wraps / saturates once".
std::string merged_text(const std::string& x, const std::string& y) {
  const std::size_t end = x.find(", ");
  const std::size_t begin = end == std::string::npos || y.compare(0, end + 2, x, 0, end + 2) != 0 ? 0 : end + 2;
  return x + " / " + y.substr(begin);
}

/// Forms of one instruction that differ in a qualifier only: saturation of integers, rounding of FP64.
bool are_variants(const Entry& x, const Entry& y) {
  const MatrixInstruction& p = *x.first;
  const MatrixInstruction& q = *y.first;
  return (formats::is_integer(p.a) || p.a == formats::fp64) && p.family == q.family && x.shapes == y.shapes &&
         x.pairs == y.pairs && p.sparsity == q.sparsity && p.evidence.basis == q.evidence.basis &&
         p.evidence.source == q.evidence.source;
}

/// The shapes of one arithmetic with the operand formats of each.
std::vector<std::pair<std::string, Entry>> entries_by_shape(const Rows& rows) {
  std::vector<std::pair<std::string, Entry>> entries;
  for (const MatrixInstruction* row : rows) {
    const std::string key = key_of(*row);
    const std::string shape = shape_name(row->shape);
    auto found = std::find_if(entries.begin(), entries.end(), [&](const auto& e) {
      return e.first == key && e.second.shapes.front() == shape;
    });
    if (found == entries.end()) {
      entries.push_back({key, {row, kind_of(row->name), arithmetic_summary(*row), {shape}, {}}});
      found = entries.end() - 1;
    }
    add_once(found->second.pairs, std::pair{formats::name_of(row->a), formats::name_of(row->b)});
  }
  return entries;
}

std::string family_text(const Entry& entry) {
  return std::string(emulator::family_name(entry.first->family)) + (entry.kind.empty() ? "" : " " + entry.kind);
}

/// Entries of one machine by family: shapes are joined where they take the same operand formats.
std::vector<Entry> entries_of(const Rows& rows) {
  std::vector<std::pair<std::string, Entry>> joined_shapes;
  for (auto& [key, entry] : entries_by_shape(rows)) {
    const auto same = std::find_if(joined_shapes.begin(), joined_shapes.end(), [&, k = key, &e = entry](const auto& other) {
      return other.first == k && other.second.pairs == e.pairs;
    });
    if (same == joined_shapes.end()) {
      joined_shapes.emplace_back(key, entry);
    } else {
      same->second.shapes.push_back(entry.shapes.front());
    }
  }
  std::vector<Entry> entries;
  for (auto& [key, entry] : joined_shapes) {
    const auto same = std::find_if(entries.begin(), entries.end(), [&e = entry](const Entry& x) { return are_variants(x, e); });
    if (same == entries.end()) {
      entries.push_back(std::move(entry));
    } else {
      same->arithmetic = merged_text(same->arithmetic, entry.arithmetic);
    }
  }
  std::stable_sort(entries.begin(), entries.end(), [](const Entry& x, const Entry& y) {
    return std::pair(x.first->family, x.kind) < std::pair(y.first->family, y.kind);
  });
  return entries;
}

/// "fp16, bf16", "e4m3/e5m2 x e4m3/e5m2", or the pairs one by one.
std::string pairs_text(const Entry& entry) {
  std::vector<std::string> as, bs;
  bool same = true;
  for (const auto& [a, b] : entry.pairs) {
    add_once(as, a);
    add_once(bs, b);
    same = same && a == b;
  }
  const auto itself = [](const std::string& s) { return s; };
  if (same) return joined(as, ", ", itself);
  if (as.size() * bs.size() == entry.pairs.size()) return joined(as, "/", itself) + " x " + joined(bs, "/", itself);
  return joined(entry.pairs, ", ", [](const auto& p) { return p.first + " x " + p.second; });
}

/// The arithmetic with sparsity, scales and toolkit.
std::string arithmetic_text(const Entry& entry) {
  const MatrixInstruction& row = *entry.first;
  std::string text = entry.arithmetic;
  for (const std::string& part : {sparsity_text(row.sparsity), scale_text(row), toolkit_text(row.toolkit)}) {
    if (!part.empty()) text += "; " + part;
  }
  return text;
}

std::string shapes_text(const Entry& entry) {
  return joined(entry.shapes, " ", [](const std::string& s) { return s; });
}

std::string_view basis_text(const Entry& entry) { return emulator::basis_name(entry.first->evidence.basis); }

/// Machines that have the same entries, with the rows of the first.
struct Page {
  std::vector<const Arch*> machines;
  Rows rows;
};

/// Do the machines offer the same instructions, computed alike, on the same evidence?
bool equal_rows(const Rows& x, const Rows& y) {
  return std::equal(x.begin(), x.end(), y.begin(), y.end(), [](const auto* p, const auto* q) {
    return std::string_view(p->name) == std::string_view(q->name) && key_of(*p) == key_of(*q);
  });
}

std::vector<Page> pages_of(const Rows& rows) {
  std::vector<Page> pages;
  for (const Arch& arch : emulator::architectures()) {
    Rows own;
    std::copy_if(rows.begin(), rows.end(), std::back_inserter(own), [&](const auto* row) { return row->arch == arch.name; });
    if (own.empty()) continue;
    const auto same = std::find_if(pages.begin(), pages.end(), [&](const Page& page) { return equal_rows(page.rows, own); });
    if (same == pages.end()) {
      pages.push_back({{&arch}, std::move(own)});
    } else {
      same->machines.push_back(&arch);
    }
  }
  return pages;
}

/// "sm_80, sm_86", and the names of machines that are said to compute like these.
std::string machine_names(const Page& page) {
  std::string names = joined(page.machines, ", ", [](const Arch* a) { return a->name; });
  for (const Arch& arch : emulator::architectures()) {
    for (const Arch* machine : page.machines) {
      if (arch.alias_of == machine->name) names += ", " + std::string(arch.name);
    }
  }
  return names;
}

std::string machine_titles(const Page& page) {
  return joined(page.machines, "; ", [](const Arch* a) { return a->title; });
}

// ---- Printing ---------------------------------------------------------------------------------------------------------

void print_wrapped(const std::string& text, std::size_t indent, Colour colour = Colour::plain) {
  for (const std::string& line : wrapped(text, page_width - indent)) {
    std::cout << std::string(indent, ' ') << paint(line, colour) << '\n';
  }
}

void print_page(const Page& page) {
  std::cout << paint(machine_names(page), Colour::bold) << "  " << machine_titles(page) << "  (" << page.rows.size()
            << " instructions)\n";
  std::string family;
  for (const Entry& entry : entries_of(page.rows)) {
    if (family_text(entry) != family) std::cout << "  " << paint(family_text(entry), Colour::cyan) << '\n';
    family = family_text(entry);
    print_wrapped(pairs_text(entry) + " into " + result_text(*entry.first) + "; " + shapes_text(entry) + "; " +
                      std::string(basis_text(entry)),
                  4);
    print_wrapped(arithmetic_text(entry), 8, Colour::dim);
  }
  std::cout << '\n';
}

void print_markdown(const Page& page) {
  std::cout << "### " << machine_names(page) << "\n\n" << machine_titles(page) << "\n\n";
  Table table("lllllll");
  table.add({"family", "A x B", "D", "shapes", "arithmetic", "basis", "source"});
  for (const Entry& entry : entries_of(page.rows)) {
    table.add({family_text(entry), pairs_text(entry), result_text(*entry.first), shapes_text(entry),
               arithmetic_text(entry), std::string(basis_text(entry)), std::string(entry.first->evidence.source)});
  }
  table.print_markdown(std::cout);
  std::cout << '\n';
}

void print_row(const MatrixInstruction& row, const std::string& machines) {
  const auto fact = [](const std::string& label, const std::string& text) {
    if (!text.empty()) std::cout << "  " << label << std::string(12 - label.size(), ' ') << text << '\n';
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

/// Rows that a name means, whatever the machine and toolkit.
Rows find_rows(const Options& options, const Rows& rows) {
  const emulator::ParsedName parsed = emulator::parse_name(options.name);
  Rows found;
  for (const MatrixInstruction* row : rows) {
    if (emulator::parse_name(row->name).key == parsed.key && emulator::accepts_geometry(*row, parsed)) found.push_back(row);
  }
  if (!found.empty()) return found;
  std::vector<std::string_view> names;
  for (const MatrixInstruction* row : rows) add_once(names, std::string_view(row->name));
  throw formats::Error("list", formats::unknown_name("instruction", options.name, names));
}

/// One description for all machines that compute alike.
void print_rows(const Rows& rows) {
  std::vector<std::pair<const MatrixInstruction*, std::string>> groups;
  for (const MatrixInstruction* row : rows) {
    const auto same = std::find_if(groups.begin(), groups.end(), [&](const auto& g) { return key_of(*g.first) == key_of(*row); });
    if (same == groups.end()) {
      groups.emplace_back(row, row->arch);
    } else {
      same->second += ", " + std::string(row->arch);
    }
  }
  for (const auto& [row, machines] : groups) print_row(*row, machines);
}

void list(const Options& options) {
  Rows rows = select(options);
  if (!options.name.empty()) rows = find_rows(options, rows);
  if (options.json) {
    nlohmann::ordered_json all = nlohmann::ordered_json::array();
    for (const MatrixInstruction* row : rows) all.push_back(row_json(*row));
    std::cout << nlohmann::ordered_json{{"instructions", all}}.dump(2) << '\n';
  } else if (options.names) {
    std::vector<std::string_view> names;
    for (const MatrixInstruction* row : rows) add_once(names, std::string_view(row->name));
    for (const std::string_view name : names) std::cout << name << '\n';
  } else if (!options.name.empty()) {
    print_rows(rows);
  } else {
    for (const Page& page : pages_of(rows)) options.markdown ? print_markdown(page) : print_page(page);
  }
}

}  // namespace

void add_list(CLI::App& app, int&) {
  CLI::App* command = app.add_subcommand("list", "The catalogue of instructions, how each computes and how we know");
  const auto options = std::make_shared<Options>();
  command->add_option("NAME", options->name, "Describe this one instruction");
  command->add_option("--arch", options->arch, "Only this machine: sm_90, cdna3, ...");
  command->add_option("--type", options->type, "Only instructions with an operand or result of this format");
  command->add_option("--family", options->family, "Only this family: mma.sync, mma.sp, wmma, wgmma, tcgen05, ...");
  command->add_option("--basis", options->basis, "Only rows of this evidence")
      ->check(CLI::IsMember({"measured", "documented", "inferred"}));
  command->add_flag("--names", options->names, "Print names only, one per line");
  command->add_flag("--json", options->json, "Print JSON");
  command->add_flag("--markdown", options->markdown, "Print the tables of the documents");
  command->footer(
      "Terms of a block are aligned to the largest exponent E among them and cut F bits below it; a zero has exponent e0.\n"
      "Example: guardbit list --arch sm_90 --type e4m3");
  command->callback([options] { list(*options); });
}

}  // namespace guardbit::tools
