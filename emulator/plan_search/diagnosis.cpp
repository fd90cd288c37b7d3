#include "emulator/plan_search/diagnosis.hpp"

#include <algorithm>
#include <cmath>
#include <iomanip>
#include <sstream>
#include <utility>

#include "emulator/capture/capture.hpp"
#include "emulator/gemm/gemm.hpp"
#include "emulator/gemm/scalar.hpp"
#include "emulator/plan_search/omissions.hpp"
#include "emulator/plan_search/plan_search.hpp"

namespace guardbit::emulator {

namespace {

/// Mismatches in the same or neighbouring squares of this side make one area.
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

/// "1 row further on and 8 columns back"
std::string offset_text(std::int64_t rows, std::int64_t columns) {
  std::string text;
  for (const auto& [what, by] : {std::pair{"row", rows}, {"column", columns}}) {
    if (by == 0) continue;
    text += (text.empty() ? "" : " and ") + std::to_string(std::abs(by)) + " " + what;
    text += std::string(std::abs(by) == 1 ? "" : "s") + (by > 0 ? " further on" : " back");
  }
  return text;
}

/// Compares one capture with one plan.
class Comparer {
 public:
  Comparer(const GemmCapture& capture, const GemmPlan& plan, int threads,
           std::function<bool()> interrupted)
      : interrupted_(std::move(interrupted)),
        capture_(capture),
        plan_(plan),
        problem_(capture.lowered(plan.convolution)),
        computed_(execute(plan, problem_, threads)) {
    if (problem_.c.empty() && problem_.bias.empty()) return;
    GemmProblem product = problem_;
    product.c = product.bias = {};
    GemmPlan without_addend = plan;
    without_addend.epilogue.beta = 0;
    if (plan.epilogue.addition == Epilogue::Addition::initial)
      without_addend.epilogue.addition = Epilogue::Addition::fma_product;
    products_ = execute(without_addend, product, threads);
  }

  Diagnosis run();

