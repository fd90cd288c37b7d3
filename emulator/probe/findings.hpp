#pragma once

#include <string>
#include <vector>

#include "emulator/probe/answers.hpp"

// The report on an arithmetic that reproduces all answers: per field, its value, the values that
// the answers do not exclude, and the nearest one that they do.
namespace guardbit::emulator {

/// One finding for each field that has more than one possible value.
std::vector<Finding> findings_of(const MatrixInstruction& instruction, const Answers& answers);

/// The structure in words: "fused, 2 steps".
std::string structure_text(const MatrixInstruction& instruction);

/// Instructions of the catalogue that reproduce every answer, grouped by arithmetic.
std::vector<CatalogueMatch> catalogue_matches(const BlackBox& box, const Answers& answers);

}  // namespace guardbit::emulator
