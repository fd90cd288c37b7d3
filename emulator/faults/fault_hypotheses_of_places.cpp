#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "emulator/faults/fault_hypotheses.hpp"
#include "formats/support/stop.hpp"

namespace guardbit::emulator {

namespace {

/// Rows [row, row + rows) and columns [column, column + columns) of D.
struct Rectangle {
  std::int64_t row = 0, rows = 0, column = 0, columns = 0;
};

/// The rectangle around the area, grown to multiples of `cell`: elements at its border may agree
/// by chance.
Rectangle around(const ProductNumbers& x, const Region& area, std::int64_t cell) {
  Rectangle r;
  r.row = area.rows.front() / cell * cell, r.column = area.columns.front() / cell * cell;
  r.rows = std::min(x.m(), (area.rows.back() / cell + 1) * cell) - r.row;
  r.columns = std::min(x.n(), (area.columns.back() / cell + 1) * cell) - r.column;
  return r;
}

ProductNumbers tile_of(const ProductNumbers& x, const Rectangle& r) {
  ProductNumbers tile;
  tile.a = RealMatrix(r.rows, 0), tile.b = RealMatrix(0, r.columns);
  tile.a.columns = tile.b.rows = x.k();
  tile.d = part(x.d, r.row, r.rows, r.column, r.columns);
  tile.input = x.input, tile.output = x.output, tile.spacings = x.spacings;
  tile.parts_unit = x.parts_unit;
  tile.activation = x.activation;
  return tile;
}

Expected part_of(const Expected& x, std::int64_t i, std::int64_t j, const Rectangle& size) {
  return {part(x.result, i, size.rows, j, size.columns),
          part(x.magnitude, i, size.rows, j, size.columns)};
}

std::vector<std::int64_t> numbers(std::int64_t begin, std::int64_t count) {
  std::vector<std::int64_t> result;
  for (std::int64_t i = begin; i < begin + count; ++i) result.push_back(i);
  return result;
}

std::string place_text(const ProductNumbers& x, std::int64_t row, std::int64_t column,
                       const Rectangle& size) {
  return lines_of("row", x.rows.places(numbers(row, size.rows))) + ", " +
         lines_of("column", x.columns.places(numbers(column, size.columns)));
}

Fault fault_at(const ProductNumbers& x, const Rectangle& r, FaultKind kind,
               const std::string& text) {
  return {.kind = kind,
          .rows = x.rows.places(numbers(r.row, r.rows)),
          .columns = x.columns.places(numbers(r.column, r.columns)),
          .operand = "d",
          .text = place_text(x, r.row, r.column, r) + " of D " + text};
}

/// Visits the places of D that a tile of this size may be mistaken for: those near it, and those at
/// multiples of 8.
template <class Visit>
bool any_place(const ProductNumbers& x, const Rectangle& r, const Visit& visit) {
  const std::int64_t last_row = x.m() - r.rows, last_column = x.n() - r.columns;
  for (std::int64_t i = 0; i <= last_row; i += 8) {
    formats::check_stop();
    for (std::int64_t j = 0; j <= last_column; j += 8)
      if (visit(i, j)) return true;
  }
  for (const std::int64_t by : {1, 2, 4})
    for (const auto& [di, dj] : {std::pair{by, std::int64_t{0}}, {-by, 0}, {0, by}, {0, -by}}) {
      const std::int64_t i = r.row + di, j = r.column + dj;
      if (i >= 0 && j >= 0 && i <= last_row && j <= last_column && visit(i, j)) return true;
    }
  return false;
}

/// D's number may be what is wanted, as far as the activation shows it.
bool may_be(const ProductNumbers& x, double seen, double wanted, double allowed) {
  if (is_smooth(x.activation)) return true;
  if (x.activation == Activation::relu) seen = std::max(seen, 0.0), wanted = std::max(wanted, 0.0);
  return std::abs(seen - wanted) <= allowed;
}

/// What a tile may hold besides its own sum: the products of other places, or all that these hold.
struct More {
  Expected sums;
  /// how far they may be off besides
  RealMatrix extra;
  bool is_all_they_hold = false;
};

/// The tile holds another tile's sum besides its own.
Faults more_than_its_sum(const ProductNumbers& x, const Expected& here, const More& more,
                         const Rectangle& r) {
  const ProductNumbers tile = tile_of(x, r);
  Faults found;
  any_place(x, r, [&](std::int64_t i, std::int64_t j) {
    const double sum = here.result(0, 0) + more.sums.result(i, j);
    const double allowed =
        2 * (x.rounding_unit() * (here.magnitude(0, 0) + more.sums.magnitude(i, j)) +
             x.rounding_of_d(sum) + more.extra(i, j));
    if (!may_be(x, x.d(r.row, r.column), sum, allowed)) return false;
    Expected both = part_of(more.sums, i, j, r);
    for (std::size_t at = 0; at < both.result.values.size(); ++at) {
      both.result.values[at] += here.result.values[at];
      both.magnitude.values[at] += here.magnitude.values[at];
    }
    const RealMatrix extra = part(more.extra, i, r.rows, j, r.columns);
    const bool is_own = i == r.row && j == r.column;
    if ((is_own && more.is_all_they_hold) || !agrees(tile, both, &extra)) return false;
    found = {
        fault_at(x, r, FaultKind::stale_accumulator,
                 is_own ? "hold their product twice"
                        : std::string("hold, besides their own sum, ") +
                              (more.is_all_they_hold ? "all that was summed up in " : "that of ") +
                              place_text(x, i, j, r))};
    return true;
  });
  return found;
}

/// The tile holds its own product and the C of another place, or the product of another place and
/// its own C.
Faults half_of_another_tile(const ProductNumbers& x, const Expected& asked, const Expected& product,
                            const Rectangle& r) {
  if (x.c.empty() && x.bias.empty()) return {};
  const ProductNumbers tile = tile_of(x, r);
  const Expected addend = asked - product;
  const std::string added = x.c.empty() ? "bias" : "C";
  Faults found;
  for (const bool moves_product : {false, true}) {
    const Expected &moving = moves_product ? product : addend,
                   &own = moves_product ? addend : product;
    const Expected stays = part_of(own, r.row, r.column, r);
    any_place(x, r, [&](std::int64_t i, std::int64_t j) {
      if (i == r.row && j == r.column) return false;
      const double wanted = moving.result(i, j) + stays.result(0, 0);
      const double magnitude = moving.magnitude(i, j) + stays.magnitude(0, 0);
      if (!may_be(x, x.d(r.row, r.column), wanted,
                  x.rounding_unit() * magnitude + x.rounding_of_d(wanted)))
        return false;
      Expected both = part_of(moving, i, j, r);
      for (std::size_t at = 0; at < both.result.values.size(); ++at) {
        both.result.values[at] += stays.result.values[at];
        both.magnitude.values[at] += stays.magnitude.values[at];
      }
      if (!agrees(tile, both)) return false;
      Fault fault = fault_at(x, r, moves_product ? FaultKind::moved_tile : FaultKind::misplaced_c,
                             moves_product ? "hold the product of " + place_text(x, i, j, r) +
                                                 " and their own " + added
                                           : "have the " + added + " of " + place_text(x, i, j, r));
      if (!moves_product) fault.operand = "c";
      found = {fault};
      return true;
    });
    if (!found.empty()) break;
  }
  return found;
}

/// The tile holds what belongs elsewhere, or itself transposed, or another tile's sum besides its
/// own.
Faults another_tile(const ProductNumbers& x, const Expected& asked, const Expected& product,
                    const Rectangle& r) {
  if (r.rows * r.columns < 4) return {};
  const ProductNumbers tile = tile_of(x, r);
  const Expected here = part_of(asked, r.row, r.column, r);
  if (r.rows == r.columns && agrees(tile, {transposed(here.result), transposed(here.magnitude)}))
    return {fault_at(x, r, FaultKind::transposed, "are transposed")};
  Faults found;
  any_place(x, r, [&](std::int64_t i, std::int64_t j) {
    if (i == r.row && j == r.column) return false;
    // One element refutes most places.
    if (may_be(x, x.d(r.row, r.column), asked.result(i, j),
               x.rounding_unit() * asked.magnitude(i, j) + x.rounding_of_d(asked.result(i, j))) &&
        agrees(tile, part_of(asked, i, j, r)))
      found = {
          fault_at(x, r, FaultKind::moved_tile, "hold what belongs to " + place_text(x, i, j, r))};
    return !found.empty();
  });
  if (!found.empty()) return found;
  if (found = half_of_another_tile(x, asked, product, r); !found.empty()) return found;
  More more{product, RealMatrix(x.m(), x.n())};
  if (found = more_than_its_sum(x, here, more, r); !found.empty()) return found;
  // D without its addends.
  const Expected addend = asked - product;
  more.sums.result = difference(x.d, addend.result);
  more.extra = mapped(more.sums.result, [&](double value) { return 2 * x.rounding_of_d(value); });
  more.is_all_they_hold = true;
  return more_than_its_sum(x, here, more, r);
}

}  // namespace

Faults find_blank(const ProductNumbers& x, const Region& area) {
  std::int64_t zeros = 0, nans = 0;
  for (const std::int64_t i : area.rows) {
    for (const std::int64_t j : area.columns) {
      zeros += x.is_zero(static_cast<std::size_t>(i * x.n() + j)) ? 1 : 0;
      nans += std::isfinite(x.d(i, j)) ? 0 : 1;
    }
  }
  const auto count = std::ssize(area.rows) * std::ssize(area.columns);
  Fault whole{
      .rows = x.rows.places(area.rows), .columns = x.columns.places(area.columns), .operand = "d"};
  const std::string where =
      lines_of("row", whole.rows) + ", " + lines_of("column", whole.columns) + " of D";
  if (count == 1) {
    return {wrong_element(x.rows(area.rows[0]), x.columns(area.columns[0]),
                          x.d(area.rows[0], area.columns[0]))};
  }
  if (nans == count) {
    whole.kind = FaultKind::not_a_number;
    whole.text = where + " are NaN or infinite where the operands give numbers";
    return {whole};
  }
  if (zeros == count) {
    whole.kind = FaultKind::not_written;
    whole.text = where + " are zero: nothing was written there, or zeros were";
    return {whole};
  }
  const double value = x.d(area.rows[0], area.columns[0]);
  const bool is_constant = std::all_of(area.rows.begin(), area.rows.end(), [&](std::int64_t i) {
    return std::all_of(area.columns.begin(), area.columns.end(),
                       [&](std::int64_t j) { return x.d(i, j) == value; });
  });
  if (is_constant && count > 2) {
    whole.kind = FaultKind::not_written;
    whole.value = value;
    whole.text = where + " are all " + text_of(value, 9) + ", whatever the operands give";
    return {whole};
  }
  return {};
}

Faults find_misplaced(const ProductNumbers& x, const Region& area) {
  const Rectangle exact = around(x, area, 1);
  const bool is_solid =
      exact.rows == std::ssize(area.rows) && exact.columns == std::ssize(area.columns);
  if (!is_solid) return {};
  const Expected asked = x.asked(), product = x.product_alone();
  for (const std::int64_t cell : {1, 8, 16, 32, 64}) {
    const Rectangle r = around(x, area, cell);
    if (r.rows == x.m() && r.columns == x.n()) break;
    if (Faults faults = another_tile(x, asked, product, r); !faults.empty()) return faults;
  }
  return {};
}

}  // namespace guardbit::emulator
