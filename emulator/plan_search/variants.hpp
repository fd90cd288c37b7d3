#pragma once

// What a wrong kernel computed instead of what was asked, found without a plan: by the distance of
// the result from nearly exact products. Input: a capture that no plan explains. Output: a changed
// problem, whose plans the caller may search.

#include <optional>
#include <string>
#include <vector>

#include "emulator/capture/product_capture.hpp"
#include "emulator/gemm/plan.hpp"

namespace guardbit::emulator {

/// Elements of K that may be missing from the recorded outputs.
struct MissingRange {
  KRange range;
  /// sum of squared errors without these elements, over the sum with them
  double share = 1;
};

/// The eight ranges of K with the smallest shares, the smallest first. Tails of any length; other
/// ranges begin and end at multiples of 8 elements, or of about K / 512 if that is more.
std::vector<MissingRange> missing_ranges(const GemmProblem& outputs, const CodeMatrix& recorded,
                                         const Epilogue& epilogue);

/// A problem other than the one that was asked for.
struct Variant {
  std::string name;
  GemmCapture capture;
};

/// The variant that the recorded result fits far better than the problem that was asked: C, the
/// bias or a factor left out, another factor, elements of K left out, or D stored transposed. Empty
/// if the squared errors stay above a sixteenth, or if fewer than eight outputs are numbers.
std::optional<Variant> likely_variant(const GemmCapture& capture);

}  // namespace guardbit::emulator
