#include "emulator/plan_diagnosis.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "emulator/capture.hpp"
#include "emulator/gemm.hpp"
#include "emulator/gemm_scalar.hpp"
#include "emulator/plan_search.hpp"

namespace guardbit::emulator {

namespace {

/// Cells of this side join mismatches into areas.
constexpr std::int64_t cell = 8;
constexpr std::size_t most_areas = 6;

std::string place_text(const FailedArea& x) {
  const auto range = [](const char* what, std::int64_t first, std::int64_t count) {
    if (count == 1) return std::string(what) + " " + std::to_string(first);
    return std::string(what) + "s " + std::to_string(first) + " to " +
           std::to_string(first + count - 1);
  };
  return range("row", x.row, x.rows) + ", " + range("column", x.column, x.columns);
}

/// Compares one capture with one plan.
class Comparer {
 public:
  Comparer(const GemmCapture& capture, const GemmPlan& plan, int threads)
      : capture_(capture),
        plan_(plan),
        problem_(capture.lowered(plan.convolution)),
        computed_(execute(plan, problem_, threads)) {}

  Diagnosis run();

 private:
  double recorded(std::int64_t at) const {
    return scalar::decoded(capture_.d.format, capture_.d[at]);
  }
  double computed(std::int64_t at) const {
    return scalar::decoded(computed_.format, computed_[at]);
  }
  std::int64_t index(const FailedArea& x, std::int64_t i, std::int64_t j) const {
    return capture_.d.index(x.batch, i, j);
  }

  std::vector<FailedArea> areas(const std::vector<std::int64_t>& failed) const;
  FailedArea grow(std::vector<bool>& cells, const std::vector<std::int64_t>& counts,
                  std::int64_t start) const;
  std::string explain(const FailedArea& x) const;
  bool holds(const FailedArea& x, auto&& expected) const;
  std::string another_place(const FailedArea& x) const;
  std::string leftover(const FailedArea& x) const;
  std::string left_out_k(const FailedArea& x) const;
  FailedArea tile_around(const FailedArea& x) const;

