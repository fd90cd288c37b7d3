#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "emulator/model/instruction.hpp"
#include "formats/format.hpp"

// The instructions that have a generated wrapper: the table, and what is found in it.
namespace guardbit::gpu {

using formats::Format;

enum class Unit { mma, wmma, wgmma, tcgen05 };

/// Scale factors of a block-scaled form: `count` along K for each row of A and column of B.
struct ScaleOperand {
  Format format{};
  /// 0: the form takes none
  int count = 0;
  /// PTX's selectors: the first byte of A's register, which of two lane pairs of four holds it, the
  /// first byte of B's register, which lane of four holds it. mma only.
  struct Ids {
    int byte_a, pair_a, byte_b, lane_b;
  } ids{};
};

/// One instruction that ptxas 13.0 accepts: the PTX name, its shape and formats, and which kernel
/// runs it. A name may be there in several variants: operand choices that the name does not carry.
struct TensorCoreInstruction {
  /// as the catalogue names it: sm_90
  std::string_view arch;
  /// exactly as PTX spells it
  std::string_view name;
  /// neg_a, scale_d0, a_regs, …; empty for the plain form
  std::string_view variant;
  /// the struct that holds it, to find its SASS
  std::string_view wrapper;
  /// the name whose plain form should give the same D; empty for itself
  std::string_view plain;
  /// the generated file wrappers_<group>.cu with its kernel
  std::string_view group;
  /// of the kernel in its group
  int index;
  Unit unit;
  int m, n, k;
  Format a, b, c, d;
  bool sparse = false;
  bool a_column_major = false, b_row_major = false;
  bool negate_a = false, negate_b = false;
  bool a_from_registers = false;
  /// tcgen05
  bool a_from_tensor_memory = false;
  /// wgmma scale-d = 0
  bool ignore_c = false;
  /// the positions of a sparse group may descend
  bool unordered = false;
  /// FP6 and FP4 elements lie in bytes of their own
  bool byte_containers = false;
  /// another N of a form that is there with the least and the largest
  bool size_sweep = false;
  /// which lanes of four hold the sparsity metadata
  int selector = 0;
  /// bytes of the swizzle of shared memory; 0: none
  int a_swizzle = 0, b_swizzle = 0;
  ScaleOperand scale{};

  constexpr int stored_k() const { return sparse ? k / 2 : k; }
};

/// The architecture that this program's wrappers were compiled for: "sm_90a" (also where there is
/// no CUDA).
std::string_view compiled_architecture();

/// Every instruction of the architecture that this program's wrappers were compiled for (sm_90a
/// where there is no CUDA), group by group, plain forms and variants.
std::span<const TensorCoreInstruction> tensor_core_instructions();

/// The same for any architecture that the wrappers can be compiled for: sm_80, sm_86, sm_89, sm_90,
/// sm_100 or sm_120, with or without a suffix. formats::Error for another.
std::span<const TensorCoreInstruction> tensor_core_instructions(std::string_view arch);

/// The architectures that have a table of instructions, as the catalogue names them.
std::vector<std::string_view> wrapped_architectures();

/// The plain form of that name in one table; null when there is none.
const TensorCoreInstruction* find_plain(std::span<const TensorCoreInstruction> table,
                                        std::string_view name);
/// The plain form of that name in tensor_core_instructions().
const TensorCoreInstruction* find_plain(std::string_view name);

/// Bits that an element of an operand takes in registers or shared memory.
int operand_bits(const TensorCoreInstruction& instruction, const Format& type);
/// Zero bits below the element in them: FP4 of mma stands in the middle of its byte (PTX ISA, mma).
int padding_below(const TensorCoreInstruction& instruction, const Format& type);

/// The catalogue's entry of the instruction, of its own architecture. formats::Error when there is
/// none.
emulator::MatrixInstruction catalogue_instruction(const TensorCoreInstruction& instruction);

/// formats::Error unless the model's catalogue has the instruction for its architecture, with the
/// same shape, formats, scales and sparsity.
void check_against_catalogue(const TensorCoreInstruction& instruction);

/// Values of one group of four in a row of a sparse A: for TF32 one of two, for packed four-bit
/// formats two pairs of eight.
struct SparseGroup {
  /// stored values that four metadata bits describe
  int stored;
  /// positions a stored value can take
  int positions;
  /// columns of the group in the dense matrix
  int span;
};
SparseGroup sparse_group(const TensorCoreInstruction& instruction);

/// The dense column that stored value `index` with position `e` multiplies.
int dense_column(const TensorCoreInstruction& instruction, int index, int e);

}  // namespace guardbit::gpu
