#pragma once

// What the plan search tries. Input: a capture. Output: stages of plans, likely ones first, each
// stage a product of units (units.hpp, ordered by plan_evidence.hpp) and partitions of K
// (partitions.hpp) that D does not refute (chain_evidence.hpp); and the orders of sums and
// epilogues that complete each plan.

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "emulator/capture/product_capture.hpp"
#include "emulator/gemm/plan.hpp"

namespace guardbit::emulator {

/// Plans that are tried together: without an order of partial sums and without an epilogue.
struct CandidateStage {
  /// "K split over thread blocks, by other units"
  std::string name;
  std::function<std::vector<GemmPlan>()> plans;
};

struct Candidates {
  /// Call `plans` of each once and in order: it leaves out what an earlier stage gave.
  std::vector<CandidateStage> stages;
  /// index of the last stage that does not partition K
  std::size_t simple_stages = 0;
  /// False if the result lies further from the exact product than rounding can take it.
  bool plausible = true;
  /// every unit and conversion in the stages, as plans of only that
  std::vector<GemmPlan> units;
  /// likely ones first; a matrix product has one
  std::vector<ConvolutionOrder> walks;
  /// of a plan's partial sums
  std::vector<SumOrder> orders;
  /// formats in which partial sums are stored
  std::vector<Format> workspaces;
  std::vector<Epilogue> epilogues;
};

/// What libraries are known to do with operands like the capture's. The capture must outlive the
/// result. `shown`: a split of K that the result itself shows. formats::Error if its machine is
/// unknown.
Candidates candidates_for(const GemmCapture& capture, std::optional<Partition> shown = {});

}  // namespace guardbit::emulator
