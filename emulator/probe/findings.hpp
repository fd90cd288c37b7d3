#pragma once

#include <string>
#include <vector>

#include "emulator/probe/answers.hpp"

// What the answers say about an arithmetic that gives them all.
namespace guardbit::emulator {

/// Every field's value, what cannot be told from it, and the nearest value that is ruled out.
std::vector<Finding> findings_of(const MatrixInstruction& row, const Pool& answers);

/// "fused, 2 steps"
std::string structure_text(const MatrixInstruction& row);

/// Rows of the catalogue that give every answer.
std::vector<CatalogueMatch> catalogue_matches(const BlackBox& box, const Pool& answers);

}  // namespace guardbit::emulator
