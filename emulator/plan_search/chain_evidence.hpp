#pragma once

// Where the first chain over K ends, as the result itself says. Input: a capture. Output: which
// plans it refutes before they are executed.
//
// A multiply-add rounds, and its error is known as soon as the sum before it is: it does not depend
// on what is added later. D minus the exact result is the sum of all these errors. So the errors of
// a chain that begins at k = 0 are correlated with D's as long as the kernel's chain goes on in the
// same way, and are not correlated any more from where it ends.

#include <cstdint>
#include <optional>

#include "emulator/capture/product_capture.hpp"
#include "emulator/gemm/plan.hpp"

namespace guardbit::emulator {

/// Bounds of the number of elements 0, 1, 2, ... of K that one accumulator takes before anything
/// else.
struct LeadingRun {
  std::int64_t least = 0, most = 0;
  /// D's errors are those of such a chain beyond doubt: no unit that adds in another way made them
  bool is_proved = false;
  bool contains(std::int64_t length) const { return least <= length && length <= most; }
};

class ChainEvidence {
 public:
  /// Looks at some rows and columns of the first batch entry. Matrix units truncate, so that their
  /// errors lean to one side and prove less: their plans are refuted only where D proves
  /// multiply-adds.
  explicit ChainEvidence(const GemmCapture& capture);

  bool refutes(const GemmPlan& plan) const;

  /// of chains of FP32 multiply-adds that round once or round each product; empty: not known
  const std::optional<LeadingRun>& fused() const { return fused_; }
  const std::optional<LeadingRun>& rounded_products() const { return rounded_products_; }

 private:
  std::int64_t k_ = 0;
  std::optional<LeadingRun> fused_, rounded_products_;
};

/// The same of a plan; empty where the plan takes K in another order or cuts each tile of D in its
/// own way.
std::optional<std::int64_t> leading_run(const GemmPlan& plan, std::int64_t k);

}  // namespace guardbit::emulator
