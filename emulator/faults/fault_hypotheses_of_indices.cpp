#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "emulator/faults/first_faults.hpp"
#include "emulator/faults/misreadings.hpp"
#include "formats/support/stop.hpp"

namespace guardbit::emulator {

namespace {

using Operand = Misreading::Operand;
using Place = Misreading::Place;

/// What an output says of one matrix being read by another map.
struct Answer {
  /// nothing of the output is known, as the map leads outside
  bool is_outside = true;
  double wanted = 0, allowed = 0;
};

/// What lies outside of A and B is unknown; at most an eighth of the products may have it. They are
/// taken to be at most as large as `largest` of the matrix that is read wrong.
Answer ask(const WholeProduct& x, const Misreading& misreading, double largest, std::int64_t i,
           std::int64_t j) {
  const auto read = [&](Operand operand, const WholeProduct::Matrix& matrix, std::int64_t p,
                        std::int64_t q, bool& is_inside) {
    const Misreading::Reading* const reading = misreading.of(operand);
    if (reading == nullptr) return matrix(operand == Operand::bias ? 0 : p, q);
    const auto [r, s] = reading->map(p, q);
    const Operand source = reading->source.value_or(operand);
    const MatrixShape shape = shape_of(x, source);
    if (r < 0 || s < 0 || r >= shape.rows || s >= shape.columns) {
      is_inside = is_inside && misreading.reads_zeros;
      return 0.0;
    }
    const double value =
        source == operand ? matrix(r, s) : (source == Operand::a ? x.a : x.b)(r, s);
    return misreading.is_positive ? std::abs(value) : value;
  };
  bool is_inside = true;
  // D that is written elsewhere: the output here belongs to another place.
  std::int64_t p = i, q = j;
  if (const Misreading::Reading* const written = misreading.of(Operand::d)) {
    std::tie(p, q) = written->map(i, j);
    if (p < 0 || q < 0 || p >= x.m || q >= x.n) return {};
  }
  double sum = 0, magnitude = 0, unknown = 0;
  std::int64_t outside = 0;
  for (std::int64_t k = 0; k < x.k; ++k) {
    bool both = true;
    const double of_a = read(Operand::a, x.a, p, k, both), of_b = read(Operand::b, x.b, k, q, both);
    if (!both) {
      if (++outside > x.k / 8) return {};
      unknown += std::abs(misreading.of(Operand::a) != nullptr ? of_b : of_a) * largest;
      continue;
    }
    sum += of_a * of_b;
    magnitude += std::abs(of_a * of_b);
  }
  double wanted = x.alpha * sum;
  magnitude *= std::abs(x.alpha);
  if (x.c && x.beta != 0) {
    const double term = x.beta * read(Operand::c, x.c, p, q, is_inside);
    wanted += term, magnitude += std::abs(term);
  }
  if (x.bias) {
    const double term = read(Operand::bias, x.bias, p, q, is_inside);
    wanted += term, magnitude += std::abs(term);
  }
  if (!is_inside || !std::isfinite(wanted)) return {};
  const double allowed = x.rounding_unit() * magnitude + rounding_of(x.output, x.spacings, wanted) +
                         std::abs(x.alpha) * unknown;
  return {false, wanted, allowed};
}

/// How far D is from the function of what is wanted.
double distance(const WholeProduct& x, double d, const Answer& answer) {
  if (x.activation == Activation::none) return std::abs(d - answer.wanted);
  if (x.activation == Activation::relu)
    return std::abs(std::max(d, 0.0) - std::max(answer.wanted, 0.0));
  return std::abs(d - activated_in_doubles(x.activation, answer.wanted));
}

/// How far rounding may take it. Smooth activations are hardly steeper than 1; kernels may round
/// their arguments and steps to D's format.
double allowed(const WholeProduct& x, const Answer& answer) {
  if (!is_smooth(x.activation)) return answer.allowed;
  return 1.2 * (answer.allowed + 3.1 * half_spacing(x.output, answer.wanted)) +
         0x1p-20 * std::abs(answer.wanted);
}

/// An output that is looked at: what it is, and what it should be.
struct Seen {
  std::int64_t i, j;
  double d;
  Answer right;
};

/// No misreading.
const Misreading& as_it_is() {
  static const Misreading none = {
      FaultKind::unknown, "", {Operand::d, [](auto i, auto j) { return Place(i, j); }}};
  return none;
}

/// Some outputs, scattered over D.
std::vector<Seen> look_at(const WholeProduct& x, std::int64_t count) {
  std::vector<Seen> places;
  for (const Output& o : scattered_outputs(1, x.m, x.n, count))
    places.push_back(
        {o.row, o.column, x.d(o.row, o.column), ask(x, as_it_is(), 0, o.row, o.column)});
  return places;
}

/// Where a tile of D is and the one that was computed before it.
struct TileOrder {
  std::int64_t down, across;
  bool along_rows;
  /// tiles in between: those of other thread blocks
  std::int64_t stride = 1;
  /// each row of tiles, or each column, begins anew
  bool by_lines = false;

