#pragma once

// Splits of K whose partial sums are rounded to 16 bits: kept in a workspace of D's format until a
// second kernel adds them, or added in D itself. Such results are right, but further from the exact
// product than sums in FP32 are; how far, the partition of K says.

#include <optional>

#include "emulator/faults/fault.hpp"
#include "emulator/faults/product_numbers.hpp"
#include "emulator/gemm/plan.hpp"

namespace guardbit::emulator {

struct RoundedParts {
  /// `order`: in_place where D takes one part after the other; `sums`: what parts are rounded to
  Partition split;
  /// of the magnitudes: no output is further from the exact product by the roundings of parts
  double unit = 0;
};

/// The split of K that most outputs show: with its parts rounded they come out to the last bit,
/// where other splits give those that chance lets them. Nothing where no split stands out.
std::optional<RoundedParts> find_rounded_parts(const ProductNumbers& x);
Fault rounded_parts_fault(const RoundedParts& parts, std::int64_t k);

}  // namespace guardbit::emulator
