#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "emulator/gemm/gemm_operands.hpp"
#include "emulator/gemm/sums.hpp"

// A chain is the smallest part of a plan: elements of K that one accumulator of the unit takes in
// order.
namespace guardbit::emulator {

struct Engine;

/// How chains are run.
struct Execution {
  /// of the unit; null: the first model that takes it
  const Engine* engine = nullptr;
  /// 0: all
  int threads = 0;
  /// as MatrixProduct's
  const std::function<bool()>* stop = nullptr;
};

/// Does the adder of promoted sums take the scales of A and B, so that the epilogue does not?
inline bool takes_scales(const Promotion& promotion) {
  return promotion.interval != 0 && promotion.adder != Promotion::Adder::add;
}

/// How many k's there are.
std::int64_t length_of(const KRanges& ranges);
/// The k's of each promoted chain of an accumulator.
std::vector<KRanges> intervals_of(const Promotion& promotion, const KRanges& ranges);

/// Chains of a plan's unit over some k's, for one set of operands.
class Chain {
 public:
  Chain(const GemmPlan& plan, const GemmOperands& x, const GemmProblem& problem,
        const Execution& execution)
      : plan_(plan), x_(x), problem_(problem), execution_(execution) {}

  /// The accumulators after these k's, from zero, or from C where the plan says so of the first.
  Sums run(const KRanges& ranges, bool first) const;

  /// The same of a plan without promotion and an instruction whose accumulators are as `sums`'s
  /// elements: written to the block of `sums` that begins at (g, i, j).
  void run_into(const KRanges& ranges, bool first, CodeMatrix& sums, std::int64_t g, std::int64_t i,
                std::int64_t j) const;

 private:
  /// D of every batch entry.
  struct Target {
    std::byte* data = nullptr;
    std::int64_t batch_stride = 0, row_stride = 0;
  };

  KRanges ordered(const KRanges& ranges) const;
  Sums run_promoted(const KRanges& ranges, bool begins_with_c) const;
  void promote(const Sums& partial, std::int64_t place, std::span<float> sums) const;
  Sums run_instruction(const KRanges& ranges, bool begins_with_c) const;
  void run_instruction(const KRanges& ranges, bool begins_with_c, const Target& to) const;
  Sums run_scalar(const KRanges& ranges) const;
  /// Products rounded to a narrower format than their FP32 sum.
  Sums run_narrow(const KRanges& ranges) const;
  /// Rounded products, added as a tree of neighbours.
  Sums run_tree(const KRanges& ranges) const;
  /// One dot product for each batch entry.
  template <class Real>
  Sums run_dots(const KRanges& ranges) const;
  template <class Real>
  Sums run_fma(const KRanges& ranges) const;
  /// Products of a row of A, one after the other.
  template <class Real>
  void add_products(std::int64_t line, const KRange& range, Real* sums) const;

  std::int64_t m() const { return x_.a.rows; }
  std::int64_t n() const { return x_.b.columns; }
  std::int64_t outputs() const { return x_.a.batch * m() * n(); }
  bool is_stopped() const { return execution_.stop != nullptr && (*execution_.stop)(); }

  const GemmPlan& plan_;
  const GemmOperands& x_;
  const GemmProblem& problem_;
  const Execution& execution_;
};

}  // namespace guardbit::emulator