  /// What holds the sums of others besides its own.
  std::string text() const {
    if (by_lines && along_rows)
      return "in each row of tiles, each " + std::to_string(across) +
             " columns of D hold, besides their own sums, those of the columns before them";
    if (by_lines)
      return "in each column of tiles, each " + std::to_string(down) +
             " rows of D hold, besides their own sums, those of the rows before them";
    return "each tile of " + std::to_string(down) + " x " + std::to_string(across) +
           " of D holds, besides its own sum, those of the tiles before it (" +
           (stride == 1 ? "one" : std::to_string(stride)) + " before, " +
           (along_rows ? "along rows" : "down columns") + ", and so on)";
  }
};

/// Those that kernels are known to have, rows and columns of tiles first.
std::vector<TileOrder> tile_orders(const WholeProduct& x) {
  constexpr std::int64_t sides[] = {8, 16, 32, 64, 128, 256}, most_blocks = 300;
  std::vector<TileOrder> orders;
  for (const std::int64_t side : sides) {
    orders.push_back({x.m, side, true, 1, true});
    orders.push_back({side, x.n, false, 1, true});
  }
  for (const std::int64_t down : sides)
    for (const std::int64_t across : sides) {
      const std::int64_t count = ((x.m + down - 1) / down) * ((x.n + across - 1) / across);
      for (const bool along_rows : {true, false})
        for (std::int64_t stride = 1; stride < std::min(count, most_blocks); ++stride)
          orders.push_back({down, across, along_rows, stride});
    }
  return orders;
}

/// The place in the tile before that of (i, j); negative: there is none.
Place place_before(const WholeProduct& x, const TileOrder& order, std::int64_t i, std::int64_t j) {
  const std::int64_t rows = (x.m + order.down - 1) / order.down,
                     columns = (x.n + order.across - 1) / order.across;
  const std::int64_t row = i / order.down, column = j / order.across;
  if (order.by_lines && (order.along_rows ? column : row) == 0) return {-1, -1};
  const std::int64_t number =
      (order.along_rows ? row * columns + column : column * rows + row) - order.stride;
  if (number < 0) return {-1, -1};
  const std::int64_t p = (order.along_rows ? number / columns : number % rows) * order.down +
                         i % order.down,
                     q = (order.along_rows ? number % columns : number / rows) * order.across +
                         j % order.across;
  return p < x.m && q < x.n ? Place(p, q) : Place(-2, -2);
}

Fault fault_of(const Misreading& misreading) {
  return {.kind = misreading.kind,
          .operand =
              misreading.second
                  ? "both"
                  : std::string(1, "abcdc"[static_cast<std::size_t>(misreading.reading.operand)]),
          .text = misreading.text};
}

/// How much the ones grow and fall with the others: 1 if always, 0 if by chance.
double correlation(const std::vector<double>& x, const std::vector<double>& y) {
  const auto count = static_cast<double>(x.size());
  const double mean_x = std::accumulate(x.begin(), x.end(), 0.0) / count,
               mean_y = std::accumulate(y.begin(), y.end(), 0.0) / count;
  double product = 0, squares_x = 0, squares_y = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    product += (x[i] - mean_x) * (y[i] - mean_y);
    squares_x += std::pow(x[i] - mean_x, 2), squares_y += std::pow(y[i] - mean_y, 2);
  }
  return product / std::sqrt(std::max(squares_x * squares_y, 1e-300));
}

/// All of the product is looked at, as A and B give it.
bool is_all_of(const ProductNumbers& x, const WholeProduct& whole) {
  return whole.m == x.m() && whole.n == x.n() && x.k() > 0 && x.activation == Activation::none;
}

/// The product of matrices that are read so. Outputs of what lies outside, of which nothing is
/// known, are left out; nothing if these are many.
std::optional<ProductNumbers> reread(const ProductNumbers& x, const WholeProduct& whole,
                                     const Misreading& misreading) {
  if (misreading.of(Operand::bias) != nullptr) return {};  // it may be another for each output
  ProductNumbers y = x;
  y.left_out.resize(x.d.values.size());
  const auto leave_out = [&](bool of_row, std::int64_t line) {
    for (std::int64_t at = 0; at < (of_row ? x.n() : x.m()); ++at)
      y.left_out[static_cast<std::size_t>(of_row ? line * x.n() + at : at * x.n() + line)] = true;
  };
  for (const auto& [operand, matrix] :
       {std::pair{Operand::a, &y.a}, {Operand::b, &y.b}, {Operand::c, &y.c}}) {
    const Misreading::Reading* const reading = misreading.of(operand);
    if (reading == nullptr || matrix->empty()) continue;
    const Operand source = reading->source.value_or(operand);
    const MatrixShape shape = shape_of(whole, source);
    const WholeProduct::Matrix& from = source == Operand::a   ? whole.a
                                       : source == Operand::b ? whole.b
                                                              : whole.c;
    for (std::int64_t i = 0; i < matrix->rows; ++i)
      for (std::int64_t j = 0; j < matrix->columns; ++j) {
        const auto [p, q] = reading->map(i, j);
        const bool is_inside = p >= 0 && q >= 0 && p < shape.rows && q < shape.columns;
        const double value = is_inside ? from(p, q) : 0;
        (*matrix)(i, j) = misreading.is_positive ? std::abs(value) : value;
        if (is_inside || misreading.reads_zeros) continue;
        if (operand == Operand::a) leave_out(true, i);
        if (operand == Operand::b) leave_out(false, j);
        if (operand == Operand::c) y.left_out[static_cast<std::size_t>(i * x.n() + j)] = true;
      }
  }
  const auto lost = std::count(y.left_out.begin(), y.left_out.end(), true);
  if (4 * lost > std::ssize(y.left_out)) return {};
  y.multiply_operands();
  const Expected asked = y.asked();
  for (std::size_t at = 0; at < y.left_out.size(); ++at)
    if (y.left_out[at]) y.d.values[at] = asked.result.values[at];
  if (lost == 0) y.left_out.clear();
  return y;
}

/// What a tile of D holds of another one.
enum class Held : std::uint8_t {
  /// all that belongs there
  result,
  /// its product, besides its own result
  product,
};

/// What an output shows of another place, and how far its own rounding may take that.
Answer shown(const WholeProduct& x, Held held, std::int64_t i, std::int64_t j) {
  if (held == Held::result) return {false, x.d(i, j), 0};
  const Answer own = ask(x, as_it_is(), 0, i, j);
  return {own.is_outside, x.d(i, j) - own.wanted, 2 * own.allowed};
}

/// What C and the bias add.
double addend_of(const WholeProduct& x, std::int64_t i, std::int64_t j) {
  return (x.c && x.beta != 0 ? x.beta * x.c(i, j) : 0) + (x.bias ? x.bias(0, j) : 0);
}

/// Places of which (row, column) of D shows what belongs there, of those that lie some eights of
/// lines from it; of a very large product, some sixteens or more.
std::vector<Place> places_like(const WholeProduct& x, Held held, std::int64_t row,
                               std::int64_t column) {
  constexpr double most_work = 5e7;
  std::int64_t step = 8;
  const auto count = [&](std::int64_t lines) {
    const std::int64_t taken = lines / step + 1;
    return static_cast<double>(taken);
  };
  while (count(x.m) * count(x.n) * static_cast<double>(x.k) > most_work) step *= 2;
  RealMatrix a((x.m - row % step + step - 1) / step, x.k),
      b(x.k, (x.n - column % step + step - 1) / step);
  for (std::int64_t i = 0; i < a.rows; ++i)
    for (std::int64_t k = 0; k < x.k; ++k) a(i, k) = x.a(row % step + i * step, k);
  for (std::int64_t k = 0; k < x.k; ++k)
    for (std::int64_t j = 0; j < b.columns; ++j) b(k, j) = x.b(k, column % step + j * step);
  const RealMatrix product = multiply(a, b);
  const auto size = [](double value) { return std::abs(value); };
  const RealMatrix magnitude = multiply(mapped(std::move(a), size), mapped(std::move(b), size));
  const Answer seen = shown(x, held, row, column);
  std::vector<Place> places;
  for (std::int64_t i = 0; i < product.rows; ++i)
    for (std::int64_t j = 0; j < product.columns; ++j) {
      const std::int64_t p = row % step + i * step, q = column % step + j * step;
      const double addend = held == Held::result ? addend_of(x, p, q) : 0;
      const double wanted = x.alpha * product(i, j) + addend;
      const double rounding =
          x.rounding_unit() * (std::abs(x.alpha) * magnitude(i, j) + std::abs(addend)) +
          rounding_of(x.output, x.spacings, wanted) + seen.allowed;
      const Answer there{false, wanted, rounding};
      if (distance(x, seen.wanted, there) <= allowed(x, there)) places.emplace_back(p, q);
    }
  return places;
}

}  // namespace

