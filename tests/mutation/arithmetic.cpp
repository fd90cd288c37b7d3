#include "tests/mutation/arithmetic.hpp"

#include <algorithm>

#include "emulator/catalogue/instruction_catalogue.hpp"

namespace guardbit::tests {

namespace {

int products_of(const MatrixInstruction& row) { return emulator::stored_k(row, row.shape.k); }

}  // namespace

bool same_arithmetic(const MatrixInstruction& x, const MatrixInstruction& y) {
  return x.a == y.a && x.b == y.b && x.c == y.c && x.d == y.d && x.scale == y.scale &&
         std::equal(x.steps.begin(), x.steps.end(), y.steps.begin(), y.steps.end());
}

const std::vector<SharedArithmetic>& arithmetics() {
  static const std::vector<SharedArithmetic> all = [] {
    std::vector<SharedArithmetic> found;
    for (const MatrixInstruction& row : emulator::catalogue()) {
      auto shared = std::find_if(found.begin(), found.end(), [&](const SharedArithmetic& x) {
        return same_arithmetic(x.row, row);
      });
      if (shared == found.end()) shared = found.insert(found.end(), SharedArithmetic{});
      shared->rows.push_back(&row);
      if (products_of(row) <= shared->row.shape.k) continue;
      shared->row = row;
      shared->row.shape.k = products_of(row);
      shared->row.sparsity = {};
    }
    return found;
  }();
  return all;
}

const std::vector<SharedSparsity>& sparsities() {
  static const std::vector<SharedSparsity> all = [] {
    std::vector<SharedSparsity> found;
    for (const MatrixInstruction& row : emulator::catalogue()) {
      if (row.sparsity == emulator::Sparsity{} || row.scale.count != 0) continue;
      auto shared = std::find_if(found.begin(), found.end(), [&](const SharedSparsity& x) {
        return x.row.sparsity == row.sparsity;
      });
      if (shared == found.end()) shared = found.insert(found.end(), SharedSparsity{row, {}});
      shared->rows.push_back(&row);
      const bool measured = shared->row.evidence.basis == emulator::Basis::measured;
      if (!measured && row.evidence.basis == emulator::Basis::measured) shared->row = row;
    }
    return found;
  }();
  return all;
}

std::string types_of(const MatrixInstruction& row) {
  using formats::name_of;
  std::string text =
      name_of(row.a) + " x " + name_of(row.b) + " + " + name_of(row.c) + " -> " + name_of(row.d);
  if (row.scale.count != 0) {
    text += ", " + std::to_string(row.scale.count) + " " + name_of(row.scale.format);
  }
  return text;
}

std::string machines_of(const std::vector<const MatrixInstruction*>& rows) {
  std::vector<std::pair<std::string, std::vector<std::string>>> machines;
  for (const MatrixInstruction* row : rows) {
    const std::string arch(row->arch);
    const std::string family(emulator::family_name(row->family));
    auto at = std::find_if(machines.begin(), machines.end(),
                           [&](const auto& machine) { return machine.first == arch; });
    if (at == machines.end()) at = machines.insert(at, {arch, {}});
    if (std::find(at->second.begin(), at->second.end(), family) == at->second.end()) {
      at->second.push_back(family);
    }
  }
  std::string text;
  for (const auto& [arch, families] : machines) {
    text += (text.empty() ? "" : "; ") + arch;
    for (std::size_t i = 0; i < families.size(); ++i) text += (i == 0 ? " " : ", ") + families[i];
  }
  return text;
}

int toolkit_of(const MatrixInstruction& row) {
  return row.toolkit.until != 0 ? row.toolkit.until - 1 : emulator::newest_toolkit;
}

}  // namespace guardbit::tests
