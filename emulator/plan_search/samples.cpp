#include "emulator/plan_search/samples.hpp"

#include <algorithm>
#include <cmath>
#include <set>
#include <span>
#include <utility>

#include "emulator/gemm/scalar.hpp"
#include "emulator/plan_search/plan_evidence.hpp"
#include "formats/support/error.hpp"

namespace guardbit::emulator {

namespace {

/// Indices of at most `count` finite values, those nearest to a tie of the format's rounding first.
std::vector<std::int64_t> near_ties(const CodeMatrix& values, const Format& f, std::size_t count) {
  std::vector<std::pair<double, std::int64_t>> distances;
  for (std::int64_t at = 0; at < values.size(); ++at) {
    const double x = scalar::decoded(values.format, values[at]);
    if (!std::isfinite(x) || x == 0) continue;
    const int exponent = std::max(std::ilogb(x), formats::min_exponent(f));
    const double ulps = std::fabs(std::ldexp(x, f.fraction_bits - exponent));
    const double to_tie = std::fabs(ulps - std::floor(ulps) - 0.5);
    distances.emplace_back(std::ldexp(to_tie, exponent), at);
  }
  count = std::min(count, distances.size());
  std::partial_sort(distances.begin(), distances.begin() + static_cast<std::ptrdiff_t>(count),
                    distances.end());
  std::vector<std::int64_t> indices;
  for (std::size_t i = 0; i < count; ++i) indices.push_back(distances[i].second);
  return indices;
}

/// The outputs that differ most often between plans if D is narrower than the sums: those whose
/// exact value lies nearest to a tie of D's rounding, so that the last bits of a sum decide. If
/// there is an addend, a plan may round the sum before it adds, so that every other output is
/// chosen by the exact sum alone.
std::vector<std::int64_t> critical_outputs(const GemmProblem& problem, const Epilogue& epilogue,
                                           std::size_t count, int threads) {
  const std::vector<std::int64_t> results =
      near_ties(nearly_exact(problem, epilogue, true, threads), epilogue.output, count);
  std::vector<std::int64_t> sums;
  if ((!problem.c.empty() && epilogue.beta != 0) || !problem.bias.empty())
    sums = near_ties(nearly_exact(problem, epilogue, false, threads), epilogue.output, count);
  std::vector<std::int64_t> outputs;
  std::set<std::int64_t> known;
  for (std::size_t i = 0; i < std::max(results.size(), sums.size()); ++i) {
    for (const auto* list : {&results, &std::as_const(sums)})
      if (i < list->size() && known.insert((*list)[i]).second) outputs.push_back((*list)[i]);
  }
  return outputs;
}

/// Rows and columns of D that make up about so many outputs of each batch entry.
Selection2d some_lines(const CodeMatrix& d, std::int64_t outputs) {
  const auto side = static_cast<std::int64_t>(std::sqrt(static_cast<double>(outputs)));
  const std::int64_t rows = std::min(d.rows, std::max(side, outputs / std::max(d.columns, side))),
                     columns = std::min(d.columns, outputs / std::max<std::int64_t>(rows, 1));
  return {spread(d.rows, rows), spread(d.columns, columns)};
}

/// Critical outputs of a whole capture. Of a large one, whose exact values would take seconds, only
/// some rows and columns are looked at.
std::vector<Output> critical_of(const CodeMatrix& d, const GemmProblem& problem,
                                const Epilogue& epilogue, std::size_t count, int threads) {
  constexpr std::int64_t most_products = std::int64_t{1} << 28,
                         products_of_some = std::int64_t{1} << 25;
  const bool is_large = d.size() > most_products / std::max<std::int64_t>(problem.k(), 1);
  const std::int64_t looked_at =
      std::max<std::int64_t>(1024, products_of_some / std::max<std::int64_t>(problem.k(), 1)) /
      d.batch;
  const Selection2d lines = is_large
                                ? some_lines(d, std::max<std::int64_t>(looked_at, 1))
                                : Selection2d{spread(d.rows, d.rows), spread(d.columns, d.columns)};
  const std::vector<std::int64_t> places =
      critical_outputs(is_large ? select(problem, lines) : problem, epilogue, count, threads);
  const std::int64_t rows = std::ssize(lines.rows), columns = std::ssize(lines.columns);
  std::vector<Output> outputs;
  for (const std::int64_t at : places) {
    if (outputs.size() == count) break;
    outputs.push_back({at / (rows * columns),
                       lines.rows[static_cast<std::size_t>(at / columns % rows)],
                       lines.columns[static_cast<std::size_t>(at % columns)]});
  }
  return outputs;
}

bool is_narrow(const Format& d) { return formats::bits(d) <= 16 && !formats::is_integer(d); }

/// Adds the samples that come before all outputs: critical ones if D is narrow, then a grid of rows
/// and columns. The first, which most plans fail, holds outputs of different rows and columns, so
/// that one damaged tile spoils few of it.
void add_samples(const GemmCapture& capture, const GemmProblem& all,
                 const std::vector<Output>& critical, std::deque<Sample>& samples) {
  const std::vector<Output> first =
      critical.empty() ? telling_outputs(capture, 4) : std::vector<Output>{};
  if (!first.empty()) samples.emplace_back(select(all, first), select(capture.d, first));
  for (const std::size_t count : {std::size_t{4}, std::size_t{12}, critical.size()}) {
    const std::span<const Output> few(critical.data(), std::min(count, critical.size()));
    if (!few.empty()) samples.emplace_back(select(all, few), select(capture.d, few));
  }
  for (const std::int64_t side : {3, 8}) {
    if (side == 3 && !critical.empty()) continue;
    const Selection2d selection = {spread(all.m(), side), spread(all.n(), side)};
    samples.emplace_back(select(all, selection), select(capture.d, selection));
  }
}

}  // namespace

bool same_element(const Format& format, std::uint64_t recorded, std::uint64_t computed) {
  if (recorded == computed) return true;
  if (formats::is_integer(format)) return false;
  return formats::decode(format, recorded).kind == formats::Kind::nan &&
         formats::decode(format, computed).kind == formats::Kind::nan;
}

std::int64_t count_mismatches(const CodeMatrix& recorded, const CodeMatrix& computed) {
  std::int64_t count = 0;
  for (std::int64_t i = 0; i < recorded.size(); ++i)
    count += same_element(recorded.format, recorded[i], computed[i]) ? 0 : 1;
  return count;
}

std::shared_ptr<const GemmOperands> PreparedOperands::get(const GemmPlan& plan) {
  const std::scoped_lock lock(mutex_);
  GemmPlan operands;
  operands.unit = plan.unit;
  operands.input = plan.input;
  operands.loads = plan.loads;
  operands.epilogue.alpha = plan.epilogue.alpha;
  operands.epilogue.alpha_on = plan.epilogue.alpha_on;
  if (plan.epilogue.addition == Epilogue::Addition::initial) {
    operands.epilogue.addition = plan.epilogue.addition;
    operands.epilogue.beta = plan.epilogue.beta;
  }
  auto [entry, is_new] = prepared_.try_emplace(to_text(operands));
  if (is_new) {
    try {
      entry->second = std::make_shared<const GemmOperands>(prepare(plan, problem_, "search"));
    } catch (const formats::Error&) {
      entry->second = nullptr;
    }
  }
  return entry->second;
}

std::deque<Lowered> lowered_samples(const GemmCapture& capture, const Candidates& candidates,
                                    int threads) {
  constexpr std::size_t most_critical = 240;
  const CodeMatrix& d = capture.d;
  std::vector<Output> critical;
  std::deque<Lowered> list;
  for (const ConvolutionOrder& walk : candidates.walks) {
    Lowered& x = list.emplace_back();
    x.walk = walk;
    GemmProblem all = capture.lowered(walk);
    if (is_narrow(d.format) && critical.empty()) {
      const GemmPlan unit = candidates.units.empty() ? GemmPlan{} : candidates.units.front();
      critical = critical_of(d, as_multiplied(all, unit), candidates.epilogues.front(),
                             most_critical, threads);
    }
    add_samples(capture, all, critical, x.samples);
    x.samples.emplace_back(std::move(all), d);
  }
  return list;
}

std::vector<bool> near_tie_outputs(const GemmCapture& capture, const GemmPlan& plan, int threads,
                                   std::int64_t fewest) {
  if (!is_narrow(capture.d.format)) return {};
  const auto count = static_cast<std::size_t>(std::max(capture.d.size() / 10, fewest));
  std::vector<std::int64_t> list = critical_outputs(
      as_multiplied(capture.lowered(plan.convolution), plan), plan.epilogue, count, threads);
  std::vector<bool> near(static_cast<std::size_t>(capture.d.size()));
  for (std::size_t i = 0; i < std::min(count, list.size()); ++i)
    near[static_cast<std::size_t>(list[i])] = true;
  return near;
}

}  // namespace guardbit::emulator
