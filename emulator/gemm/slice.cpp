#include "emulator/gemm/slice.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "emulator/gemm/chain.hpp"
#include "emulator/gemm/scalar.hpp"
#include "emulator/gemm/stream_k.hpp"
#include "formats/codec.hpp"

namespace guardbit::emulator {

namespace {

using Cut = InputConversion::Cut;

/// Rows and columns of one batch entry that lie in one tile of the whole product.
struct Block {
  std::int64_t g = 0;
  std::vector<std::int64_t> rows, columns;
};

CodeMatrix part_of(const CodeMatrix& from, const Block& block, bool by_rows) {
  if (from.empty()) return {};
  const std::vector<std::int64_t>& list = by_rows ? block.rows : block.columns;
  CodeMatrix to = by_rows ? make_matrix(from.format, 1, std::ssize(list), from.columns)
                          : make_matrix(from.format, 1, from.rows, std::ssize(list));
  const std::int64_t g = from.batch == 1 ? 0 : block.g;
  for (std::int64_t i = 0; i < to.rows; ++i)
    for (std::int64_t j = 0; j < to.columns; ++j)
      copy_element(from,
                   from.index(g, by_rows ? list[static_cast<std::size_t>(i)] : i,
                              by_rows ? j : list[static_cast<std::size_t>(j)]),
                   to, to.index(0, i, j));
  return to;
}

/// Entries of a list that has one for every row (or column) of every batch entry.
std::vector<int> part_of(const std::vector<int>& from, std::int64_t first,
                         const std::vector<std::int64_t>& list) {
  std::vector<int> to;
  if (from.empty()) return to;
  to.reserve(list.size());
  for (const std::int64_t i : list) to.push_back(from[static_cast<std::size_t>(first + i)]);
  return to;
}

GemmOperands part_of(const GemmOperands& x, const GemmProblem& problem, const Block& block) {
  GemmOperands part;
  part.row = x.row;
  part.sum = x.sum;
  part.run = x.run;
  part.expansion = x.expansion;
  part.rounds_products = x.rounds_products;
  part.a = part_of(x.a, block, true);
  part.b = part_of(x.b, block, false);
  part.e = part_of(x.e, block, true);
  if (!x.c.empty()) part.c = part_of(part_of(x.c, block, true), {0, {}, block.columns}, false);
  const std::int64_t m = problem.m(), n = problem.n(), k = x.a.columns;
  part.a_exponents = part_of(x.a_exponents, block.g * m, block.rows);
  part.b_exponents = part_of(x.b_exponents, block.g * n, block.columns);
  if (!x.a_values.empty()) {
    part.a = {x.a.format, 1, std::ssize(block.rows), k, {}};
    part.b = {x.b.format, 1, x.b.rows, std::ssize(block.columns), {}};
    for (const std::int64_t i : block.rows) {
      const auto line = x.a_values.begin() + (block.g * m + i) * k;
      part.a_values.insert(part.a_values.end(), line, line + k);
    }
    for (std::int64_t i = 0; i < k; ++i)
      for (const std::int64_t j : block.columns)
        part.b_values.push_back(x.b_values[static_cast<std::size_t>((block.g * k + i) * n + j)]);
  }
  for (const PieceProducts& other : x.apart)
    part.apart.push_back({part_of(other.operands, problem, block), other.rank});
  return part;
}

/// What chains ask of the problem: sizes, and the scales of blocks of K.
GemmProblem part_of(const GemmProblem& problem, const Block& block) {
  GemmProblem part;
  part.a = {problem.a.format, 1, std::ssize(block.rows), problem.k(), {}};
  part.b = {problem.b.format, 1, problem.k(), std::ssize(block.columns), {}};
  part.scale_k = problem.scale_k;
  if (problem.scale_k == 0) return part;
  const auto scales = [&](const CodeMatrix& from, std::int64_t rows, std::int64_t columns,
                          auto&& row_of, auto&& column_of, std::int64_t all_rows,
                          std::int64_t all_columns) {
    CodeMatrix to;
    if (from.empty()) return to;
    to = make_matrix(formats::fp32, 1, rows, columns);
    for (std::int64_t i = 0; i < rows; ++i)
      for (std::int64_t j = 0; j < columns; ++j)
        to.set(to.index(0, i, j),
               scalar::encoded(formats::fp32, scale_at(from, block.g, row_of(i), column_of(j),
                                                       all_rows, all_columns, problem.scale_k)));
    return to;
  };
  const auto same = [](std::int64_t i) { return i; };
  const auto row = [&](std::int64_t i) { return block.rows[static_cast<std::size_t>(i)]; };
  const auto column = [&](std::int64_t j) { return block.columns[static_cast<std::size_t>(j)]; };
  const CodeMatrix &a = problem.scale_a, &b = problem.scale_b;
  part.scale_a = scales(a, part.m(), a.columns, row, same, problem.m(), a.columns);
  part.scale_b = scales(b, b.rows, part.n(), same, column, b.rows, problem.n());
  return part;
}

/// The outputs of the problem by tile.
std::vector<Block> blocks_of(const StreamK& x, const GemmProblem& problem) {
  const auto runs = [](std::int64_t count, auto&& tile_at) {
    std::vector<std::vector<std::int64_t>> list;
    for (std::int64_t i = 0; i < count; ++i) {
      if (i == 0 || tile_at(i) != tile_at(i - 1)) list.emplace_back();
      list.back().push_back(i);
    }
    return list;
  };
  std::vector<Block> blocks;
  for (std::int64_t g = 0; g < problem.a.batch; ++g) {
    const auto rows =
        runs(problem.m(), [&](std::int64_t i) { return problem.place(g, i, 0).row / x.tile_m; });
    const auto columns =
        runs(problem.n(), [&](std::int64_t j) { return problem.place(g, 0, j).column / x.tile_n; });
    for (const auto& r : rows)
      for (const auto& c : columns) blocks.push_back({g, r, c});
  }
  return blocks;
}

}  // namespace

Sums SliceSum::operator()(const KRanges& slice, bool first) const {
  std::vector<Sums> lanes;
  for (const KRanges& lane : divide(plan_.lanes, slice))
    lanes.push_back(accumulator(lane, first && lanes.empty()));
  return add_up(plan_.lanes, plan_.epilogue.compute, std::move(lanes));
}

Sums SliceSum::accumulator(const KRanges& ranges, bool first) const {
  if (plan_.input.has_slices()) return integer_slices(ranges);
  if (plan_.input.cut == Cut::scaled_rest) return scaled_pieces(ranges, first);
  return chain(x_, ranges, first, true);
}

Sums SliceSum::chain(const GemmOperands& x, const KRanges& ranges, bool first,
                     bool promoted) const {
  GemmPlan scaled = plan_;  // in elements of the expanded K
  scaled.residue_first *= x.expansion;
  scaled.promotion.interval *= promoted ? x.expansion : 0;
  KRanges expanded = ranges;
  for (KRange& range : expanded) range = {range.begin * x.expansion, range.end * x.expansion};
  return Chain(scaled, x, problem_, threads_).run(expanded, first);
}

Sums SliceSum::scaled_pieces(const KRanges& ranges, bool first) const {
  const double weight = std::ldexp(1.0, -plan_.input.shift);
  Sums sums;
  const auto add = [&](Sums next) {
    for (std::size_t i = 0; i < sums.size(); ++i)
      next[i] = scalar::fma(formats::fp32, sums[i], weight, next[i]);
    sums = std::move(next);
  };
  for (const PieceProducts& other : x_.apart) add(chain(other.operands, ranges, false, false));
  add(chain(x_, ranges, first, true));
  return sums;
}

Sums SliceSum::integer_slices(const KRanges& ranges) const {
  const Format f = plan_.epilogue.compute;
  const int slice_bits = formats::bits(x_.row->a) - 1;
  const std::int64_t m = problem_.m(), n = problem_.n();
  Sums sums(static_cast<std::size_t>(problem_.a.batch * m * n));
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
                   int threads) {
  const Origin whole = problem.whole();
  const TileOrder order(plan.stream_k, whole.batch, whole.m, whole.n);
  Partition sum_of_shares;
  sum_of_shares.order = plan.stream_k.order;
  sum_of_shares.sums = plan.stream_k.sums;
  Sums sums(static_cast<std::size_t>(problem.a.batch * problem.m() * problem.n()));
  for (const Block& block : blocks_of(plan.stream_k, problem)) {
    const std::int64_t tile =
        order.tile_of(problem.place(block.g, block.rows.front(), block.columns.front()));
    const GemmOperands operands = part_of(x, problem, block);
    const GemmProblem part = part_of(problem, block);
    const SliceSum slice_sum(plan, operands, part, threads);
    std::vector<Sums> shares;
    for (const KRange& range : stream_k_cuts(plan.stream_k, order.count(), tile, x.k()))
      shares.push_back(slice_sum({range}, shares.empty()));
    const Sums of_tile = add_up(sum_of_shares, plan.epilogue.compute, std::move(shares));
    std::size_t at = 0;
    for (const std::int64_t i : block.rows)
      for (const std::int64_t j : block.columns)
        sums[static_cast<std::size_t>((block.g * problem.m() + i) * problem.n() + j)] =
            of_tile[at++];
  }
  return sums;
}

}  // namespace guardbit::emulator
