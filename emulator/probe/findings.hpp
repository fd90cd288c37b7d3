#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "emulator/model/instruction.hpp"
#include "emulator/probe/black_box.hpp"

// The report on an arithmetic that reproduces all answers: per field, its value, the values that
// the answers do not exclude, and the nearest one that they do.
namespace guardbit::emulator {

/// The value of one field of the arithmetic, and the evidence for it.
struct Finding {
  /// "kept_fraction_bits"
  std::string field;
  /// "25"
  std::string value;
  /// values that no answer excludes: "-999..-20"; empty if there are none
  std::string others;
  /// why these are not excluded
  std::string reason;
  /// the nearest value that an answer excludes
  std::string nearest_rejected;
  /// index in `answers` of that answer, if there is such a value
  std::size_t proof = 0;
  /// the answer that a unit with the rejected value would give
  std::uint64_t otherwise = 0;
};

/// Instructions of the catalogue that compute alike.
struct CatalogueMatch {
  /// that one dot product of the unit takes, each adding to the result of the one before
  int executions = 1;
  std::vector<const MatrixInstruction*> instructions;
};

/// One finding for each field that has more than one possible value.
std::vector<Finding> findings_of(const MatrixInstruction& instruction,
                                 const std::vector<Answered>& answers);

/// The structure in words: "fused in blocks of 4, 2 steps".
std::string structure_text(const MatrixInstruction& instruction);

/// Instructions of the catalogue that reproduce every answer, grouped by arithmetic and length.
std::vector<CatalogueMatch> catalogue_matches(const BlackBox& box,
                                              const std::vector<Answered>& answers);

}  // namespace guardbit::emulator
