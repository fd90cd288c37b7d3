#include "emulator/plan_search/diagnosis.hpp"

#include <algorithm>
#include <cmath>
#include <iomanip>
#include <map>
#include <set>
#include <sstream>
#include <utility>

#include "emulator/capture/capture.hpp"
#include "emulator/faults/product_numbers.hpp"
#include "emulator/gemm/gemm.hpp"
#include "emulator/gemm/scalar.hpp"
#include "emulator/plan_search/order_control.hpp"
#include "emulator/plan_search/plan_search.hpp"
#include "emulator/plan_search/samples.hpp"
#include "formats/support/stop.hpp"

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

/// Compares one capture with one plan.
class Comparer {
 public:
  Comparer(const GemmCapture& capture, const GemmPlan& plan, int threads)
      : capture_(capture),
        plan_(plan),
        threads_(threads),
        problem_(capture.lowered(plan.convolution)),
        computed_(execute(plan, problem_, threads)) {}

  Diagnosis run();

 private:
  std::vector<FailedArea> areas(const std::vector<std::int64_t>& failed) const;
  FailedArea grow(std::vector<bool>& cells, const std::vector<std::int64_t>& counts,
                  std::int64_t start) const;
  /// Do the outputs that agree say that the plan's order is the kernel's? In another order most of
  /// them would differ.
  bool is_order_told(const std::vector<std::int64_t>& failed) const;
  bool are_edge_tiles(const std::vector<FailedArea>& areas) const;
  bool are_next_to_ties(const std::vector<std::int64_t>& failed) const;
  bool are_as_exact_as_others(const std::vector<std::int64_t>& failed) const;

  const GemmCapture& capture_;
  const GemmPlan& plan_;
  int threads_;
  GemmProblem problem_;
  CodeMatrix computed_;
};

bool is_nan(const CodeMatrix& x, std::int64_t at) {
  return std::isnan(scalar::decoded(x.format, x[at]));
}