Faults find_running_sums(const WholeProduct& x) {
  constexpr std::int64_t looked_at = 96, fewest = 24;
  if (x.m * x.n < fewest || x.k < 1 || x.activation != Activation::none) return {};
  std::vector<Seen> places = look_at(x, looked_at);
  std::erase_if(places, [](const Seen& seen) { return seen.right.is_outside; });
  // What the tile before had summed up: its D without its addends.
  const auto sum_at = [&](std::int64_t i, std::int64_t j) {
    return x.d(i, j) - (x.c && x.beta != 0 ? x.beta * x.c(i, j) : 0) - (x.bias ? x.bias(0, j) : 0);
  };
  const auto fits = [&](const TileOrder& order) {
    std::int64_t told = 0;
    for (const Seen& seen : places) {
      const auto [p, q] = place_before(x, order, seen.i, seen.j);
      if (p == -2) continue;
      const double before = p < 0 ? 0 : sum_at(p, q);
      const double more = seen.d - seen.right.wanted;
      const double allowed =
          seen.right.allowed + x.rounding_unit() * 4 * (std::abs(before) + seen.right.allowed) +
          2 * rounding_of(x.output, x.spacings, std::max(std::abs(before), std::abs(more)));
      if (!(std::abs(more - before) <= 2 * allowed)) return false;
      told += std::abs(before) > 16 * allowed ? 1 : 0;
    }
    return told >= fewest;
  };
  for (const TileOrder& order : tile_orders(x))
    if (fits(order))
      return {{.kind = FaultKind::stale_accumulator,
               .operand = "d",
               .text = order.text() + ": sums are not set to zero between tiles"}};
  return {};
}

