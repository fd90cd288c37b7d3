#pragma once

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

// What plans are tried on: a problem's outputs in samples, few before many.
namespace guardbit::emulator {

/// The same code, or a NaN both.
bool same_element(const Format& format, std::uint64_t recorded, std::uint64_t computed);

std::int64_t count_mismatches(const CodeMatrix& recorded, const CodeMatrix& computed);

/// Operands by unit and conversion, prepared once.
class Preparations {
 public:
  explicit Preparations(const GemmProblem& problem) : problem_(problem) {}

  /// Null where the unit does not take the problem.
  std::shared_ptr<const GemmOperands> get(const GemmPlan& plan);

 private:
  const GemmProblem& problem_;
  std::mutex mutex_;
  std::map<std::string, std::shared_ptr<const GemmOperands>> prepared_;
};

/// A problem with its answer.
struct Task {
  Task(GemmProblem operands, CodeMatrix answer)
      : problem(std::move(operands)),
        d(std::move(answer)),
        prepared(std::make_unique<Preparations>(problem)) {}
  Task(const Task&) = delete;
  GemmProblem problem;
  CodeMatrix d;
  std::unique_ptr<Preparations> prepared;
};

/// A capture's problem as one walk through K sees it.
struct Lowered {
  ConvolutionOrder walk;
  std::deque<Task> tasks;  ///< more and more outputs, all of them last
};

/// A capture's problem for each walk of the candidates, with samples that tell them apart.
std::deque<Lowered> lowered_tasks(const GemmCapture& capture, const Candidates& candidates,
                                  int threads);

/// Where D is narrower than the sums: the tenth of the outputs whose exact value, of operands as
/// this plan converts them, lies nearest to a tie of D's rounding. Another plan with these operands
/// differs there, and hardly anywhere else. Empty where D is not narrow.
std::vector<bool> near_tie_outputs(const GemmCapture& capture, const GemmPlan& plan, int threads);

}  // namespace guardbit::emulator
