#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "gpu/inputs/input_families.hpp"
#include "gpu/operands/tensor_core_batch.hpp"

namespace guardbit::gpu {

/// Names of the input families of a row in order; execution t of make_inputs belongs to family t
/// mod families(row).size().
std::vector<std::string_view> families(const TensorCoreInstruction& row);

/// Seeded inputs (a, b, c, e) of every family in turn: generated_inputs.hpp.
Batch make_inputs(const TensorCoreInstruction& row, int executions, std::uint64_t seed);

/// Executions [first, first + executions) of one family's stream.
Batch make_family_inputs(const TensorCoreInstruction& row, InputFamily family, std::uint64_t seed,
                         std::int64_t first, int executions);

/// Which list of families the mixed tiles of a row follow: mixed_floats, mixed_integers or
/// mixed_bits.
std::string_view mixed_kind(const TensorCoreInstruction& row);

/// Names of those families in order.
std::vector<std::string_view> mixed_families(const TensorCoreInstruction& row);

/// Seeded inputs whose family varies by row of A and C instead of by execution, so that a few
/// executions hold them all: row i of execution t belongs to mixed_families(row)[(t * m + i) %
/// size]. The columns of B go round eight kinds that every family meets (mixed_floats.cpp,
/// mixed_integers.cpp).
Batch make_mixed_tiles(const TensorCoreInstruction& row, int executions, std::uint64_t seed);

/// Small integers, exact in every format and under every rule, to check the packing.
Batch make_small_integers(const TensorCoreInstruction& row, int executions, std::uint64_t seed);

/// The exact total c + sum a*b of one output as the row reads its operands; every operand must be
/// finite.
long double exact_total(const TensorCoreInstruction& row, const Batch& batch, int execution, int i,
                        int j);

}  // namespace guardbit::gpu
