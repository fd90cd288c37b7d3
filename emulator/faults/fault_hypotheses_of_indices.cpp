#include <algorithm>
#include <cmath>
#include <string>
#include <tuple>
#include <vector>

#include "emulator/faults/misreadings.hpp"

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
  const double allowed = rounding_unit(x.input, x.k) * magnitude +
                         rounding_of(x.output, x.spacings, wanted) + std::abs(x.alpha) * unknown;
  return {false, wanted, allowed};
}

/// An output that is looked at: what it is, and what it should be.
struct Seen {
  std::int64_t i, j;
  double d;
  Answer right;
};

/// Some outputs, scattered over D.
std::vector<Seen> look_at(const WholeProduct& x, std::int64_t count) {
  const Misreading none = {
      FaultKind::unknown, "", {Operand::d, [](auto i, auto j) { return Place(i, j); }}};
  std::vector<Seen> places;
  for (const Output& o : scattered_outputs(1, x.m, x.n, count))
    places.push_back({o.row, o.column, x.d(o.row, o.column), ask(x, none, 0, o.row, o.column)});
  return places;
}

/// Where a tile of D is and the one that was computed before it.
struct TileOrder {
  std::int64_t down, across;
  bool along_rows;
  /// tiles in between: those of other thread blocks
  std::int64_t stride;
};

/// The place in the tile before that of (i, j); negative: there is none.
Place place_before(const WholeProduct& x, const TileOrder& order, std::int64_t i, std::int64_t j) {
  const std::int64_t rows = (x.m + order.down - 1) / order.down,
                     columns = (x.n + order.across - 1) / order.across;
  const std::int64_t row = i / order.down, column = j / order.across;
  const std::int64_t number =
      (order.along_rows ? row * columns + column : column * rows + row) - order.stride;
  if (number < 0) return {-1, -1};
  const std::int64_t p = (order.along_rows ? number / columns : number % rows) * order.down +
                         i % order.down,
                     q = (order.along_rows ? number % columns : number / rows) * order.across +
                         j % order.across;
  return p < x.m && q < x.n ? Place(p, q) : Place(-2, -2);
}

}  // namespace

Faults find_running_sums(const WholeProduct& x) {
  constexpr std::int64_t looked_at = 96, fewest = 24;
  if (x.m * x.n < fewest || x.k < 1) return {};
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
          seen.right.allowed +
          rounding_unit(x.input, x.k) * 4 * (std::abs(before) + seen.right.allowed) +
          2 * rounding_of(x.output, x.spacings, std::max(std::abs(before), std::abs(more)));
      if (!(std::abs(more - before) <= 2 * allowed)) return false;
      told += std::abs(before) > 16 * allowed ? 1 : 0;
    }
    return told >= fewest;
  };
  for (const std::int64_t down : {8, 16, 32, 64, 128, 256})
    for (const std::int64_t across : {8, 16, 32, 64, 128, 256}) {
      const std::int64_t count = ((x.m + down - 1) / down) * ((x.n + across - 1) / across);
      for (const bool along_rows : {true, false})
        for (std::int64_t stride = 1; stride < std::min<std::int64_t>(count, 300); ++stride)
          if (fits({down, across, along_rows, stride}))
            return {{.kind = FaultKind::stale_accumulator,
                     .operand = "d",
                     .text = "each tile of " + std::to_string(down) + " x " +
                             std::to_string(across) +
                             " of D holds, besides its own sum, those of the tiles before it (" +
                             (stride == 1 ? "one" : std::to_string(stride)) + " before, " +
                             (along_rows ? "along rows" : "down columns") +
                             ", and so on): sums are not set to zero between tiles"}};
    }
  return {};
}

Faults find_misread_matrix(const WholeProduct& x) {
  constexpr std::int64_t looked_at = 64, fewest = 24;
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
    bool fits = true;
    for (const Seen& seen : places) {
      const Answer answer = ask(x, misreading, largest, seen.i, seen.j);
      if (answer.is_outside) continue;
      fits = std::abs(seen.d - answer.wanted) <= answer.allowed;
      if (!fits) break;
      ++agreed;
      told_apart += std::abs(seen.d - seen.right.wanted) > 4 * answer.allowed ? 1 : 0;
    }
    const std::int64_t needed = std::min<std::int64_t>(fewest, std::ssize(places) / 2);
    if (!fits || agreed < needed || told_apart * 2 < agreed) continue;
    return {{.kind = misreading.kind,
             .operand = misreading.second
                            ? "both"
                            : std::string(1, "abcdc"[static_cast<std::size_t>(operand)]),
             .text = misreading.text}};
  }
  return {};
}

}  // namespace guardbit::emulator
