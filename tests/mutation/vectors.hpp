#pragma once

#include <cstdint>
#include <filesystem>
#include <iosfwd>
#include <optional>
#include <string>
#include <vector>

#include "tests/emulator/inputs/catalogue_inputs.hpp"
#include "tests/mutation/arithmetic.hpp"

namespace guardbit::tests {

/// The operands of one output element and what it must be. With positions `e` (a sparse
/// instruction), b is dense; otherwise it is as long as a.
struct TestVector {
  std::string purpose;
  DotInputs x;
  std::vector<std::uint64_t> e;
  std::uint64_t d = 0;
};

/// What the model makes of a vector's operands under a (possibly mutated) instruction; nothing
/// where the instruction's fixed widths do not hold them, which only mutants run into. What a
/// mutant reads beyond the vector's operands is zero.
std::optional<std::uint64_t> computed(const MatrixInstruction& instruction, const TestVector& v);

/// The vectors of one instruction of the catalogue.
struct InstructionVectors {
  MatrixInstruction instruction;
  std::vector<TestVector> list;
};

/// tests/mutation/vectors.txt: for each arithmetic a line "ARCH TOOLKIT PRODUCTS NAME", then one
/// line per vector, "PURPOSE a=CODES b=CODES c=CODE d=CODE" with scales (sa, sb) and positions (e)
/// where there are any. CODES are hexadecimal without separators, as wide as the format asks; zero
/// codes at the end are left out. Throws std::runtime_error with the line that does not fit.
std::vector<InstructionVectors> read_vectors(const std::filesystem::path& file);
void write_vectors(std::ostream& out, const std::vector<InstructionVectors>& all);

std::filesystem::path vectors_file();

}  // namespace guardbit::tests