namespace {

Faults far_tile(const WholeProduct& whole, Held held, const ProductNumbers& x, const Region& area) {
  constexpr std::int64_t looked_at = 8;
  const std::int64_t row = x.rows(area.rows.front()), column = x.columns(area.columns.front());
  const auto agrees_at = [&](std::int64_t i, std::int64_t j, std::int64_t p, std::int64_t q) {
    if (p < 0 || q < 0 || p >= whole.m || q >= whole.n) return false;
    Answer there = ask(whole, as_it_is(), 0, p, q);
    const Answer seen = shown(whole, held, i, j);
    if (held == Held::product) there.wanted -= addend_of(whole, p, q);
    there.allowed += seen.allowed;
    return !there.is_outside && distance(whole, seen.wanted, there) <= allowed(whole, there);
  };
  for (const auto& [p, q] : places_like(whole, held, row, column)) {
    formats::check_stop();
    const std::int64_t down = p - row, across = q - column;
    bool fits = down != 0 || across != 0;
    for (const std::int64_t i : spread(std::ssize(area.rows), looked_at))
      for (const std::int64_t j : spread(std::ssize(area.columns), looked_at)) {
        if (!fits) break;
        const std::int64_t at_row = x.rows(area.rows[static_cast<std::size_t>(i)]),
                           at_column = x.columns(area.columns[static_cast<std::size_t>(j)]);
        fits = agrees_at(at_row, at_column, at_row + down, at_column + across);
      }
    if (!fits) continue;
    Fault fault{.kind = held == Held::result ? FaultKind::moved_tile : FaultKind::stale_accumulator,
                .rows = x.rows.places(area.rows),
                .columns = x.columns.places(area.columns),
                .operand = "d"};
    const auto moved = [](std::vector<Places> places, std::int64_t by) {
      for (Places& range : places) range.begin += by, range.end += by;
      return places;
    };
    fault.text = lines_of("row", fault.rows) + ", " + lines_of("column", fault.columns) +
                 (held == Held::result ? " of D hold what belongs to "
                                       : " of D hold, besides their own sum, that of ") +
                 lines_of("row", moved(fault.rows, down)) + ", " +
                 lines_of("column", moved(fault.columns, across));
    return {fault};
  }
  return {};
}

}  // namespace

