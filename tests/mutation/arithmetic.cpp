#include "tests/mutation/arithmetic.hpp"

#include <algorithm>

#include "emulator/catalogue/instruction_catalogue.hpp"

namespace guardbit::tests {

namespace {

int products_of(const MatrixInstruction& instruction) {
  return emulator::stored_k(instruction, instruction.shape.k);
}

}  // namespace

bool same_arithmetic(const MatrixInstruction& x, const MatrixInstruction& y) {
  return x.a == y.a && x.b == y.b && x.c == y.c && x.d == y.d && x.scale == y.scale &&
         std::equal(x.steps.begin(), x.steps.end(), y.steps.begin(), y.steps.end());
}

const std::vector<SharedArithmetic>& arithmetics() {
  static const std::vector<SharedArithmetic> all = [] {
    std::vector<SharedArithmetic> found;
    for (const MatrixInstruction& instruction : emulator::catalogue()) {
      auto shared = std::find_if(found.begin(), found.end(), [&](const SharedArithmetic& x) {
        return same_arithmetic(x.instruction, instruction);
      });
      if (shared == found.end()) shared = found.insert(found.end(), SharedArithmetic{});
      shared->instructions.push_back(&instruction);
      if (products_of(instruction) <= shared->instruction.shape.k) continue;
      shared->instruction = instruction;
      shared->instruction.shape.k = products_of(instruction);
      shared->instruction.sparsity = {};
    }
    return found;
  }();
  return all;
}

const std::vector<SharedSparsity>& sparsities() {
  static const std::vector<SharedSparsity> all = [] {
    std::vector<SharedSparsity> found;
    for (const MatrixInstruction& instruction : emulator::catalogue()) {
      if (instruction.sparsity == emulator::Sparsity{} || instruction.scale.count != 0) continue;
      auto shared = std::find_if(found.begin(), found.end(), [&](const SharedSparsity& x) {
        return x.instruction.sparsity == instruction.sparsity;
      });
      if (shared == found.end())
        shared = found.insert(found.end(), SharedSparsity{instruction, {}});
      shared->instructions.push_back(&instruction);
      const bool measured = shared->instruction.evidence.basis == emulator::Basis::measured;
      if (!measured && instruction.evidence.basis == emulator::Basis::measured)
        shared->instruction = instruction;
    }
    return found;
  }();
  return all;
}

std::string types_of(const MatrixInstruction& instruction) {
  using formats::name_of;
  std::string text = name_of(instruction.a) + " x " + name_of(instruction.b) + " + " +
                     name_of(instruction.c) + " -> " + name_of(instruction.d);
  if (instruction.scale.count != 0) {
    text +=
        ", " + std::to_string(instruction.scale.count) + " " + name_of(instruction.scale.format);
  }
  return text;
}

std::string machines_of(const std::vector<const MatrixInstruction*>& instructions) {
  std::vector<std::pair<std::string, std::vector<std::string>>> machines;
  for (const MatrixInstruction* instruction : instructions) {
    const std::string arch(instruction->arch);
    const std::string family(emulator::family_name(instruction->family));
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

int toolkit_of(const MatrixInstruction& instruction) {
  return instruction.toolkit.until != 0 ? instruction.toolkit.until - 1 : emulator::newest_toolkit;
}

}  // namespace guardbit::tests
