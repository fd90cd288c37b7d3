#include "emulator/gemm/part_sum.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "emulator/gemm/scalar.hpp"
#include "emulator/gemm/stream_k.hpp"
#include "formats/codec.hpp"

namespace guardbit::emulator {

namespace {

using Cut = InputConversion::Cut;

/// Neighbouring rows or columns that lie in one tile of the whole product.
struct Run {
  std::int64_t begin = 0, count = 0;
};

/// The outputs of the problem by tile.
std::vector<OutputBlock> blocks_of(const StreamK& x, const GemmProblem& problem) {
  const auto runs = [](std::int64_t count, auto&& tile_at) {
    std::vector<Run> list;
    for (std::int64_t i = 0; i < count; ++i) {
      if (i == 0 || tile_at(i) != tile_at(i - 1)) list.push_back({i, 0});
      ++list.back().count;
    }
    return list;
  };
  std::vector<OutputBlock> blocks;
  for (std::int64_t g = 0; g < problem.a.batch; ++g) {
    const auto rows =
        runs(problem.m(), [&](std::int64_t i) { return problem.place(g, i, 0).row / x.tile_m; });
    const auto columns =
        runs(problem.n(), [&](std::int64_t j) { return problem.place(g, 0, j).column / x.tile_n; });
    for (const Run& r : rows)
      for (const Run& c : columns) blocks.push_back({g, 1, r.begin, r.count, c.begin, c.count});
  }
  return blocks;
}

}  // namespace

Sums PartSum::operator()(const KRanges& part, bool first) const {
  std::vector<Sums> slices;
  for (const KRanges& slice : divide(plan_.slices, part))
    slices.push_back(accumulator(slice, first && slices.empty()));
  return add_up(plan_.slices, plan_.epilogue.compute, std::move(slices));
}

Sums PartSum::accumulator(const KRanges& ranges, bool first) const {
  if (plan_.input.has_integer_slices()) return integer_slices(ranges);
  if (plan_.input.cut == Cut::scaled_rest) return scaled_pieces(ranges, first);
  return chain(x_, ranges, first, true);
}

/// In elements of the expanded K.
GemmPlan PartSum::expanded_plan(const GemmOperands& x, bool promoted) const {
  GemmPlan scaled = plan_;
  scaled.residue_first = x.place_of(plan_.residue_first);
  scaled.promotion.interval = promoted ? x.place_of(plan_.promotion.interval) : 0;
  return scaled;
}

Sums PartSum::chain(const GemmOperands& x, const KRanges& ranges, bool first, bool promoted) const {
  KRanges expanded = ranges;
  for (KRange& range : expanded) range = {x.place_of(range.begin), x.place_of(range.end)};
  return Chain(expanded_plan(x, promoted), x, problem_, execution_).run(expanded, first);
}

void PartSum::run_into(CodeMatrix& sums, std::int64_t g, std::int64_t i, std::int64_t j) const {
  const KRanges all = {{0, x_.place_of(x_.k())}};
  Chain(expanded_plan(x_, true), x_, problem_, execution_).run_into(all, true, sums, g, i, j);
}

Sums PartSum::scaled_pieces(const KRanges& ranges, bool first) const {
  const auto weight = static_cast<float>(std::ldexp(1.0, -plan_.input.shift));
  std::vector<float> sums;
  const auto add = [&](const Sums& next) {
    const bool adds = !sums.empty();
    sums.resize(next.size());
    for (std::size_t i = 0; i < sums.size(); ++i) {
      const auto x = static_cast<float>(next[i]);
      sums[i] = adds ? std::fma(sums[i], weight, x) : x;
    }
  };
  for (const PieceProducts& other : x_.apart) add(chain(other.operands, ranges, false, false));
  if (sums.empty()) return chain(x_, ranges, first, true);
  add(chain(x_, ranges, first, true));
  return sums;
}

Sums PartSum::integer_slices(const KRanges& ranges) const {
  const Format f = plan_.epilogue.compute;
  const int slice_bits = formats::bits(x_.instruction->a) - 1;
  const std::int64_t m = x_.a.rows, n = x_.b.columns;
  std::vector<double> sums(static_cast<std::size_t>(x_.a.batch * m * n));
  for (const PieceProducts& other : x_.apart) {
    const Sums product = chain(other.operands, ranges, false, false);
    for (std::size_t at = 0; at < sums.size(); ++at) {
      const auto i = static_cast<std::int64_t>(at) / n, j = static_cast<std::int64_t>(at) % n;
      const int of_a = x_.a_exponents[static_cast<std::size_t>(i)];
      const int of_b = x_.b_exponents[static_cast<std::size_t>(i / m * n + j)];
      const bool finite = of_a != no_exponent && of_b != no_exponent;
      const double value =
          finite ? std::ldexp(product[at], of_a + of_b - slice_bits * (other.rank + 2)) : NAN;
      sums[at] = scalar::add(f, sums[at], scalar::rounded(f, value));
    }
  }
  return sums;
}

Sums stream_k_sums(const GemmPlan& plan, const GemmOperands& x, const GemmProblem& problem,
                   const Execution& execution) {
  const Origin whole = problem.whole();
  const TileOrder order(plan.stream_k, whole.batch, whole.m, whole.n);
  Partition sum_of_shares;
  sum_of_shares.order = plan.stream_k.order;
  sum_of_shares.sums = plan.stream_k.sums;
  const std::int64_t m = problem.m(), n = problem.n();
  std::vector<double> sums(static_cast<std::size_t>(problem.a.batch * m * n));
  for (const OutputBlock& block : blocks_of(plan.stream_k, problem)) {
    const std::int64_t tile = order.tile_of(problem.place(block.g, block.i, block.j));
    const GemmOperands operands = part(x, block);
    const GemmProblem of_block = part(problem, block);
    const PartSum part_sum(plan, operands, of_block, execution);
    std::vector<Sums> shares;
    for (const KRange& range : stream_k_cuts(plan.stream_k, order.count(), tile, x.k()))
      shares.push_back(part_sum({range}, shares.empty()));
    if (execution.stop != nullptr && (*execution.stop)()) break;
    const Sums of_tile = add_up(sum_of_shares, plan.epilogue.compute, std::move(shares));
    for (std::int64_t i = 0; i < block.rows; ++i)
      for (std::int64_t j = 0; j < block.columns; ++j)
        sums[static_cast<std::size_t>((block.g * m + block.i + i) * n + block.j + j)] =
            of_tile[static_cast<std::size_t>(i * block.columns + j)];
  }
  return sums;
}

}  // namespace guardbit::emulator
