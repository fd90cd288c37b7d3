#include "tools/catalogue/catalogue_page.hpp"

#include <algorithm>
#include <iterator>

#include "formats/format_catalogue.hpp"
#include "formats/support/joined.hpp"
#include "formats/support/words.hpp"
#include "tools/catalogue/instruction_facts.hpp"

namespace guardbit::tools {

namespace {

using emulator::Arch;
using emulator::MatrixInstruction;

/// "kind::mxf4" of a name, or nothing.
std::string kind_of(std::string_view name) {
  const std::size_t begin = name.find("kind::");
  if (begin == std::string_view::npos) return "";
  return std::string(name.substr(begin, name.find('.', begin) - begin));
}

/// The format of D, and of C where it is another.
std::string d_text(const MatrixInstruction& instruction) {
  const std::string d = formats::name_of(instruction.d);
  return instruction.c == instruction.d ? d : d + " with C in " + formats::name_of(instruction.c);
}

/// Everything but shape and operand formats; integers of one width stay together.
std::string key_of(const MatrixInstruction& instruction) {
  std::string key;
  for (const std::string& part :
       {std::string(formats::word_of(instruction.family)), kind_of(instruction.name),
        d_text(instruction), arithmetic_summary(instruction), scale_text(instruction),
        sparsity_text(instruction.sparsity), toolkit_text(instruction.toolkit),
        formats::is_integer(instruction.a) ? std::to_string(formats::bits(instruction.a))
                                           : std::string(),
        std::string(formats::word_of(instruction.evidence.basis)),
        std::string(instruction.evidence.source)}) {
    key += part + '\n';
  }
  return key;
}

/// "exact sum, wraps" and "exact sum, saturates once" as "exact sum, wraps / saturates once".
std::string merged_text(const std::string& x, const std::string& y) {
  const std::size_t end = x.find(", ");
  const std::size_t begin =
      end == std::string::npos || y.compare(0, end + 2, x, 0, end + 2) != 0 ? 0 : end + 2;
  return x + " / " + y.substr(begin);
}

/// Forms of one instruction that differ in a qualifier only: saturation of integers, rounding of
/// FP64.
bool are_variants(const CatalogueEntry& x, const CatalogueEntry& y) {
  const MatrixInstruction& p = *x.first;
  const MatrixInstruction& q = *y.first;
  return (formats::is_integer(p.a) || p.a == formats::fp64) && p.family == q.family &&
         x.shapes == y.shapes && x.pairs == y.pairs && p.sparsity == q.sparsity &&
         p.evidence.basis == q.evidence.basis && p.evidence.source == q.evidence.source;
}

/// The shapes of one arithmetic with the operand formats of each.
std::vector<std::pair<std::string, CatalogueEntry>> entries_by_shape(
    const CatalogueInstructions& instructions) {
  std::vector<std::pair<std::string, CatalogueEntry>> entries;
  for (const MatrixInstruction* instruction : instructions) {
    const std::string key = key_of(*instruction);
    const std::string shape = shape_name(instruction->shape);
    auto found = std::find_if(entries.begin(), entries.end(), [&](const auto& e) {
      return e.first == key && e.second.shapes.front() == shape;
    });
    if (found == entries.end()) {
      entries.push_back({key,
                         {instruction,
                          kind_of(instruction->name),
                          arithmetic_summary(*instruction),
                          {shape},
                          {}}});
      found = entries.end() - 1;
    }
    add_once(found->second.pairs,
             std::pair{formats::name_of(instruction->a), formats::name_of(instruction->b)});
  }
  return entries;
}

/// Do the machines offer the same instructions, computed alike, on the same evidence?
bool equal_instructions(const CatalogueInstructions& x, const CatalogueInstructions& y) {
  return std::equal(x.begin(), x.end(), y.begin(), y.end(), [](const auto* p, const auto* q) {
    return std::string_view(p->name) == std::string_view(q->name) && key_of(*p) == key_of(*q);
  });
}

}  // namespace

std::vector<CataloguePage> pages_of(const CatalogueInstructions& instructions) {
  std::vector<CataloguePage> pages;
  for (const Arch& arch : emulator::architectures()) {
    CatalogueInstructions own;
    std::copy_if(instructions.begin(), instructions.end(), std::back_inserter(own),
                 [&](const auto* instruction) { return instruction->arch == arch.name; });
    if (own.empty()) continue;
    const auto same = std::find_if(pages.begin(), pages.end(), [&](const CataloguePage& page) {
      return equal_instructions(page.instructions, own);
    });
    if (same == pages.end()) {
      pages.push_back({{&arch}, std::move(own)});
    } else {
      same->machines.push_back(&arch);
    }
  }
  return pages;
}

std::vector<CatalogueEntry> entries_of(const CatalogueInstructions& instructions) {
  std::vector<std::pair<std::string, CatalogueEntry>> joined_shapes;
  for (auto& [key, entry] : entries_by_shape(instructions)) {
    const auto same = std::find_if(joined_shapes.begin(), joined_shapes.end(),
                                   [&, k = key, &e = entry](const auto& other) {
                                     return other.first == k && other.second.pairs == e.pairs;
                                   });
    if (same == joined_shapes.end()) {
      joined_shapes.emplace_back(key, entry);
    } else {
      same->second.shapes.push_back(entry.shapes.front());
    }
  }
  std::vector<CatalogueEntry> entries;
  for (auto& [key, entry] : joined_shapes) {
    const auto same =
        std::find_if(entries.begin(), entries.end(),
                     [&e = entry](const CatalogueEntry& x) { return are_variants(x, e); });
    if (same == entries.end()) {
      entries.push_back(std::move(entry));
    } else {
      same->arithmetic = merged_text(same->arithmetic, entry.arithmetic);
    }
  }
  std::stable_sort(entries.begin(), entries.end(),
                   [](const CatalogueEntry& x, const CatalogueEntry& y) {
                     return std::pair(x.first->family, x.kind) < std::pair(y.first->family, y.kind);
                   });
  return entries;
}

bool compute_alike(const MatrixInstruction& x, const MatrixInstruction& y) {
  return key_of(x) == key_of(y);
}

std::string machine_names(const CataloguePage& page) {
  std::string names = formats::joined(page.machines, ", ", [](const Arch* a) { return a->name; });
  for (const Arch& arch : emulator::architectures()) {
    for (const Arch* machine : page.machines) {
      if (arch.alias_of == machine->name) names += ", " + std::string(arch.name);
    }
  }
  return names;
}

std::string machine_titles(const CataloguePage& page) {
  return formats::joined(page.machines, "; ", [](const Arch* a) { return a->title; });
}

std::string family_text(const CatalogueEntry& entry) {
  return std::string(formats::word_of(entry.first->family)) +
         (entry.kind.empty() ? "" : " " + entry.kind);
}

std::string pairs_text(const CatalogueEntry& entry) {
  std::vector<std::string> as, bs;
  bool same = true;
  for (const auto& [a, b] : entry.pairs) {
    add_once(as, a);
    add_once(bs, b);
    same = same && a == b;
  }
  if (same) return formats::joined(as, ", ");
  if (as.size() * bs.size() == entry.pairs.size())
    return formats::joined(as, "/") + " x " + formats::joined(bs, "/");
  return formats::joined(entry.pairs, ", ",
                         [](const auto& p) { return p.first + " x " + p.second; });
}

std::string result_text(const CatalogueEntry& entry) { return d_text(*entry.first); }

std::string shapes_text(const CatalogueEntry& entry) { return formats::joined(entry.shapes, " "); }

std::string arithmetic_text(const CatalogueEntry& entry) {
  const MatrixInstruction& instruction = *entry.first;
  std::string text = entry.arithmetic;
  for (const std::string& part : {sparsity_text(instruction.sparsity), scale_text(instruction),
                                  toolkit_text(instruction.toolkit)}) {
    if (!part.empty()) text += "; " + part;
  }
  return text;
}

std::string basis_text(const CatalogueEntry& entry) {
  return std::string(formats::word_of(entry.first->evidence.basis));
}

}  // namespace guardbit::tools
