#pragma once

#include <cstdint>
#include <vector>

#include "tests/emulator/inputs/oracle_rules.hpp"
#include "tests/mutation/mutants.hpp"
#include "tests/mutation/vectors.hpp"

namespace guardbit::tests {

/// The operands in the order the unit takes them: NUMERICS 3.3 read a second time, with one of two
/// kept for TF32, pairs of neighbours for 4-bit types, two of four for all others.
DotInputs gathered(const MatrixInstruction& instruction, const TestVector& v);

/// Does the mutant give another result than `d` on the vector's operands? NaNs of an unknown kind
/// are alike.
bool notices(const TestVector& v, const Mutant& mutant, bool nan_is_any_nan);

/// Candidate number `index` of an endless stream of probes and random inputs, without `d`.
TestVector candidate(const MatrixInstruction& instruction, std::uint64_t index);

/// A small set of vectors with the oracle's answers that notices every mutant that is not provably
/// unobservable, and one vector for each behaviour that no field says (overflow, NaN, infinities,
/// zeros). Throws std::runtime_error when model and oracle disagree, or when `limit` candidates do
/// not notice some mutant.
std::vector<TestVector> search_vectors(const MatrixInstruction& instruction, std::uint64_t limit);

/// The same for the sparsity of an instruction.
std::vector<TestVector> search_sparsity_vectors(const MatrixInstruction& instruction);

}  // namespace guardbit::tests
