#pragma once

#include <string>
#include <vector>

#include "emulator/probe_answers.hpp"

// What the answers say about an arithmetic that gives them all.
namespace guardbit::emulator {

/// Every field's value, what cannot be told from it, and the nearest value that is ruled out.
std::vector<Finding> findings_of(const MatrixInstruction& row, const Pool& answers);

/// Other structures with the same fields that give every answer.
std::vector<std::string> alike_structures(const MatrixInstruction& row,
                                          const std::vector<MatrixInstruction>& structures,
                                          const Pool& answers);

/// Rows of the catalogue that give every answer; `nans_alike`: but for signs and payloads of NaNs.
std::vector<CatalogueMatch> catalogue_matches(const BlackBox& box, const Pool& answers,
                                              bool nans_alike);

}  // namespace guardbit::emulator
