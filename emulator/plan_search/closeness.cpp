#include "emulator/plan_search/closeness.hpp"

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

/// Is an output further from what a plan gives than another order of its sums could take it? Each
/// of K roundings errs by less than a unit in the last of the bits that are kept, of 13 for
/// products of 8 bits and 10 for FP16 sums; orders of magnitude less, as they cancel.
bool is_beyond(double alpha, const GemmProblem& problem, const Output& at, double recorded,
               double computed, const Format& sums) {
  double magnitude = 0;
  for (std::int64_t k = 0; k < problem.k(); ++k)
    magnitude += std::fabs(scalar::decoded(problem.a.format, problem.a(at.batch, at.row, k)) *
                           scalar::decoded(problem.b.format, problem.b(at.batch, k, at.column)));
  const bool few_bits = formats::bits(problem.a.format) == 8 || sums == formats::fp16;
  const double bound = std::fabs(alpha) * magnitude * (few_bits ? 0x1p-6 : 0x1p-12);
  return !(std::fabs(recorded - computed) <= bound);  // a NaN is
}

}  // namespace

void describe_mismatches(const GemmCapture& capture, const Task& task, const CodeMatrix& computed,
                         const Format& sums, int threads, Close& close) {
  const CodeMatrix& recorded = task.d;
  const std::vector<bool> near_tie = near_tie_outputs(capture, close.result.plan, threads);
  constexpr std::size_t most_failed = 6;
  close.cells = failed_cells(recorded, computed);
  const std::int64_t step =
      std::max<std::int64_t>(1, close.result.mismatches / std::int64_t{most_failed});
  std::int64_t count = 0;
  for (std::int64_t at = 0; at < recorded.size(); ++at) {
    if (same_element(recorded.format, recorded[at], computed[at])) continue;
    const auto distance = code_distance(recorded.format, recorded[at], computed[at]);
    close.far += distance.value_or(0) > 16 ? 1 : 0;
    if (count++ % step == 0 && close.failed.size() < most_failed) {
      close.failed.push_back({at / (recorded.rows * recorded.columns),
                              at / recorded.columns % recorded.rows, at % recorded.columns});
      const bool beyond = is_beyond(capture.alpha, task.problem, close.failed.back(),
                                    scalar::decoded(recorded.format, recorded[at]),
                                    scalar::decoded(computed.format, computed[at]), sums);
      close.beyond += beyond ? 1 : 0;
    }
    const bool tie = !near_tie.empty() && near_tie[static_cast<std::size_t>(at)];
    close.off_ties += tie ? 0 : 1;
  }
}

bool nearly_explains(const Close& x, const GemmCapture& capture) {
  const CodeMatrix& d = capture.d;
  const std::int64_t mismatches = x.result.mismatches;
  const std::int64_t cells = d.batch * ((d.rows + 7) / 8) * ((d.columns + 7) / 8);
  // One of thousands of plans gives most of a handful of outputs by chance.
  constexpr std::int64_t fewest_matches = 24;
  if (d.size() - mismatches < fewest_matches) return false;
  if (mismatches * 4 > d.size() || (x.cells * 4 > cells && mismatches > 3)) return false;
  const bool narrow = formats::bits(d.format) <= 16 && !formats::is_integer(d.format);
  return !narrow || std::max(x.far, x.off_ties) * 2 > mismatches;
}

}  // namespace guardbit::emulator
