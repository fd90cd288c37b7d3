#pragma once

// Seeded operands for tests of an instruction, on the host. The functions return a Batch whose
// words are as registers hold them; the same seed gives the same batch everywhere. Tests,
// recordings and validation of a device execute it. generated_inputs.hpp makes the elements.

#include <cstdint>
#include <string_view>
#include <vector>

#include "gpu/inputs/input_families.hpp"
#include "gpu/operands/tensor_core_batch.hpp"

namespace guardbit::gpu {

/// Names of the input families of an instruction in order. Execution t of make_inputs belongs to
/// family t mod families(instruction).size().
std::vector<std::string_view> families(const TensorCoreInstruction& instruction);

/// Operands a, b, c and e of every family in turn.
Batch make_inputs(const TensorCoreInstruction& instruction, int executions, std::uint64_t seed);

/// Executions [first, first + executions) of one family's stream.
Batch make_family_inputs(const TensorCoreInstruction& instruction, InputFamily family,
                         std::uint64_t seed, std::int64_t first, int executions);

/// Which list of families the mixed rows of an instruction follow: mixed_floats, mixed_integers or
/// mixed_bits.
std::string_view mixed_kind(const TensorCoreInstruction& instruction);

/// Names of those families in order.
std::vector<std::string_view> mixed_families(const TensorCoreInstruction& instruction);

/// Operands whose family varies by row of A and C instead of by execution, so that a few executions
/// hold all families: row i of execution t belongs to mixed_families(instruction)[(t * m + i) %
/// size]. The columns of B go round eight kinds that every family meets (mixed_rows_floats.cpp,
/// mixed_rows_integers.cpp).
Batch make_mixed_rows(const TensorCoreInstruction& instruction, int executions, std::uint64_t seed);

/// Small integers, exact in every format and under every rule, to check the packing.
Batch make_small_integers(const TensorCoreInstruction& instruction, int executions,
                          std::uint64_t seed);

/// The exact total c + sum a*b of one output as the instruction reads its operands; every operand
/// must be finite.
long double exact_total(const TensorCoreInstruction& instruction, const Batch& batch, int execution,
                        int i, int j);

}  // namespace guardbit::gpu
