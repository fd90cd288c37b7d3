#include "gpu/operands/tensor_core_instruction.hpp"

#include <algorithm>

#include "emulator/catalogue/instruction_catalogue.hpp"
#include "formats/support/error.hpp"
#include "gpu/operands/register_words.hpp"

namespace guardbit::gpu {

#ifndef GUARDBIT_CUDA_ARCHITECTURE
#error "the build defines GUARDBIT_CUDA_ARCHITECTURE, 90a for example"
#endif
#define GUARDBIT_TEXT_OF(x) #x
#define GUARDBIT_TEXT(x) GUARDBIT_TEXT_OF(x)

using Table = std::span<const TensorCoreInstruction>;

// Generated: instructions_<arch>.cpp.
Table sm_80_instructions();
Table sm_86_instructions();
Table sm_89_instructions();
Table sm_90_instructions();
Table sm_100_instructions();
Table sm_120_instructions();

namespace {

struct WrappedArchitecture {
  std::string_view name;
  Table (*table)();
};
constexpr WrappedArchitecture architectures[] = {
    {"sm_80", sm_80_instructions}, {"sm_86", sm_86_instructions},   {"sm_89", sm_89_instructions},
    {"sm_90", sm_90_instructions}, {"sm_100", sm_100_instructions}, {"sm_120", sm_120_instructions},
};

}  // namespace

std::vector<std::string_view> wrapped_architectures() {
  std::vector<std::string_view> names;
  for (const WrappedArchitecture& arch : architectures) names.push_back(arch.name);
  return names;
}

Table tensor_core_instructions(std::string_view arch) {
  const std::string_view page = emulator::require_page(arch, "gpu wrappers");
  std::string choices;
  for (const WrappedArchitecture& wrapped : architectures) {
    if (wrapped.name == page) return wrapped.table();
    choices += (choices.empty() ? "" : ", ") + std::string(wrapped.name);
  }
  throw formats::Error("gpu wrappers", "there are none for '" + std::string(arch) + "'", choices);
}

std::string_view compiled_architecture() { return "sm_" GUARDBIT_TEXT(GUARDBIT_CUDA_ARCHITECTURE); }

Table tensor_core_instructions() {
  static const Table table = tensor_core_instructions(compiled_architecture());
  return table;
}

const TensorCoreInstruction* find_plain(Table table, std::string_view name) {
  for (const TensorCoreInstruction& instruction : table)
    if (instruction.name == name && instruction.variant.empty()) return &instruction;
  return nullptr;
}

const TensorCoreInstruction* find_plain(std::string_view name) {
  return find_plain(tensor_core_instructions(), name);
}

int operand_bits(const TensorCoreInstruction& instruction, const Format& type) {
  return instruction.byte_containers ? std::max(8, word_bits(type)) : word_bits(type);
}

int padding_below(const TensorCoreInstruction& instruction, const Format& type) {
  return instruction.byte_containers && instruction.unit == Unit::mma && word_bits(type) == 4 ? 2
                                                                                              : 0;
}

emulator::MatrixInstruction catalogue_instruction(const TensorCoreInstruction& instruction) {
  return emulator::require_instruction(instruction.arch, instruction.name, "gpu wrappers");
}

void check_against_catalogue(const TensorCoreInstruction& instruction) {
  const emulator::MatrixInstruction model = catalogue_instruction(instruction);
  const bool same_scale =
      model.scale.count == instruction.scale.count &&
      (instruction.scale.count == 0 || model.scale.format == instruction.scale.format);
  const bool same = model.shape == emulator::Shape{instruction.m, instruction.n, instruction.k} &&
                    model.a == instruction.a && model.b == instruction.b &&
                    model.c == instruction.c && model.d == instruction.d && same_scale &&
                    emulator::stored_k(model, instruction.k) == instruction.stored_k();
  if (!same) {
    throw formats::Error("gpu wrappers",
                         "'" + std::string(instruction.name) +
                             "' has another shape or other formats in the catalogue");
  }
}

SparseGroup sparse_group(const TensorCoreInstruction& instruction) {
  if (word_bits(instruction.a) == 32) return {.stored = 1, .positions = 2, .span = 2};
  if (operand_bits(instruction, instruction.a) == 4)
    return {.stored = 4, .positions = 4, .span = 8};
  return {.stored = 2, .positions = 4, .span = 4};
}

int dense_column(const TensorCoreInstruction& instruction, int index, int e) {
  const SparseGroup group = sparse_group(instruction);
  if (operand_bits(instruction, instruction.a) == 4) return index / 4 * 8 + e * 2 + index % 2;
  return index / group.stored * group.span + e;
}

}  // namespace guardbit::gpu
