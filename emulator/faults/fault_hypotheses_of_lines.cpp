#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "emulator/faults/first_faults.hpp"

namespace guardbit::emulator {

namespace {

/// [i]: the row whose numbers row i of D holds.
using Sources = std::vector<std::int64_t>;

/// Rows that are compared with each other.
constexpr std::int64_t most_rows = 4096;

/// (i, r): how far row i of D is from row r of `moving` and its own of `fixed`, less what all r
/// have in common.
RealMatrix distances(const ProductNumbers& x, const RealMatrix& moving, const RealMatrix& fixed) {
  RealMatrix result(x.m(), x.m());
  if (x.activation != Activation::relu) {
    const RealMatrix products = multiply_by_transposed(difference(x.d, fixed), moving);
    const std::vector<double> squares = squares_of_rows(moving);
    for (std::int64_t i = 0; i < x.m(); ++i)
      for (std::int64_t r = 0; r < x.m(); ++r)
        result(i, r) = squares[static_cast<std::size_t>(r)] - 2 * products(i, r);
    return result;
  }
  for (std::int64_t i = 0; i < x.m(); ++i)
    for (std::int64_t r = 0; r < x.m(); ++r)
      for (std::int64_t j = 0; j < x.n(); ++j) {
        const double seen = std::max(x.d(i, j), 0.0);
        const double off = seen - std::max(moving(r, j) + fixed(i, j), 0.0);
        if (std::isfinite(off)) result(i, r) += off * off;
      }
  return result;
}

/// The row of `moving` that row i of D, which is wrong, may hold: of the nearest ones, whose
/// order rounding may change, the one with which fewest outputs disagree.
std::int64_t nearest_row(const ProductNumbers& x, const Expected& moving, const Expected& fixed,
                         const RealMatrix& distance, std::int64_t i) {
  constexpr std::int64_t most = 8;
  std::vector<std::int64_t> rows = all_numbers(x.m());
  const auto end = rows.begin() + std::min(most, x.m());
  std::partial_sort(rows.begin(), end, rows.end(), [&](std::int64_t p, std::int64_t q) {
    return distance(i, p) < distance(i, q);
  });
  const auto misses = [&](std::int64_t r) {
    std::int64_t count = 0;
    for (std::int64_t j = 0; j < x.n(); ++j) {
      double wanted = moving.result(r, j) + fixed.result(i, j), seen = x.d(i, j);
      if (x.activation == Activation::relu)
        wanted = std::max(wanted, 0.0), seen = std::max(seen, 0.0);
      const double allowed = x.rounding_unit() * (moving.magnitude(r, j) + fixed.magnitude(i, j));
      count += std::abs(seen - wanted) <= allowed + x.rounding_of_d(wanted) ? 0 : 1;
    }
    return count;
  };
  return *std::min_element(rows.begin(), end,
                           [&](std::int64_t p, std::int64_t q) { return misses(p) < misses(q); });
}

/// Where each row of D has its part `moving` from, if D is that and `fixed`. Rows that agree as
/// they are stay; of the others, the nearest row is the source.
std::optional<Sources> row_sources(const ProductNumbers& x, const Expected& moving,
                                   const Expected& fixed) {
  if (x.n() < 4 || x.m() > most_rows) return {};
  Expected expected = moving;
  const auto set_row = [&](std::int64_t i, std::int64_t from) {
    for (std::int64_t j = 0; j < x.n(); ++j) {
      expected.result(i, j) = moving.result(from, j) + fixed.result(i, j);
      expected.magnitude(i, j) = moving.magnitude(from, j) + fixed.magnitude(i, j);
    }
  };
  for (std::int64_t i = 0; i < x.m(); ++i) set_row(i, i);
  const Disagreement wrong = disagreement(x, expected);
  const RealMatrix distance = distances(x, moving.result, fixed.result);
  Sources sources;
  bool has_moved = false;
  for (std::int64_t i = 0; i < x.m(); ++i) {
    const auto line = wrong.at.begin() + i * x.n();
    std::int64_t best = i;
    if (std::find(line, line + x.n(), true) != line + x.n()) {
      best = nearest_row(x, moving, fixed, distance, i);
      if (best == i) return {};
      has_moved = true;
      set_row(i, best);
    }
    sources.push_back(best);
  }
  if (!has_moved || !agrees(x, expected)) return {};
  return sources;
}

/// The rule by which rows moved, in words.
std::string rule_of(const ProductNumbers& x, const Sources& view, const char* line) {
  // In the numbers of D.
  Sources sources;
  for (std::size_t i = 0; i < view.size(); ++i) {
    const std::int64_t at = x.rows(static_cast<std::int64_t>(i));
    for (std::int64_t between = std::ssize(sources); between <= at; ++between)
      sources.push_back(between);
    sources.back() = x.rows(view[i]);
  }
  Sources moved;
  for (std::size_t i = 0; i < sources.size(); ++i)
    if (sources[i] != static_cast<std::int64_t>(i)) moved.push_back(static_cast<std::int64_t>(i));
  const auto from = [&](std::int64_t i) { return sources[static_cast<std::size_t>(i)]; };
  const std::int64_t by = from(moved[0]) - moved[0], mask = from(moved[0]) ^ moved[0];
  const auto all = [&](const auto& holds) {
    return moved.size() > 2 && std::all_of(moved.begin(), moved.end(), holds);
  };
  if (all([&](std::int64_t i) { return from(i) == i + by; }))
    return std::string("each holds the ") + line + " " + std::to_string(std::abs(by)) +
           (by > 0 ? " further on" : " before");
  if ((mask & (mask - 1)) == 0 && all([&](std::int64_t i) { return from(i) == (i ^ mask); }))
    return "halves of " + std::to_string(2 * mask) + " are exchanged";
  if (all([&](std::int64_t i) { return from(i) == from(moved[0]); }))
    return std::string("all hold ") + line + " " + std::to_string(from(moved[0]));
  std::string text;
  for (std::size_t i = 0; i < std::min<std::size_t>(2, moved.size()); ++i)
    text += (i == 0 ? "" : ", ") + std::to_string(moved[i]) + " holds " +
            std::to_string(from(moved[i]));
  return text;
}

Expected nothing_of(const ProductNumbers& x) {
  return {RealMatrix(x.m(), x.n()), RealMatrix(x.m(), x.n())};
}

Faults moved_rows(const ProductNumbers& x, bool are_columns) {
  const Expected all = x.asked();
  if (const auto s = row_sources(x, all, nothing_of(x)))
    return {moved_fault(x, *s, are_columns, Moved::all)};
  if (x.c.empty() && x.bias.empty()) return {};
  const Expected product = x.product_alone(), addend = all - product;
  if (const auto s = row_sources(x, product, addend))
    return {moved_fault(x, *s, are_columns, Moved::product)};
  // A bias that is not added is that of a line whose number is small, too.
  if (!x.bias.empty()) {
    ProductNumbers without = x;
    without.bias = {};
    if (agrees(x, without.asked())) return {};
  }
  if (const auto s = row_sources(x, addend, product))
    return {moved_fault(x, *s, are_columns, Moved::addend)};
  return {};
}

/// The row of `moving` that each row of D less `fixed` is most like, whatever its size. Rows that
/// are like none, or nearly as much like their own, stay. Empty if fewer than two rows move.
std::optional<Sources> likest_rows(const ProductNumbers& x, const RealMatrix& moving,
                                   const RealMatrix& fixed) {
  constexpr std::int64_t shortest = 8;
  constexpr double least = 0.5, much = 1.25;
  if (x.n() < shortest || x.m() > most_rows) return {};
  const RealMatrix part = difference(x.d, fixed);
  const RealMatrix products = multiply_by_transposed(part, moving);
  const std::vector<double> of_part = squares_of_rows(part), of_moving = squares_of_rows(moving);
  Sources sources;
  std::int64_t moved = 0;
  for (std::int64_t i = 0; i < x.m(); ++i) {
    const auto likeness = [&](std::int64_t r) {
      const double square =
          of_part[static_cast<std::size_t>(i)] * of_moving[static_cast<std::size_t>(r)];
      return square > 0 ? std::abs(products(i, r)) / std::sqrt(square) : 0;
    };
    std::int64_t best = i;
    for (std::int64_t r = 0; r < x.m(); ++r)
      if (likeness(r) > likeness(best)) best = r;
    if (likeness(best) < std::max(least, much * likeness(i))) best = i;
    sources.push_back(best);
    moved += best != i ? 1 : 0;
  }
  if (moved < 2) return {};
  return sources;
}

FirstFaults guess_permuted_rows(const ProductNumbers& x, const WholeProduct& whole,
                                bool are_columns) {
  FirstFaults list;
  const Expected all = x.asked(), product = x.product_alone();
  const bool has_addend = !x.c.empty() || !x.bias.empty();
  for (const Moved part : {Moved::all, Moved::product, Moved::addend}) {
    if (part != Moved::all && !has_addend) break;
    const Expected addend = all - product;
    const RealMatrix nothing(x.m(), x.n());
    const auto s = part == Moved::all       ? likest_rows(x, all.result, nothing)
                   : part == Moved::product ? likest_rows(x, product.result, addend.result)
                                            : likest_rows(x, addend.result, product.result);
    if (!s) continue;
    FirstFault first{{moved_fault(x, *s, are_columns, part)}, x, whole};
    ProductNumbers& y = first.mended;
    const auto move = [&](RealMatrix& matrix) {
      if (matrix.rows == x.m()) matrix = selected(matrix, *s, all_numbers(matrix.columns));
    };
    if (part != Moved::addend) move(y.a), move(y.product), move(y.product_magnitude);
    if (part != Moved::product) move(y.c), move(y.bias);
    first.whole.m = 0;
    list.push_back(std::move(first));
  }
  return list;
}

}  // namespace

Fault moved_fault(const ProductNumbers& x, const Sources& sources, bool are_columns, Moved part) {
  const char* const line = are_columns ? "column" : "row";
  const std::string added = x.c.empty() ? "bias" : "C";
  std::vector<std::int64_t> moved;
  for (std::size_t i = 0; i < sources.size(); ++i)
    if (sources[i] != static_cast<std::int64_t>(i)) moved.push_back(static_cast<std::int64_t>(i));
  const bool is_one = moved.size() == 1;
  Fault fault{.kind = are_columns ? FaultKind::permuted_columns : FaultKind::permuted_rows};
  std::string what;
  switch (part) {
    case Moved::all:
      fault.operand = "d";
      what = is_one ? " of D holds what belongs to another" : " of D hold what belongs to others";
      break;
    case Moved::product:
      fault.operand = are_columns ? "b" : "a";
      what = is_one ? " of the product is that of another, C is right"
                    : " of the product are those of others, C is right";
      break;
    case Moved::addend:
      fault.kind = FaultKind::misplaced_c;
      fault.operand = "c";
      what = is_one ? " of D has the " + added + " of another"
                    : " of D have the " + added + " of others";
      break;
  }
  const std::vector<Places> places = x.rows.places(moved);
  fault.text = lines_of(line, places) + what + ": " + rule_of(x, sources, line);
  (are_columns ? fault.columns : fault.rows) = places;
  return fault;
}

Faults find_permuted_lines(const ProductNumbers& x) {
  if (Faults faults = moved_rows(x, false); !faults.empty()) return faults;
  return moved_rows(x.turned(), true);
}

FirstFaults guess_permuted_lines(const ProductNumbers& x, const WholeProduct& whole) {
  FirstFaults list = guess_permuted_rows(x, whole, false);
  for (FirstFault& first : guess_permuted_rows(x.turned(), whole, true)) {
    first.mended = first.mended.turned();
    list.push_back(std::move(first));
  }
  return list;
}

}  // namespace guardbit::emulator
