#pragma once

#include <functional>
#include <vector>

#include "emulator/capture/product_capture.hpp"
#include "emulator/gemm/plan.hpp"

namespace guardbit::emulator {

/// What a search asks for next to the operands: plans are tried stage after stage.
struct Candidates {
  /// Everything of a plan but the order of reductions and the epilogue. Each is asked once, in
  /// order: a plan of an earlier stage is not given again.
  std::vector<std::function<std::vector<GemmPlan>()>> stages;
  std::size_t simple_stages = 0;  ///< the last stage of those without splits
  /// Could any order of the sums give the result? False where it lies far from exact products.
  bool plausible = true;
  /// Every unit and conversion that the stages know, in plans of nothing else.
  std::vector<GemmPlan> units;
  /// Of convolutions, the likely first; of products, one.
  std::vector<ConvolutionOrder> walks;
  /// Reductions of each plan that has several accumulators.
  std::vector<SumOrder> orders;
  std::vector<Format> workspaces;
  std::vector<Epilogue> epilogues;
};

/// The neighbourhood of what libraries are known to do with such operands, likely plans first. The
/// capture must live as long as the candidates.
Candidates candidates_for(const GemmCapture& capture);

}  // namespace guardbit::emulator