Faults find_far_tile(const WholeProduct& whole, const ProductNumbers& x, const Region& area) {
  constexpr std::int64_t fewest = 16;
  const bool is_part = x.rows.looked_at < x.rows.count || x.columns.looked_at < x.columns.count;
  const auto outputs = std::ssize(area.rows) * std::ssize(area.columns);
  if (!is_part || whole.m == 0 || outputs < fewest) return {};
  if (Faults faults = far_tile(whole, Held::result, x, area); !faults.empty()) return faults;
  if (whole.activation != Activation::none) return {};
  return far_tile(whole, Held::product, x, area);
}

Faults find_misread_matrix(const WholeProduct& x) {
  constexpr std::int64_t looked_at = 64, fewest = 24;
  constexpr double most_bits = 4, fewest_bits = 32;
  if (x.m * x.n < fewest || x.k < 1) return {};
  const std::vector<Seen> places = look_at(x, looked_at);
  double largest_a = 0, largest_b = 0;
  for (const Seen& seen : places) {
    const std::int64_t k = (seen.i + seen.j) % x.k;
    largest_a = std::max(largest_a, std::abs(x.a(seen.i, k)));
    largest_b = std::max(largest_b, std::abs(x.b(k, seen.j)));
  }
  for (const Misreading& misreading : misreadings(x)) {
    const Operand operand = misreading.reading.operand;
    const double largest = operand == Operand::a ? largest_a : largest_b;
    std::int64_t agreed = 0, told_apart = 0;
    double bits = 0;
    bool fits = true;
    for (const Seen& seen : places) {
      const Answer answer = ask(x, misreading, largest, seen.i, seen.j);
      if (answer.is_outside) continue;
      fits = distance(x, seen.d, answer) <= allowed(x, answer);
      if (!fits) break;
      ++agreed;
      const double apart = distance(x, seen.d, seen.right) / allowed(x, answer);
      told_apart += apart > 4 ? 1 : 0;
      if (apart > 1) bits += std::min(std::log2(apart), most_bits);
    }
    const std::int64_t needed = std::min<std::int64_t>(fewest, std::ssize(places) / 2);
    const std::int64_t share = x.activation == Activation::none ? 2 : 4;
    if (!fits || agreed < needed) continue;
    // Each output that what was asked does not explain says a little where much lies outside.
    const bool is_told = told_apart * share >= agreed || bits >= fewest_bits;
    if (!is_told) continue;
    return {fault_of(misreading)};
  }
  return {};
}

std::optional<ProductNumbers> reread_as(const ProductNumbers& x, const WholeProduct& whole,
                                        const Fault& fault) {
  if (!is_all_of(x, whole)) return {};
  for (const Misreading& misreading : misreadings(whole))
    if (misreading.text == fault.text && misreading.of(Operand::d) == nullptr)
      return reread(x, whole, misreading);
  return {};
}

FirstFaults guess_misread_matrix(const ProductNumbers& x, const WholeProduct& whole) {
  constexpr std::int64_t looked_at = 48, fewest = 24, longest = 2048;
  constexpr double least = 0.8;
  if (!is_all_of(x, whole) || x.m() * x.n() < fewest || x.k() > longest) return {};
  const std::vector<Seen> places = look_at(whole, looked_at);
  FirstFaults list;
  for (const Misreading& misreading : misreadings(whole)) {
    if (misreading.of(Operand::d) != nullptr) continue;
    // As far as it is seen, half of D is that, or it grows and falls with that.
    std::int64_t agreed = 0;
    std::vector<double> wanted, seen_here;
    for (const Seen& seen : places) {
      const Answer answer = ask(whole, misreading, 0, seen.i, seen.j);
      if (answer.is_outside || !std::isfinite(seen.d)) continue;
      agreed += std::abs(seen.d - answer.wanted) <= answer.allowed ? 1 : 0;
      wanted.push_back(answer.wanted), seen_here.push_back(seen.d);
      // Half of them refute most.
      const auto told = std::ssize(wanted);
      if (2 * told == fewest && 4 * agreed < told && correlation(wanted, seen_here) < 0.5) break;
    }
    const auto told = std::ssize(wanted);
    if (told < fewest || (2 * agreed < told && correlation(wanted, seen_here) < least)) continue;
    if (auto mended = reread(x, whole, misreading))
      list.push_back({{fault_of(misreading)}, std::move(*mended), {}});
  }
  return list;
}

}  // namespace guardbit::emulator
