#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "emulator/catalogue/instruction_catalogue.hpp"

// The catalogue as people read it: machines that have the same instructions share a page,
// instructions that compute alike share an entry.
namespace guardbit::tools {

using CatalogueInstructions = std::vector<const emulator::MatrixInstruction*>;

/// Instructions of one machine and one arithmetic, with all their shapes and operand formats.
struct CatalogueEntry {
  const emulator::MatrixInstruction* first = nullptr;
  /// "kind::mxf4" of the name, or nothing
  std::string kind;
  /// in words; variants apart by " / "
  std::string arithmetic;
  std::vector<std::string> shapes;
  /// formats of A and B
  std::vector<std::pair<std::string, std::string>> pairs;
};

/// Machines that have the same instructions, and these instructions as the first of them has them.
struct CataloguePage {
  std::vector<const emulator::Arch*> machines;
  CatalogueInstructions instructions;
};

std::vector<CataloguePage> pages_of(const CatalogueInstructions& instructions);

/// The entries of a page by family, else in the catalogue's order.
std::vector<CatalogueEntry> entries_of(const CatalogueInstructions& instructions);

/// Do the two instructions compute alike, on the same evidence, whatever their shapes and operand
/// formats?
bool compute_alike(const emulator::MatrixInstruction& x, const emulator::MatrixInstruction& y);

/// "sm_80, sm_86, sm_87": the machines and their aliases.
std::string machine_names(const CataloguePage& page);
std::string machine_titles(const CataloguePage& page);

std::string family_text(const CatalogueEntry& entry);
/// "fp16, bf16", "e4m3/e5m2 x e4m3/e5m2", or the pairs one by one.
std::string pairs_text(const CatalogueEntry& entry);
/// The format of D, and of C where it is another.
std::string result_text(const CatalogueEntry& entry);
std::string shapes_text(const CatalogueEntry& entry);
/// The arithmetic with sparsity, scales and toolkit.
std::string arithmetic_text(const CatalogueEntry& entry);
std::string basis_text(const CatalogueEntry& entry);

template <class Item>
void add_once(std::vector<Item>& list, const Item& item) {
  if (std::find(list.begin(), list.end(), item) == list.end()) list.push_back(item);
}

}  // namespace guardbit::tools
