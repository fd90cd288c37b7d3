#pragma once

#include "emulator/gemm/gemm.hpp"

namespace guardbit::emulator {

/// Sums over parts of K as one thread block makes them: lanes, and the chains of each.
class SliceSum {
 public:
  SliceSum(const GemmPlan& plan, const GemmOperands& x, const GemmProblem& problem, int threads)
      : plan_(plan), x_(x), problem_(problem), threads_(threads) {}

  /// `first`: of the part that begins with C, where the plan says so.
  Sums operator()(const KRanges& slice, bool first) const;

 private:
  Sums accumulator(const KRanges& ranges, bool first) const;
  Sums chain(const GemmOperands& x, const KRanges& ranges, bool first, bool promoted) const;
  Sums scaled_pieces(const KRanges& ranges, bool first) const;
  Sums integer_slices(const KRanges& ranges) const;

  const GemmPlan& plan_;
  const GemmOperands& x_;
  const GemmProblem& problem_;
  int threads_;
};

/// The sums of a plan with stream-K: each tile's shares, added.
Sums stream_k_sums(const GemmPlan& plan, const GemmOperands& x, const GemmProblem& problem,
                   int threads);

}  // namespace guardbit::emulator
