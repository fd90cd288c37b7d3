#pragma once

// The outputs that the plan search tries its plans on. Input: a capture. Output: samples of its
// problem, small ones first and all outputs last. The first samples hold the outputs that differ
// most often from plan to plan, so that most wrong plans fail at little cost.

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "emulator/capture/product_capture.hpp"
#include "emulator/gemm/gemm.hpp"
#include "emulator/plan_search/candidates.hpp"

namespace guardbit::emulator {

/// True for equal codes, and for two NaNs of any codes.
bool same_element(const Format& format, std::uint64_t recorded, std::uint64_t computed);

/// Both matrices have the same format and shape.
std::int64_t count_mismatches(const CodeMatrix& recorded, const CodeMatrix& computed);

/// The operands of one problem, converted once for each unit and conversion. Any number of threads
/// may ask at once.
class PreparedOperands {
 public:
  explicit PreparedOperands(const GemmProblem& problem) : problem_(problem) {}

  /// Null if the plan's unit cannot take the problem.
  std::shared_ptr<const GemmOperands> get(const GemmPlan& plan);

 private:
  const GemmProblem& problem_;
  std::mutex mutex_;
  std::map<std::string, std::shared_ptr<const GemmOperands>> prepared_;
};

/// Some outputs of a product: their operands and what was recorded for them.
struct Sample {
  Sample(GemmProblem operands, CodeMatrix recorded)
      : problem(std::move(operands)),
        d(std::move(recorded)),
        prepared(std::make_unique<PreparedOperands>(problem)) {}
  Sample(const Sample&) = delete;
  GemmProblem problem;
  CodeMatrix d;
  std::unique_ptr<PreparedOperands> prepared;
};

/// A capture as a matrix product, with K in one order: a convolution is lowered by `walk`.
struct Lowered {
  ConvolutionOrder walk;
  /// at least four, ever more outputs; the last one holds all of D
  std::deque<Sample> samples;
};

/// One entry for each of `candidates.walks`, in their order.
std::deque<Lowered> lowered_samples(const GemmCapture& capture, const Candidates& candidates,
                                    int threads);

/// Marks the tenth of D, or the `fewest` outputs, whose exact values lie nearest to a tie of D's
/// rounding, for operands as the plan converts them. If D is narrower than the sums, another plan
/// with these operands differs there and hardly anywhere else. One flag for each output; empty if D
/// has more than 16 bits.
std::vector<bool> near_tie_outputs(const GemmCapture& capture, const GemmPlan& plan, int threads,
                                   std::int64_t fewest = 0);

}  // namespace guardbit::emulator
