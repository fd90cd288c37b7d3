#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "formats/format.hpp"

namespace guardbit::gpu {

using formats::Format;

enum class Unit { mma, wmma, wgmma, tcgen05 };

/// Scale factors of a block-scaled form: `count` along K for each row of A and column of B.
struct ScaleOperand {
  Format format{};
  int count = 0;  ///< 0: the form takes none
};

/// The files that generate_wrappers.py spreads the kernels over.
enum class Group { mma, mma_sp, wmma, wgmma };

/// One instruction that ptxas 13.0 accepts for sm_90a: the PTX name, its shape and formats, and
/// which kernel runs it. A name may be there in several variants: operand choices that the name
/// does not carry.
struct TensorCoreInstruction {
  std::string_view name;     ///< exactly as PTX spells it
  std::string_view variant;  ///< neg_a, scale_d0, a_regs, …; empty for the plain form
  std::string_view wrapper;  ///< the struct that holds it, to find its SASS
  std::string_view plain;    ///< the name whose plain form should give the same D; empty for itself
  Group group;
  int index;  ///< of the kernel in its group
  Unit unit;
  int m, n, k;
  Format a, b, c, d;
  bool sparse = false;
  bool a_column_major = false, b_row_major = false;
  bool a_from_registers = false;
  bool a_from_tensor_memory = false;  ///< tcgen05
  bool negate_a = false, negate_b = false;
  bool ignore_c = false;         ///< wgmma scale-d = 0
  bool unordered = false;        ///< the positions of a sparse group may descend
  bool byte_containers = false;  ///< FP6 and FP4 elements lie in bytes of their own
  int selector = 0;              ///< which lanes of four hold the sparsity metadata
  ScaleOperand scale{};

  constexpr int stored_k() const { return sparse ? k / 2 : k; }
};

/// Every instruction, group by group, plain forms and variants.
std::span<const TensorCoreInstruction> tensor_core_instructions();

/// The plain form of that name; null when there is none.
const TensorCoreInstruction* find_plain(std::string_view name);

/// Bits that an element of A or B takes in registers or shared memory.
int operand_bits(const TensorCoreInstruction& row, const Format& type);

/// formats::Error unless the model's catalogue has the row, with the same shape, formats and
/// sparsity.
void check_against_catalogue(const TensorCoreInstruction& row);

/// Values of one group of four in a sparse row: for TF32 one of two, for packed four-bit formats
/// two pairs of eight.
struct SparseGroup {
  int stored;     ///< stored values that four metadata bits describe
  int positions;  ///< positions a stored value can take
  int span;       ///< columns of the group in the dense matrix
};
SparseGroup sparse_group(const TensorCoreInstruction& row);

/// The dense column that stored value `index` with position `e` multiplies.
int dense_column(const TensorCoreInstruction& row, int index, int e);

}  // namespace guardbit::gpu