/// What the area looks like. Large differences have been named before a plan was searched, so that
/// here they are small.
std::string finding_of(const FailedArea& x) {
  const std::string distance = std::to_string(x.largest_distance) + " ulp";
  if (x.rows * x.columns == 1)
    return "a single element " + distance +
           " off, which none of the plans that were tried explains";
  return x.largest_distance <= 64
             ? "differs by at most " + distance +
                   ": a race between partial sums, or another plan for this tile"
             : "differs by up to " + distance +
                   ", which none of the plans that were tried explains";
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
    formats::check_stop();
    FailedArea exact = x;
    std::int64_t bottom = 0, right = 0;
    exact.row = d.rows, exact.column = d.columns;
    for (std::int64_t i = x.row; i < x.row + x.rows; ++i) {
      formats::check_stop();
      for (std::int64_t j = x.column; j < x.column + x.columns; ++j) {
        const std::int64_t at = d.index(x.batch, i, j);
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

bool Comparer::is_order_told(const std::vector<std::int64_t>& failed) const {
  constexpr std::int64_t most = 256, fewest = 24;
  const CodeMatrix& d = capture_.d;
  std::vector<std::int64_t> agreeing;
  for (std::int64_t at = 0; at < d.size(); ++at)
    if (!std::binary_search(failed.begin(), failed.end(), at)) agreeing.push_back(at);
  std::vector<Output> outputs;
  for (const std::int64_t i : spread(std::ssize(agreeing), most)) {
    const std::int64_t at = agreeing[static_cast<std::size_t>(i)];
    outputs.push_back({at / (d.rows * d.columns), at / d.columns % d.rows, at % d.columns});
  }
  const auto control = order_control(capture_, plan_, outputs, threads_);
  return !control || (control->refuting >= fewest && control->refuting * 2 >= control->outputs);
}

/// Lines from `first` on are what whole tiles of some size leave of `count`.
bool is_left_over(std::int64_t first, std::int64_t count) {
  for (const std::int64_t tile : {4, 8, 16, 32, 64, 128})
    if (tile < count && count % tile != 0 && first >= count / tile * tile) return true;
  return false;
}

/// Sums of the same FP32 numbers in two orders are often this many ulps apart.
constexpr std::uint64_t few_ulps = 4;

/// True if every area is an edge that whole tiles leave over. Libraries multiply what is left,
/// where D's size or a thread's share of D is no multiple of the tile, by other kernels, which add
/// in another order. Such edges lie at the end of D, run along most of it, or lie in one line.
bool Comparer::are_edge_tiles(const std::vector<FailedArea>& areas) const {
  const auto is_along = [&](const FailedArea& x) {
    return 2 * x.rows > capture_.d.rows || 2 * x.columns > capture_.d.columns;
  };
  const auto is_in_line = [&](const FailedArea& x) {
    return std::any_of(areas.begin(), areas.end(), [&](const FailedArea& y) {
      return &x != &y && ((x.row == y.row && x.rows == y.rows) ||
                          (x.column == y.column && x.columns == y.columns));
    });
  };
  return std::all_of(areas.begin(), areas.end(), [&](const FailedArea& x) {
    if (is_left_over(x.row, capture_.d.rows) || is_left_over(x.column, capture_.d.columns))
      return true;
    const bool is_wide = x.rows > 1 && x.columns > 1;
    return is_along(x) ? is_wide || (x.mismatches > 1 && x.largest_distance <= few_ulps)
                       : is_wide && is_in_line(x);
  });
}

/// True if most mismatches lie next to a tie of D's rounding, where the last bits of a sum decide.
/// Another order of additions changes such outputs first; damage hits any output alike.
bool Comparer::are_next_to_ties(const std::vector<std::int64_t>& failed) const {
  const std::vector<bool> near = near_tie_outputs(capture_, plan_, threads_, std::ssize(failed));
  if (near.empty()) return false;
  const auto count = std::count_if(failed.begin(), failed.end(), [&](std::int64_t at) {
    return near[static_cast<std::size_t>(at)];
  });
  return 2 * count > std::ssize(failed);
}

/// How far an output is from the exact result beyond its last rounding, over its magnitude.
RealMatrix excess_errors(ProductNumbers x) {
  x.product = multiply_compensated(x.a, x.b);
  const Expected asked = x.asked();
  RealMatrix result = x.d;
  for (std::size_t at = 0; at < result.values.size(); ++at) {
    const double wanted = asked.result.values[at];
    const double error = std::abs(x.d.values[at] - wanted) - x.rounding_of_d(wanted);
    const bool is_known = std::isfinite(error) && !x.is_blurred(at);
    result.values[at] = is_known ? std::max(error, 0.0) / asked.magnitude.values[at] : 0;
  }
  return result;
}

/// True if the outputs that differ from the plan's are about as near to the exact result as those
/// that agree: then their sums may merely have been added in another order.
bool Comparer::are_as_exact_as_others(const std::vector<std::int64_t>& failed) const {
  constexpr std::int64_t most = 32;
  constexpr double about = 3;
  const CodeMatrix& d = capture_.d;
  std::map<std::int64_t, std::pair<std::set<std::int64_t>, std::set<std::int64_t>>> lines;
  for (const std::int64_t i : spread(std::ssize(failed), most)) {
    const std::int64_t at = failed[static_cast<std::size_t>(i)];
    auto& [rows, columns] = lines[at / (d.rows * d.columns)];
    rows.insert(at / d.columns % d.rows), columns.insert(at % d.columns);
  }
  double worst_failed = 0, worst_other = 0;
  for (auto& [g, both] : lines) {
    for (const std::int64_t i : spread(d.rows, most)) both.first.insert(i);
    for (const std::int64_t j : spread(d.columns, most)) both.second.insert(j);
    const std::vector<std::int64_t> rows(both.first.begin(), both.first.end());
    const std::vector<std::int64_t> columns(both.second.begin(), both.second.end());
    const RealMatrix excess = excess_errors(numbers_of(capture_, problem_, g, rows, columns));
    for (std::int64_t i = 0; i < excess.rows; ++i) {
      for (std::int64_t j = 0; j < excess.columns; ++j) {
        const std::int64_t at =
            d.index(g, rows[static_cast<std::size_t>(i)], columns[static_cast<std::size_t>(j)]);
        double& worst = d[at] == computed_[at] ? worst_other : worst_failed;
        worst = std::max(worst, excess(i, j));
      }
    }
  }
  return worst_failed <= about * worst_other;
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
    if (at % 4096 == 0) formats::check_stop();
    rows[static_cast<std::size_t>(at / capture_.d.columns)] = true;
    columns[static_cast<std::size_t>(at % capture_.d.columns)] = true;
    if (const auto distance = code_distance(capture_.d.format, capture_.d[at], computed_[at]))
      distances.push_back(*distance);
    result.nans += is_nan(capture_.d, at) && !is_nan(computed_, at) ? 1 : 0;
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
  const bool are_edges = result.nans == 0 && are_edge_tiles(result.areas);
  std::int64_t covered = 0;
  for (const FailedArea& x : result.areas) covered += x.rows * x.columns;
  if (result.areas.size() > most_areas) result.areas.resize(most_areas);
  // If mismatches are all over the result, the plan is wrong, not a part of the result.
  const bool everywhere = result.mismatches * 2 > result.outputs || result.area_count > 64 ||
                          covered * 2 > result.outputs;
  // Among thousands of plans, one gives some of a handful of outputs by chance.
  const bool by_chance = result.outputs - result.mismatches < 24 && result.nans == 0 &&
                         result.mismatches * 4 > result.outputs && result.largest_distance <= 1024;
  if (everywhere || by_chance) {
    result.findings.emplace_back(
        "differences all over: the order or precision of the sums is none that was tried");
    return result;
  }
  const bool are_infinite = std::all_of(failed.begin(), failed.end(), [&](std::int64_t at) {
    return !std::isfinite(scalar::decoded(computed_.format, computed_[at]));
  });
  if (are_infinite && result.largest_distance == 0) {
    result.findings.emplace_back(
        "NaNs and infinities in each other's place, as sums that overflow in another order give "
        "them");
    return result;
  }
  if (result.nans == 0 && result.largest_distance == 0) {
    result.findings.emplace_back(
        "zeros with the other sign, as another order of the sums gives them");
    return result;
  }
  if (result.nans == 0 && !is_order_told(failed)) {
    result.findings.emplace_back(
        "the outputs that agree do so in other orders, too: the order or precision of the sums is "
        "none that was tried");
    return result;
  }
  constexpr std::uint64_t far = 16;
  if (result.nans == 0 && result.largest_distance <= far && are_next_to_ties(failed)) {
    result.findings.emplace_back(
        "the outputs that differ lie next to ties of D's rounding, where the last bits of a sum "
        "decide: the order of the sums is none that was tried");
    return result;
  }
  if (are_edges) {
    result.findings.push_back(
        "the sums of " + place_text(result.areas.front()) +
        (result.areas.size() > 1 ? " and of others" : "") +
        " were added in another order, as libraries do in tiles that are not full");
    return result;
  }
  const bool is_fp32 = capture_.d.format == formats::fp32;
  if (is_fp32 && result.nans == 0 && result.mismatches > 1 && result.largest_distance <= few_ulps) {
    result.findings.push_back("the sums of " + place_text(result.areas.front()) +
                              (result.areas.size() > 1 ? " and of others" : "") +
                              " differ by at most " + std::to_string(result.largest_distance) +
                              " ulp, as sums in another order do");
    return result;
  }
  // One output of many is hardly ever added in an order of its own, but where tiles have a few
  // lines or D has few outputs.
  const bool may_have_own_order = result.mismatches > 1 || result.outputs < 256 ||
                                  std::min(capture_.d.rows, capture_.d.columns) < 4;
  if (result.nans == 0 && may_have_own_order && are_as_exact_as_others(failed)) {
    result.findings.push_back(
        place_text(result.areas.front()) + (result.areas.size() > 1 ? " and others" : "") +
        ": as near to the exact result as the outputs that agree; the sums there were added in "
        "another order, by a plan of their own or by a race between partial sums");
    return result;
  }
  for (FailedArea& x : result.areas) {
    x.finding = finding_of(x);
    result.findings.push_back(place_text(x) + ": " + x.finding);
  }
  result.looks_like_bug = true;
  return result;
}

}  // namespace

Diagnosis diagnose(const GemmCapture& capture, const GemmPlan& plan, int threads) {
  return Comparer(capture, plan, threads).run();
}

}  // namespace guardbit::emulator