  const GemmCapture& capture_;
  const GemmPlan& plan_;
  GemmProblem problem_;
  CodeMatrix computed_;
};

/// The area rounded outward to whole cells: elements of a wrong tile may agree by chance.
FailedArea Comparer::tile_around(const FailedArea& x) const {
  FailedArea tile = x;
  tile.row = x.row / cell * cell;
  tile.column = x.column / cell * cell;
  tile.rows = std::min(capture_.d.rows, (x.row + x.rows + cell - 1) / cell * cell) - tile.row;
  tile.columns =
      std::min(capture_.d.columns, (x.column + x.columns + cell - 1) / cell * cell) - tile.column;
  return tile;
}

/// Is every recorded element of the area the code that `expected(i, j)` gives?
bool Comparer::holds(const FailedArea& x, auto&& expected) const {
  for (std::int64_t i = x.row; i < x.row + x.rows; ++i)
    for (std::int64_t j = x.column; j < x.column + x.columns; ++j)
      if (capture_.d[index(x, i, j)] != expected(i, j)) return false;
  return true;
}

/// The area holds what belongs elsewhere, or itself transposed.
std::string Comparer::another_place(const FailedArea& area) const {
  const FailedArea x = tile_around(area);
  if (x.rows * x.columns < 4) return "";
  const auto at = [&](std::int64_t i, std::int64_t j) { return computed_(x.batch, i, j); };
  if (x.rows == x.columns && holds(x, [&](std::int64_t i, std::int64_t j) {
        return at(x.row + (j - x.column), x.column + (i - x.row));
      }))
    return "transposed tile: it holds its own elements with rows and columns exchanged";
  for (std::int64_t row = 0; row + x.rows <= capture_.d.rows; row += cell) {
    for (std::int64_t column = 0; column + x.columns <= capture_.d.columns; column += cell) {
      if (row == x.row && column == x.column) continue;
      if (!holds(x, [&](std::int64_t i, std::int64_t j) {
            return at(row + i - x.row, column + j - x.column);
          }))
        continue;
      FailedArea source = x;
      source.row = row;
      source.column = column;
      return "swapped tile: it holds what belongs at " + place_text(source);
    }
  }
  return "";
}

/// What the area holds too much: another tile's sum, or its own once more. A chain that begins with
/// a stale sum rounds in other places than two chains, so the residual is small, but not nothing.
std::string Comparer::leftover(const FailedArea& area) const {
  constexpr double largest_part = 1.0 / 32;
  const FailedArea x = tile_around(area);
  if (x.rows * x.columns < 4) return "";
  const auto fits = [&](std::int64_t row, std::int64_t column) {
    double residual = 0, size = 0, added = 0;
    for (std::int64_t i = 0; i < x.rows; ++i) {
      for (std::int64_t j = 0; j < x.columns; ++j) {
        const double own = computed(index(x, x.row + i, x.column + j));
        const double other = computed(index(x, row + i, column + j));
        const double seen = recorded(index(x, x.row + i, x.column + j));
        residual += (seen - own - other) * (seen - own - other);
        size += own * own + other * other;
        added += other * other;
      }
      if (!(residual <= 16 * largest_part * largest_part * size)) return false;
    }
    if (added * 64 < size) return false;  // a tile of zeros explains nothing
    // Few elements agree by chance more easily.
    const double part = x.rows * x.columns < 16 ? largest_part / 32 : largest_part;
    return residual <= part * part * size;
  };
  for (std::int64_t row = 0; row + x.rows <= capture_.d.rows; row += cell) {
    for (std::int64_t column = 0; column + x.columns <= capture_.d.columns; column += cell) {
      if (!fits(row, column)) continue;
      FailedArea source = x;
      source.row = row;
      source.column = column;
      if (row == x.row && column == x.column)
        return "accumulated twice: it holds twice what it should";
      return "stale accumulator: it holds its own sum plus that of " + place_text(source);
    }
  }
  return "";
}

/// Elements of K that did not reach the area: a few of its outputs with parts of A set to zero.
std::string Comparer::left_out_k(const FailedArea& x) const {
  std::vector<Output> outputs;
  for (std::int64_t i = x.row; i < x.row + x.rows && outputs.size() < 24; ++i)
    for (std::int64_t j = x.column; j < x.column + x.columns && outputs.size() < 24; ++j)
      if (capture_.d[index(x, i, j)] != computed_[index(x, i, j)])
        outputs.push_back({x.batch, i, j});
  const GemmProblem few = select(problem_, std::span<const Output>(outputs));
  const CodeMatrix wanted = select(capture_.d, std::span<const Output>(outputs));
  const std::int64_t k = few.k();
  const auto without = [&](std::int64_t begin, std::int64_t end) {
    GemmProblem part = few;
    for (std::int64_t g = 0; g < part.a.batch; ++g)
      for (std::int64_t i = begin; i < end; ++i) part.a.set(part.a.index(g, 0, i), 0);
    return execute(plan_, part, 1).bytes == wanted.bytes;
  };
  std::vector<std::int64_t> lengths;
  for (std::int64_t t = 1; t < std::min<std::int64_t>(k, 129); ++t) lengths.push_back(t);
  for (std::int64_t t = 32; t < k; t += 32)
    if (t > 128) lengths.push_back(t);
  for (const std::int64_t t : lengths) {
    if (without(k - t, k))
      return "missed K tail: the last " + std::to_string(t) + " of " + std::to_string(k) +
             " elements of K are missing";
  }
  for (const std::int64_t tile : {16, 32, 64, 128, 256}) {
    for (std::int64_t begin = 0; begin < k; begin += tile) {
      const std::int64_t end = std::min(k, begin + tile);
      if (without(begin, end))
        return "missed part of K: elements " + std::to_string(begin) + " to " +
               std::to_string(end - 1) + " are missing";
    }
  }
  return "";
}

std::string Comparer::explain(const FailedArea& x) const {
  const std::int64_t size = x.rows * x.columns;
  bool zeros = true, nans = true;
  for (std::int64_t i = x.row; i < x.row + x.rows; ++i) {
    for (std::int64_t j = x.column; j < x.column + x.columns; ++j) {
      const double seen = recorded(index(x, i, j));
      zeros = zeros && seen == 0;
      nans = nans && std::isnan(seen);
    }
  }
  if (nans) return "NaN poisoning: NaN where the operands give numbers";
  if (zeros) return "not written: it holds zeros";
  if (size == 1 && x.largest_distance <= 4)
    return "a single element " + std::to_string(x.largest_distance) +
           " ulp off, which no plan in the neighbourhood explains";
  using Look = std::string (Comparer::*)(const FailedArea&) const;
  for (const Look look : {&Comparer::another_place, &Comparer::leftover, &Comparer::left_out_k})
    if (std::string finding = (this->*look)(x); !finding.empty()) return finding;
  if (size == 1)
    return "a single element off by " + std::to_string(x.largest_distance) +
           " ulp, which no plan in the neighbourhood explains";
  if (x.largest_distance <= 64)
    return "differs by a few ulp only: a race between partial sums, or another plan for this tile";
  return "no explanation found";
}

/// Joins the cell with its neighbours that hold mismatches.
FailedArea Comparer::grow(std::vector<bool>& cells, const std::vector<std::int64_t>& counts,
                          std::int64_t start) const {
  const std::int64_t across = (capture_.d.columns + cell - 1) / cell;
  const std::int64_t down = (capture_.d.rows + cell - 1) / cell;
  std::int64_t top = down, bottom = 0, left = across, right = 0;
  FailedArea x;
  x.batch = start / (across * down);
  std::vector<std::int64_t> queue = {start};
  cells[static_cast<std::size_t>(start)] = false;
  while (!queue.empty()) {
    const std::int64_t at = queue.back();
    queue.pop_back();
    x.mismatches += counts[static_cast<std::size_t>(at)];
    const std::int64_t i = at / across % down, j = at % across;
    top = std::min(top, i), bottom = std::max(bottom, i + 1);
    left = std::min(left, j), right = std::max(right, j + 1);
    for (const auto& [di, dj] : {std::pair{-1, 0}, {1, 0}, {0, -1}, {0, 1}}) {
      if (i + di < 0 || i + di >= down || j + dj < 0 || j + dj >= across) continue;
      const std::int64_t next = at + di * across + dj;
      if (!cells[static_cast<std::size_t>(next)]) continue;
      cells[static_cast<std::size_t>(next)] = false;
      queue.push_back(next);
    }
  }
  x.row = top * cell, x.rows = std::min(bottom * cell, capture_.d.rows) - x.row;
  x.column = left * cell, x.columns = std::min(right * cell, capture_.d.columns) - x.column;
  return x;
}

std::vector<FailedArea> Comparer::areas(const std::vector<std::int64_t>& failed) const {
  const CodeMatrix& d = capture_.d;
  const std::int64_t across = (d.columns + cell - 1) / cell, down = (d.rows + cell - 1) / cell;
  std::vector<std::int64_t> counts(static_cast<std::size_t>(d.batch * across * down));
  std::vector<bool> cells(counts.size());
  for (const std::int64_t at : failed) {
    const std::int64_t i = at / d.columns % d.rows, j = at % d.columns;
    const std::int64_t place = (at / (d.rows * d.columns) * down + i / cell) * across + j / cell;
    ++counts[static_cast<std::size_t>(place)];
    cells[static_cast<std::size_t>(place)] = true;
  }
  std::vector<FailedArea> result;
  for (std::size_t place = 0; place < cells.size(); ++place)
    if (cells[place]) result.push_back(grow(cells, counts, static_cast<std::int64_t>(place)));
  // The exact bounds within the cells.
  for (FailedArea& x : result) {
    FailedArea exact = x;
    std::int64_t bottom = 0, right = 0;
    exact.row = d.rows, exact.column = d.columns;
    for (std::int64_t i = x.row; i < x.row + x.rows; ++i) {
      for (std::int64_t j = x.column; j < x.column + x.columns; ++j) {
        const std::int64_t at = index(x, i, j);
        if (d[at] == computed_[at]) continue;
        exact.row = std::min(exact.row, i), bottom = std::max(bottom, i + 1);
        exact.column = std::min(exact.column, j), right = std::max(right, j + 1);
        exact.largest_distance = std::max(
            exact.largest_distance, code_distance(d.format, d[at], computed_[at]).value_or(0));
      }
    }
    exact.rows = bottom - exact.row, exact.columns = right - exact.column;
    x = exact;
  }
  std::stable_sort(result.begin(), result.end(), [](const FailedArea& p, const FailedArea& q) {
    return p.mismatches > q.mismatches;
  });
  return result;
}

Diagnosis Comparer::run() {
  Diagnosis result;
  const std::vector<std::int64_t> failed = mismatches(capture_, computed_);
  result.outputs = capture_.d.size();
  result.mismatches = std::ssize(failed);
  if (failed.empty()) return result;
  std::vector<bool> rows(static_cast<std::size_t>(capture_.d.rows * capture_.d.batch));
  std::vector<bool> columns(static_cast<std::size_t>(capture_.d.columns));
  std::vector<std::uint64_t> distances;
  for (const std::int64_t at : failed) {
    rows[static_cast<std::size_t>(at / capture_.d.columns)] = true;
    columns[static_cast<std::size_t>(at % capture_.d.columns)] = true;
    if (const auto distance = code_distance(capture_.d.format, capture_.d[at], computed_[at]))
      distances.push_back(*distance);
    result.nans += std::isnan(recorded(at)) && !std::isnan(computed(at)) ? 1 : 0;
  }
  result.rows = std::count(rows.begin(), rows.end(), true);
  result.columns = std::count(columns.begin(), columns.end(), true);
  if (!distances.empty()) {
    std::sort(distances.begin(), distances.end());
    result.median_distance = distances[distances.size() / 2];
    result.largest_distance = distances.back();
  }
  result.areas = areas(failed);
  result.area_count = std::ssize(result.areas);
  if (result.areas.size() > most_areas) result.areas.resize(most_areas);
  // Scattered over most of the result: the plan is wrong, not a part of the result.
  const bool everywhere = result.mismatches * 2 > result.outputs || result.area_count > 64;
  if (everywhere) {
    result.findings.push_back(result.largest_distance <= 1024
                                  ? "differences of a few ulp all over: the order or precision of "
                                    "the sums is none that was tried"
                                  : "large differences all over: this is not the product that was "
                                    "asked for, or another one was added");
    return result;
  }
  for (FailedArea& x : result.areas) {
    x.finding = explain(x);
    result.findings.push_back(place_text(x) + ": " + x.finding);
  }
  result.looks_like_bug = true;
  return result;
}

}  // namespace

Diagnosis diagnose(const GemmCapture& capture, const GemmPlan& plan, int threads) {
  return Comparer(capture, plan, threads).run();
}

std::vector<Variant> wrong_variants(const GemmCapture& capture) {
  std::vector<Variant> variants;
  if (capture.convolution) return variants;
  const GemmProblem& x = capture.problem;
  const auto add = [&](std::string name) -> GemmCapture& {
    variants.push_back({std::move(name), capture});
    return variants.back().capture;
  };
  if (!x.c.empty() && capture.beta != 0) add("C is left out").beta = 0;
  if (!x.bias.empty()) add("the bias is left out").problem.bias = {};
  if (capture.alpha != 1) add("alpha is taken as 1").alpha = 1;
  if (x.m() == x.n()) {
    GemmCapture& transposed = add("the whole result is transposed");
    for (std::int64_t g = 0; g < x.a.batch; ++g)
      for (std::int64_t i = 0; i < x.m(); ++i)
        for (std::int64_t j = 0; j < x.n(); ++j)
          transposed.d.set(transposed.d.index(g, i, j), capture.d(g, j, i));
  }
  // Tails that a kernel with tiles of K may forget.
  std::vector<std::int64_t> tails;
  for (const std::int64_t tile : {8, 16, 32, 64, 128, 256})
    tails.push_back(x.k() % tile == 0 ? tile : x.k() % tile);
  for (const std::int64_t t : {1, 2, 4}) tails.push_back(t);
  std::sort(tails.begin(), tails.end());
  tails.erase(std::unique(tails.begin(), tails.end()), tails.end());
  for (const std::int64_t t : tails) {
    if (t >= x.k()) continue;
    GemmCapture& cut = add("missed K tail: the last " + std::to_string(t) + " of " +
                           std::to_string(x.k()) + " elements of K are missing everywhere");
    for (std::int64_t line = 0; line < x.a.batch * x.m(); ++line)
      for (std::int64_t i = x.k() - t; i < x.k(); ++i) cut.problem.a.set(line * x.k() + i, 0);
  }
  return variants;
}

}  // namespace guardbit::emulator
