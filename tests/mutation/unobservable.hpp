#pragma once

#include <string>

#include "tests/mutation/mutants.hpp"

namespace guardbit::tests {

/// Why no vector can notice a mutant.
struct Unobservable {
  /// empty: it must be noticed
  std::string reason;
  /// the oracle does not know, a recording of the device may
  bool recording_may_tell = false;

  explicit operator bool() const { return !reason.empty(); }
};

/// The proofs: NUMERICS 1.3 and its relatives. A mutant that they do not cover must be noticed by a
/// committed vector, one that they cover must survive every search.
Unobservable unobservable(const MatrixInstruction& instruction, const Mutant& mutant);

}  // namespace guardbit::tests
