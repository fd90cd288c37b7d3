#pragma once

#include "emulator/gemm/gemm.hpp"

// What one thread block sums: a part of a split, or a share of stream-K.
namespace guardbit::emulator {

/// The sum of one part of K as one thread block makes it: its slices, and the chains of each.
class PartSum {
 public:
  PartSum(const GemmPlan& plan, const GemmOperands& x, const GemmProblem& problem,
          const Execution& execution)
      : plan_(plan), x_(x), problem_(problem), execution_(execution) {}

  /// `first`: of the part that begins with C, where the plan says so.
  Sums operator()(const KRanges& part, bool first) const;
  /// The same of all of K, of a plan that has one chain without promotion, as Chain::run_into.
  void run_into(CodeMatrix& sums, std::int64_t g, std::int64_t i, std::int64_t j) const;

 private:
  Sums accumulator(const KRanges& ranges, bool first) const;
  GemmPlan expanded_plan(const GemmOperands& x, bool promoted) const;
  Sums chain(const GemmOperands& x, const KRanges& ranges, bool first, bool promoted) const;
  Sums scaled_pieces(const KRanges& ranges, bool first) const;
  Sums integer_slices(const KRanges& ranges) const;

  const GemmPlan& plan_;
  const GemmOperands& x_;
  const GemmProblem& problem_;
  const Execution& execution_;
};

/// The sums of a plan with stream-K: each tile's shares, added.
Sums stream_k_sums(const GemmPlan& plan, const GemmOperands& x, const GemmProblem& problem,
                   const Execution& execution);

}  // namespace guardbit::emulator
