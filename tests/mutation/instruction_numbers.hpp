#pragma once

#include <limits>

#include "emulator/model/instruction.hpp"

/// What the numbers of an instruction are multiples of, and how small they get (NUMERICS 1.3): what
/// the proofs of unobservability stand on.
namespace guardbit::tests {

using emulator::MatrixInstruction;
using emulator::Source;
using emulator::Step;
using formats::Format;

/// The unit of what is always zero.
inline constexpr int never = std::numeric_limits<int>::max() / 2;

const Step& step_of(const MatrixInstruction& instruction, int index);

/// Exponent of the smallest positive number: every number of the format is a multiple of it.
int unit_of(const Format& f);

int product_unit(const MatrixInstruction& instruction);

/// The largest exponent that a product is aligned by.
int highest_product(const MatrixInstruction& instruction);

/// The step's result format with the fraction bits that it keeps.
Format kept_format(const Step& step);

int source_unit(const MatrixInstruction& instruction, Source source);

/// The exact sum of a step, before its rounding, is a multiple of 2^this.
int sum_unit(const MatrixInstruction& instruction, int index);

/// Does a fused step with at least `kept` fraction bits never cut a nonzero bit?
bool never_cuts(const MatrixInstruction& instruction, int index, int kept);

/// Is no result of the step subnormal, even without flushing? Chains and additions whose sums are
/// never that small keep every -0 that they are given and make none.
bool never_underflows(const MatrixInstruction& instruction, int index);

/// Is a zero that the source gives always +0?
bool zero_is_positive(const MatrixInstruction& instruction, Source source);

/// Can the source hand on a subnormal number?
bool gives_subnormals(const MatrixInstruction& instruction, Source source);

}  // namespace guardbit::tests
