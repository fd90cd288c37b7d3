#include "gpu/tensor_core_instruction.hpp"

#include "emulator/catalogue.hpp"
#include "formats/error.hpp"
#include "gpu/words.hpp"

namespace guardbit::gpu {

const TensorCoreInstruction* find_plain(std::string_view name) {
  for (const TensorCoreInstruction& row : tensor_core_instructions())
    if (row.name == name && row.variant.empty()) return &row;
  return nullptr;
}

int operand_bits(const TensorCoreInstruction& row, const Format& type) {
  return row.byte_containers ? 8 : word_bits(type);
}

void check_against_catalogue(const TensorCoreInstruction& row) {
  const emulator::MatrixInstruction model =
      emulator::require_instruction("sm_90", row.name, "gpu wrappers");
  const bool same = model.shape == emulator::Shape{row.m, row.n, row.k} && model.a == row.a &&
                    model.b == row.b && model.c == row.c && model.d == row.d &&
                    emulator::stored_k(model, row.k) == row.stored_k();
  if (!same) {
    throw formats::Error(
        "gpu wrappers",
        "'" + std::string(row.name) + "' has another shape or other formats in the catalogue");
  }
}

SparseGroup sparse_group(const TensorCoreInstruction& row) {
  if (word_bits(row.a) == 32) return {.stored = 1, .positions = 2, .span = 2};
  if (operand_bits(row, row.a) == 4) return {.stored = 4, .positions = 4, .span = 8};
  return {.stored = 2, .positions = 4, .span = 4};
}

int dense_column(const TensorCoreInstruction& row, int index, int e) {
  const SparseGroup group = sparse_group(row);
  if (operand_bits(row, row.a) == 4) return index / 4 * 8 + e * 2 + index % 2;
  return index / group.stored * group.span + e;
}

}  // namespace guardbit::gpu
