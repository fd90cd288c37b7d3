#pragma once

#include <cstdint>

#include "emulator/gemm/gemm.hpp"

namespace guardbit::emulator {

/// Can the unit take every chain of the plan? Not where it cannot be chained and one is longer than
/// its K; of stream-K any share may be the whole K.
bool chains_fit(const GemmPlan& plan, const GemmOperands& x);

/// Chains of a plan's unit over some k's, for one set of operands.
class Chain {
 public:
  Chain(const GemmPlan& plan, const GemmOperands& x, const GemmProblem& problem, int threads)
      : plan_(plan), x_(x), problem_(problem), threads_(threads) {}

  /// The accumulators after these k's, from zero, or from C where the plan says so of the first.
  Sums run(const KRanges& ranges, bool first) const;

 private:
  Sums run_promoted(const KRanges& ranges, bool begins_with_c) const;

  void promote(const Sums& partial, std::int64_t k, Sums& sums) const;
  Sums run_row(const KRanges& ranges, bool begins_with_c) const;
  Sums run_scalar(const KRanges& ranges) const;
  /// One dot product for each batch entry.
  template <class Real>
  Sums run_dots(const KRanges& ranges) const;
  template <class Real>
  Sums run_fma(const KRanges& ranges) const;

  std::int64_t outputs() const { return x_.a.batch * problem_.m() * problem_.n(); }

  const GemmPlan& plan_;
  const GemmOperands& x_;
  const GemmProblem& problem_;
  int threads_;
};

}  // namespace guardbit::emulator
