#pragma once

#include <optional>
#include <string>
#include <vector>

#include "emulator/capture/product_capture.hpp"
#include "emulator/gemm/plan.hpp"

// What a wrong kernel may have computed instead of what was asked, seen from exact products alone.
namespace guardbit::emulator {

/// Elements of K that outputs may have been computed without.
struct MissingRange {
  KRange range;
  double share = 1;  ///< what is left of the errors' squares when these elements are left out
};

/// The ranges of K whose products, left out, come nearest to the recorded outputs; the nearest
/// first. Tails of any length, else multiples of an eighth of a 64th of K, 8 elements at least.
std::vector<MissingRange> missing_ranges(const GemmProblem& outputs, const CodeMatrix& recorded,
                                         const Epilogue& epilogue);

/// Another problem than was asked, with its name.
struct Variant {
  std::string name;
  GemmCapture capture;
};

/// The variant whose exact result lies far nearer to the recorded one than that of what was asked:
/// C, the bias or a factor left out, another factor, elements of K left out, a result stored
/// transposed. Empty where none does, and where fewer than eight outputs can be looked at: rounding
/// takes results in other directions than that.
std::optional<Variant> likely_variant(const GemmCapture& capture);

}  // namespace guardbit::emulator