 private:
  double recorded(std::int64_t at) const {
    return scalar::decoded(capture_.d.format, capture_.d[at]);
  }
  double computed(std::int64_t at) const {
    return scalar::decoded(computed_.format, computed_[at]);
  }
  double product(std::int64_t at) const {
    return products_.empty() ? computed(at) : scalar::decoded(products_.format, products_[at]);
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
  std::string added_sum(const FailedArea& x) const;
  std::string left_out(const FailedArea& x) const;
  std::string wrong_factor(const FailedArea& x) const;
  std::string wrong_factor_of_all() const;
  FailedArea tile_around(const FailedArea& x) const;

  bool interrupted() const { return interrupted_ && interrupted_(); }

  std::function<bool()> interrupted_;
  const GemmCapture& capture_;
  const GemmPlan& plan_;
  GemmProblem problem_;
  CodeMatrix computed_;
  /// without C and bias; empty where there are none
  CodeMatrix products_;
};

/// The area grown to whole cells: elements of a wrong tile may agree by chance.
FailedArea Comparer::tile_around(const FailedArea& x) const {
  FailedArea tile = x;
  tile.row = x.row / cell * cell;
  tile.column = x.column / cell * cell;
  tile.rows = std::min(capture_.d.rows, (x.row + x.rows + cell - 1) / cell * cell) - tile.row;
  tile.columns =
      std::min(capture_.d.columns, (x.column + x.columns + cell - 1) / cell * cell) - tile.column;
  return tile;
}

/// True if every recorded element (i, j) of the area has the code `expected(i, j)`.
bool Comparer::holds(const FailedArea& x, auto&& expected) const {
  for (std::int64_t i = x.row; i < x.row + x.rows; ++i)
    for (std::int64_t j = x.column; j < x.column + x.columns; ++j)
      if (capture_.d[index(x, i, j)] != expected(i, j)) return false;
  return true;
}

// Each of the following returns a sentence if the area is what its name says, else nothing.

/// The area holds what belongs elsewhere in D, or itself transposed.
std::string Comparer::another_place(const FailedArea& x) const {
  if (x.rows * x.columns < 4) return "";
  const auto at = [&](std::int64_t i, std::int64_t j) { return computed_(x.batch, i, j); };
  if (x.rows == x.columns && holds(x, [&](std::int64_t i, std::int64_t j) {
        return at(x.row + (j - x.column), x.column + (i - x.row));
      }))
    return "transposed tile: it holds its own elements with rows and columns exchanged";
  for (std::int64_t row = 0; row + x.rows <= capture_.d.rows; ++row) {
    for (std::int64_t column = 0; column + x.columns <= capture_.d.columns; ++column) {
      if (row == x.row && column == x.column) continue;
      if (!holds(x, [&](std::int64_t i, std::int64_t j) {
            return at(row + i - x.row, column + j - x.column);
          }))
        continue;
      FailedArea source = x;
      source.row = row;
      source.column = column;
      // A tile swapped with another one overlaps it nowhere.
      const bool shifted =
          std::abs(row - x.row) < x.rows && std::abs(column - x.column) < x.columns;
      return (shifted ? "wrong offset: it holds what belongs " +
                            offset_text(row - x.row, column - x.column) + ", at "
                      : "swapped tile: it holds what belongs at ") +
             place_text(source);
    }
  }
  return "";
}

/// The area holds another tile's sum too, or its own twice. A chain that begins with a stale sum
/// rounds in other places than two chains do, so that a small residual is allowed.
std::string Comparer::added_sum(const FailedArea& area) const {
  constexpr double largest_part = 1.0 / 32;
  const FailedArea x = tile_around(area);
  if (x.rows * x.columns < 4) return "";
  const auto fits = [&](std::int64_t row, std::int64_t column) {
    double residual = 0, size = 0, added = 0;
    for (std::int64_t i = 0; i < x.rows; ++i) {
      for (std::int64_t j = 0; j < x.columns; ++j) {
        const double own = computed(index(x, x.row + i, x.column + j));
        const double other = product(index(x, row + i, column + j));
        const double seen = recorded(index(x, x.row + i, x.column + j));
        residual += (seen - own - other) * (seen - own - other);
        size += own * own + other * other;
        added += other * other;
      }
      if (!(residual <= 16 * largest_part * largest_part * size)) return false;
    }
    if (added * 64 < size) return false;  // a tile of zeros explains nothing
    // Few elements agree by chance more easily, so that less is allowed.
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

/// Something did not reach the area: C, the bias, a partial sum, elements of K. At most 24 of its
/// outputs are looked at.
std::string Comparer::left_out(const FailedArea& x) const {
  std::vector<Output> outputs;
  for (std::int64_t i = x.row; i < x.row + x.rows && outputs.size() < 24; ++i)
    for (std::int64_t j = x.column; j < x.column + x.columns && outputs.size() < 24; ++j)
      if (capture_.d[index(x, i, j)] != computed_[index(x, i, j)])
        outputs.push_back({x.batch, i, j});
  const GemmProblem few = select(problem_, std::span<const Output>(outputs));
  return find_omission(few, select(capture_.d, std::span<const Output>(outputs)), plan_);
}

/// The area is the product times another factor, plus C and the bias.
std::string Comparer::wrong_factor(const FailedArea& x) const {
  double both = 0, square = 0, size = 0;
  if (x.rows * x.columns < 8) return "";
  const auto each = [&](auto&& visit) {
    for (std::int64_t i = x.row; i < x.row + x.rows; ++i) {
      for (std::int64_t j = x.column; j < x.column + x.columns; ++j) {
        const std::int64_t at = index(x, i, j);
        const double p = product(at), seen = recorded(at) - (computed(at) - p);
        if (std::isfinite(p) && std::isfinite(seen)) visit(seen, p);
      }
    }
  };
  each([&](double seen, double p) { both += seen * p, square += p * p, size += seen * seen; });
  const double factor = square == 0 ? 1 : both / square;
  double rest = 0;
  each([&](double seen, double p) { rest += (seen - factor * p) * (seen - factor * p); });
  if (!(rest * 1e4 <= size) || std::fabs(factor - 1) < 1e-3) return "";
  std::ostringstream text;
  text << "wrong alpha: the product is about " << std::setprecision(4)
       << factor * plan_.epilogue.alpha << " times A * B, not " << plan_.epilogue.alpha;
  return text.str();
}

/// All of D is the product times one other factor.
std::string Comparer::wrong_factor_of_all() const {
  FailedArea all;
  all.rows = capture_.d.rows, all.columns = capture_.d.columns;
  std::string first;
  for (all.batch = 0; all.batch < capture_.d.batch; ++all.batch) {
    const std::string found = wrong_factor(all);
    if (found.empty() || (all.batch != 0 && found != first)) return "";
    first = found;
  }
  return first;
}

/// The first finding that holds, for the user.
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
           " ulp off, which none of the plans that were tried explains";
  using Look = std::string (Comparer::*)(const FailedArea&) const;
  // Elements at its border may agree by chance: then something may be true of whole cells around
  // it.
  for (const FailedArea& area : {x, tile_around(x)})
    if (std::string finding = another_place(area); !finding.empty()) return finding;
  for (const Look look : {&Comparer::left_out, &Comparer::wrong_factor, &Comparer::added_sum}) {
    if (interrupted()) return "";
    if (std::string finding = (this->*look)(x); !finding.empty()) return finding;
  }
  if (size == 1)
    return "a single element off by " + std::to_string(x.largest_distance) +
           " ulp, which none of the plans that were tried explains";
  if (x.largest_distance <= 64)
    return "differs by a few ulp only: a race between partial sums, or another plan for this tile";
  return "no explanation found";
}

/// The area of the cell `start` and all cells with mismatches that touch it. `cells` marks the
/// cells that no area has yet; `counts` holds their mismatches.
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
  // If mismatches are all over the result, the plan is wrong, not a part of the result.
  const bool everywhere = result.mismatches * 2 > result.outputs || result.area_count > 64;
  // Among thousands of plans, one gives some of a handful of outputs by chance.
  const bool by_chance = result.outputs - result.mismatches < 24 && result.nans == 0 &&
                         result.mismatches * 4 > result.outputs && result.largest_distance <= 1024;
  if (everywhere || by_chance) {
    if (std::string factor = wrong_factor_of_all(); !factor.empty())
      result.findings.push_back(std::move(factor));
    result.findings.push_back(
        result.largest_distance <= 1024
            ? "differences of a few ulp all over: the order or precision of the sums is none that was tried"
            : "large differences all over: this is not the product that was asked for, or another one was added");
    return result;
  }
  for (FailedArea& x : result.areas) {
    if (interrupted()) return result;
    x.finding = explain(x);
    result.findings.push_back(place_text(x) + ": " + x.finding);
  }
  result.looks_like_bug = true;
  return result;
}

}  // namespace

Diagnosis diagnose(const GemmCapture& capture, const GemmPlan& plan, int threads,
                   const std::function<bool()>& interrupted) {
  return Comparer(capture, plan, threads, interrupted).run();
}

}  // namespace guardbit::emulator
