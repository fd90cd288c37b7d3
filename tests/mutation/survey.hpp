#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "tests/mutation/search.hpp"
#include "tests/mutation/unobservable.hpp"

namespace guardbit::tests {

/// What is known about one mutant.
struct Finding {
  Mutant mutant;
  Unobservable unobservable;
  bool by_recording = false;
  bool by_vector = false;

  bool noticed() const { return by_recording || by_vector; }
};

/// All mutants of one arithmetic, or of one kind of sparsity.
struct Survey {
  MatrixInstruction instruction;
  std::vector<const MatrixInstruction*> instructions;
  bool has_recordings = false;
  std::vector<Finding> findings;
};

/// Tries the vectors and the recordings on every mutant of the catalogue.
std::vector<Survey> survey_catalogue(const std::vector<InstructionVectors>& vectors);

/// docs/OBSERVABILITY.md, its text and its place.
std::string observability_page(const std::vector<Survey>& surveys);
std::filesystem::path observability_file();

}  // namespace guardbit::tests
