#include <algorithm>
#include <cmath>
#include <utility>

#include "emulator/faults/hypotheses.hpp"

namespace guardbit::emulator {

namespace {

/// The smallest rectangle around all outputs that disagree.
struct Rectangle {
  std::int64_t row = 0, rows = 0, column = 0, columns = 0;
};

Rectangle around(const Disagreement& wrong, std::int64_t columns) {
  std::int64_t top = -1, bottom = 0, left = columns, right = 0;
  for (std::size_t at = 0; at < wrong.at.size(); ++at) {
    if (!wrong.at[at]) continue;
    const auto i = static_cast<std::int64_t>(at) / columns,
               j = static_cast<std::int64_t>(at) % columns;
    if (top < 0) top = i;
    bottom = i + 1;
    left = std::min(left, j), right = std::max(right, j + 1);
  }
  return {top, bottom - top, left, right - left};
}

Expected part(const Expected& x, std::int64_t i, std::int64_t rows, std::int64_t j,
              std::int64_t columns) {
  return {part(x.result, i, rows, j, columns), part(x.magnitude, i, rows, j, columns)};
}

/// Rows of D in other places; of the transposed problem columns.
Faults permuted_rows(const ProductNumbers& x, const Expected& asked, bool are_columns) {
  if (x.d.columns < 4) return {};
  const Disagreement wrong = disagreement(x, asked);
  std::vector<std::int64_t> failed;
  for (std::int64_t i = 0; i < x.d.rows; ++i)
    if (std::find(wrong.at.begin() + i * x.d.columns, wrong.at.begin() + (i + 1) * x.d.columns,
                  true) != wrong.at.begin() + (i + 1) * x.d.columns)
      failed.push_back(i);
  // Each row's likeness to every row that was asked for.
  const RealMatrix products = multiply_by_transposed(x.d, asked.result);
  std::vector<double> sizes(static_cast<std::size_t>(x.d.rows));
  for (std::int64_t i = 0; i < x.d.rows; ++i)
    for (std::int64_t j = 0; j < x.d.columns; ++j)
      sizes[static_cast<std::size_t>(i)] += asked.result(i, j) * asked.result(i, j);
  Expected expected = asked;
  std::string examples;
  for (const std::int64_t i : failed) {
    std::int64_t best = i;
    double most = -1;
    for (std::int64_t r = 0; r < x.d.rows; ++r) {
      const double likeness =
          products(i, r) / std::sqrt(std::max(sizes[static_cast<std::size_t>(r)], 1e-300));
      if (likeness > most) best = r, most = likeness;
    }
    if (best == i) return {};
    for (std::int64_t j = 0; j < x.d.columns; ++j) {
      expected.result(i, j) = asked.result(best, j);
      expected.magnitude(i, j) = asked.magnitude(best, j);
    }
    if (i == failed[0] || (failed.size() > 1 && i == failed[1]))
      examples +=
          (examples.empty() ? "" : ", ") + std::to_string(i) + " holds " + std::to_string(best);
  }
  if (failed.empty() || !agrees(x, expected)) return {};
  const std::vector<Places> places = places_of(failed);
  Fault fault{.kind = are_columns ? FaultKind::permuted_columns : FaultKind::permuted_rows,
              .operand = "d",
              .text = std::to_string(failed.size()) + (are_columns ? " columns" : " rows") +
                      " of D hold what belongs to others: " + examples};
  (are_columns ? fault.columns : fault.rows) = places;
  return {fault};
}

}  // namespace

Faults find_permuted_lines(const ProductNumbers& x) {
  const Expected asked = x.asked();
  if (Faults faults = permuted_rows(x, asked, false); !faults.empty()) return faults;
  ProductNumbers y;
  y.input = x.input, y.output = x.output;
  y.a = RealMatrix(x.n(), x.k());
  y.b = RealMatrix(x.k(), x.m());
  y.d = transposed(x.d);
  return permuted_rows(y, {transposed(asked.result), transposed(asked.magnitude)}, true);
}

Faults find_moved_tile(const ProductNumbers& x) {
  const Expected asked = x.asked();
  const Disagreement wrong = disagreement(x, asked);
  const Rectangle exact = around(wrong, x.n());
  const auto places = [&](const Rectangle& r, Fault fault) {
    fault.rows = {{r.row, r.row + r.rows}};
    fault.columns = {{r.column, r.column + r.columns}};
    fault.operand = "d";
    return Faults{fault};
  };
  bool zeros = true;
  for (std::size_t at = 0; at < wrong.at.size(); ++at)
    zeros = zeros && (!wrong.at[at] || x.d.values[at] == 0);
  if (zeros)
    return places(exact, {.kind = FaultKind::not_written,
                          .text = std::to_string(wrong.count) +
                                  " elements of D are zero that should not be"});
  for (const std::int64_t cell :
       {std::int64_t{16}, std::int64_t{8}, std::int64_t{32}, std::int64_t{64}, std::int64_t{128}}) {
    Rectangle r;
    r.row = exact.row / cell * cell, r.column = exact.column / cell * cell;
    r.rows = std::min(x.m(), (exact.row + exact.rows + cell - 1) / cell * cell) - r.row;
    r.columns = std::min(x.n(), (exact.column + exact.columns + cell - 1) / cell * cell) - r.column;
    if (r.rows == x.m() && r.columns == x.n()) continue;
    const ProductNumbers tile = x.part(r.row, r.rows, r.column, r.columns);
    const Expected here = part(asked, r.row, r.rows, r.column, r.columns);
    if (r.rows == r.columns && agrees(tile, {transposed(here.result), transposed(here.magnitude)}))
      return places(r, {.kind = FaultKind::transposed, .text = "a tile of D is transposed"});
    const std::int64_t step = std::min<std::int64_t>(cell, 8);
    for (std::int64_t i = 0; i + r.rows <= x.m(); i += step)
      for (std::int64_t j = 0; j + r.columns <= x.n(); j += step)
        if (agrees(tile, part(asked, i, r.rows, j, r.columns)))
          return places(r, {.kind = FaultKind::moved_tile,
                            .text = "a tile of D holds what belongs to row " + std::to_string(i) +
                                    ", column " + std::to_string(j)});
  }
  return {};
}

}  // namespace guardbit::emulator
