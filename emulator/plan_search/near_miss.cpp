#include "emulator/plan_search/near_miss.hpp"

#include <algorithm>
#include <cmath>
#include <set>

#include "emulator/capture/capture.hpp"
#include "emulator/gemm/scalar.hpp"

namespace guardbit::emulator {

namespace {

/// Squares of 8 x 8 outputs that hold a mismatch.
std::int64_t failed_cells(const CodeMatrix& recorded, const CodeMatrix& computed) {
  std::set<std::int64_t> cells;
  for (std::int64_t at = 0; at < recorded.size(); ++at) {
    if (same_element(recorded.format, recorded[at], computed[at])) continue;
    const std::int64_t line = at / recorded.columns;
    cells.insert((line / recorded.rows * recorded.rows + line % recorded.rows / 8) *
                     recorded.columns +
                 at % recorded.columns / 8);
  }
  return std::ssize(cells);
}

/// True if no order of the sums takes an output this far from what a plan gives. Each of K
/// roundings errs by less than an ulp of the kept bits: 13 for products of 8-bit operands, 10 for
/// FP16 sums. The bound is far below K ulps, since errors cancel.
bool is_out_of_reach(double alpha, const GemmProblem& problem, const Output& at, double recorded,
                     double computed, const Format& sums) {
  double magnitude = 0;
  for (std::int64_t k = 0; k < problem.k(); ++k)
    magnitude += std::fabs(scalar::decoded(problem.a.format, problem.a(at.batch, at.row, k)) *
                           scalar::decoded(problem.b.format, problem.b(at.batch, k, at.column)));
  const bool few_bits = formats::bits(problem.a.format) == 8 || sums == formats::fp16;
  const double bound = std::fabs(alpha) * magnitude * (few_bits ? 0x1p-6 : 0x1p-12);
  return !(std::fabs(recorded - computed) <= bound);  // true for a NaN
}

}  // namespace

void describe_mismatches(const GemmCapture& capture, const Sample& sample,
                         const CodeMatrix& computed, const Format& sums, int threads,
                         NearMiss& near_miss) {
  const CodeMatrix& recorded = sample.d;
  const std::vector<bool> near_tie = near_tie_outputs(capture, near_miss.result.plan, threads);
  constexpr std::size_t most_failed = 6;
  near_miss.cells = failed_cells(recorded, computed);
  const std::int64_t step =
      std::max<std::int64_t>(1, near_miss.result.mismatches / std::int64_t{most_failed});
  std::int64_t count = 0;
  for (std::int64_t at = 0; at < recorded.size(); ++at) {
    if (same_element(recorded.format, recorded[at], computed[at])) continue;
    const auto distance = code_distance(recorded.format, recorded[at], computed[at]);
    near_miss.far += distance.value_or(0) > 16 ? 1 : 0;
    if (count++ % step == 0 && near_miss.failed.size() < most_failed) {
      near_miss.failed.push_back({at / (recorded.rows * recorded.columns),
                                  at / recorded.columns % recorded.rows, at % recorded.columns});
      const bool out_of_reach =
          is_out_of_reach(capture.alpha, sample.problem, near_miss.failed.back(),
                          scalar::decoded(recorded.format, recorded[at]),
                          scalar::decoded(computed.format, computed[at]), sums);
      near_miss.out_of_reach += out_of_reach ? 1 : 0;
    }
    const bool tie = !near_tie.empty() && near_tie[static_cast<std::size_t>(at)];
    near_miss.off_ties += tie ? 0 : 1;
  }
}

bool nearly_explains(const NearMiss& x, const GemmCapture& capture) {
  const CodeMatrix& d = capture.d;
  const std::int64_t mismatches = x.result.mismatches;
  const std::int64_t cells = d.batch * ((d.rows + 7) / 8) * ((d.columns + 7) / 8);
  // Among thousands of plans, one gives most of a handful of outputs by chance.
  constexpr std::int64_t fewest_matches = 24;
  if (d.size() - mismatches < fewest_matches) return false;
  if (mismatches * 4 > d.size() || (x.cells * 4 > cells && mismatches > 3)) return false;
  const bool narrow = formats::bits(d.format) <= 16 && !formats::is_integer(d.format);
  return !narrow || std::max(x.far, x.off_ties) * 2 > mismatches;
}

}  // namespace guardbit::emulator
