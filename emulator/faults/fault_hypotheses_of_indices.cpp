#include <algorithm>
#include <cmath>
#include <optional>
#include <tuple>
#include <utility>

#include "emulator/faults/fault_hypotheses.hpp"

namespace guardbit::emulator {

namespace {

/// Row and column that are read instead of others; negative: outside.
using Place = std::pair<std::int64_t, std::int64_t>;
using IndexMap = std::function<Place(std::int64_t, std::int64_t)>;

enum class Operand : std::uint8_t { a, b, c, d };

struct Misreading {
  Operand operand;
  FaultKind kind;
  std::string text;
  IndexMap map;
  /// the matrix that is read in its place, if it is not itself
  std::optional<Operand> source = {};
  /// elements lose their sign
  bool is_positive = false;
};

struct Shape {
  std::int64_t rows, columns;
};

Shape shape_of(const WholeProduct& x, Operand operand) {
  switch (operand) {
    case Operand::a: return {x.m, x.k};
    case Operand::b: return {x.k, x.n};
    case Operand::c:
    case Operand::d: break;
  }
  return {x.m, x.n};
}

Place at(std::int64_t index, const Shape& shape) {
  if (index < 0 || index >= shape.rows * shape.columns) return {-1, -1};
  return {index / shape.columns, index % shape.columns};
}

/// Tiles of `down` x `across` elements whose elements lie as those of the transposed tile do.
IndexMap transposed_tiles(std::int64_t down, std::int64_t across) {
  return [=](auto i, auto j) {
    const std::int64_t index = j % across * down + i % down;
    return Place(i / down * down + index / across, j / across * across + index % across);
  };
}

/// A or B read without signs, or from the other one's place.
void add_operand_mistakes(const WholeProduct& x, std::vector<Misreading>& list) {
  for (const Operand operand : {Operand::a, Operand::b}) {
    const bool is_a = operand == Operand::a;
    const std::string name = is_a ? "A" : "B", other = is_a ? "B" : "A";
    const Operand source = is_a ? Operand::b : Operand::a;
    const Shape shape = shape_of(x, operand), of_source = shape_of(x, source);
    std::string lost = "elements of ";
    lost.append(name).append(" have lost their sign: all are positive");
    list.push_back({.operand = operand,
                    .kind = FaultKind::wrong_sign,
                    .text = std::move(lost),
                    .map = [](auto i, auto j) { return Place(i, j); },
                    .is_positive = true});
    const auto add = [&](std::string what, IndexMap map) {
      what.append(" stands in the place of ").append(name);
      list.push_back({.operand = operand,
                      .kind = FaultKind::wrong_operand,
                      .text = std::move(what),
                      .map = std::move(map),
                      .source = source});
    };
    if (of_source.rows >= shape.rows && of_source.columns >= shape.columns)
      add(other, [](auto i, auto j) { return Place(i, j); });
    if (of_source.columns >= shape.rows && of_source.rows >= shape.columns)
      add("the transposed " + other, [](auto i, auto j) { return Place(j, i); });
    if (of_source.columns != shape.columns)
      add("what lies in memory at " + other + "'s place",
          [=](auto i, auto j) { return at(i * shape.columns + j, of_source); });
  }
}

/// Every way to read one matrix from other addresses that kernels are known to make.
std::vector<Misreading> misreadings(const WholeProduct& x) {
  std::vector<Misreading> list;
  for (const Operand operand : {Operand::a, Operand::b, Operand::c, Operand::d}) {
    if (operand == Operand::c && (!x.c || x.beta == 0)) continue;
    const Shape shape = shape_of(x, operand);
    const std::string name(1, "ABCD"[static_cast<std::size_t>(operand)]);
    const auto add = [&](FaultKind kind, const std::string& text, IndexMap map) {
      list.push_back({operand, kind, name + text, std::move(map)});
    };
    if (shape.rows == shape.columns)
      add(FaultKind::transposed, " is transposed", [](auto i, auto j) { return Place(j, i); });
    else if (shape.rows > 1 && shape.columns > 1)
      add(FaultKind::transposed, " is read as if it were stored the other way round",
          [=](auto i, auto j) { return at(j * shape.rows + i, shape); });
    std::vector<std::int64_t> strides = {x.m, x.n, x.k};
    for (std::int64_t by = 1; by <= 32; by *= 2)
      strides.push_back(shape.columns - by), strides.push_back(shape.columns + by);
    for (const std::int64_t to : {8, 16, 32, 64, 128})
      strides.push_back((shape.columns + to - 1) / to * to);
    std::sort(strides.begin(), strides.end());
    strides.erase(std::unique(strides.begin(), strides.end()), strides.end());
    for (const std::int64_t stride : strides)
      if (stride > 0 && stride != shape.columns)
        add(FaultKind::wrong_stride,
            " has the leading dimension " + std::to_string(stride) + ", not " +
                std::to_string(shape.columns),
            [=, writes = operand == Operand::d](auto i, auto j) {
              const std::int64_t index = i * shape.columns + j;
              return writes ? Place(index / stride, index % stride) : at(i * stride + j, shape);
            });
    for (const std::int64_t by : {1, -1, 2, -2, 4, -4, 8, -8, 16, -16})
      add(FaultKind::wrong_stride,
          " begins " + std::to_string(std::abs(by)) + " elements " +
              (by > 0 ? "too late" : "too early"),
          [=](auto i, auto j) { return at(i * shape.columns + j + by, shape); });
    for (const std::int64_t by : {1, -1, 8, -8, 16, -16, 32, -32, 64, -64}) {
      const std::string where = std::to_string(std::abs(by)) + (by > 0 ? " further on" : " before");
      add(operand == Operand::c ? FaultKind::misplaced_c : FaultKind::wrong_stride,
          ": each row is the one " + where, [=](auto i, auto j) { return Place(i + by, j); });
      add(operand == Operand::c ? FaultKind::misplaced_c : FaultKind::wrong_stride,
          ": each column is the one " + where, [=](auto i, auto j) { return Place(i, j + by); });
    }
    for (const std::int64_t down : {8, 16, 32, 4})
      for (const std::int64_t across : {8, 16, 32, 4})
        if (shape.rows >= down && shape.columns >= across)
          add(FaultKind::transposed,
              " is transposed within each tile of " + std::to_string(down) + " x " +
                  std::to_string(across),
              transposed_tiles(down, across));
    if (operand == Operand::b || shape.rows < 2) continue;
    add(operand == Operand::c ? FaultKind::misplaced_c : FaultKind::permuted_rows,
        ": rows are in the opposite order",
        [=](auto i, auto j) { return Place(shape.rows - 1 - i, j); });
  }
  add_operand_mistakes(x, list);
  return list;
}

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
    if (operand != misreading.operand) return matrix(p, q);
    const auto [r, s] = misreading.map(p, q);
    const Operand source = misreading.source.value_or(operand);
    const Shape shape = shape_of(x, source);
    if (r < 0 || s < 0 || r >= shape.rows || s >= shape.columns) {
      is_inside = false;
      return 0.0;
    }
    const double value =
        source == operand ? matrix(r, s) : (source == Operand::a ? x.a : x.b)(r, s);
    return misreading.is_positive ? std::abs(value) : value;
  };
  bool is_inside = true;
  // D that is written elsewhere: the output here belongs to another place.
  std::int64_t p = i, q = j;
  if (misreading.operand == Operand::d) {
    std::tie(p, q) = misreading.map(i, j);
    if (p < 0 || q < 0 || p >= x.m || q >= x.n) return {};
  }
  double sum = 0, magnitude = 0, unknown = 0;
  std::int64_t outside = 0;
  for (std::int64_t k = 0; k < x.k; ++k) {
    bool both = true;
    const double of_a = read(Operand::a, x.a, p, k, both), of_b = read(Operand::b, x.b, k, q, both);
    if (!both) {
      if (++outside > x.k / 8) return {};
      unknown += std::abs(misreading.operand == Operand::a ? of_b : of_a) * largest;
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
  if (x.bias) wanted += x.bias(0, q), magnitude += std::abs(x.bias(0, q));
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
  const Misreading none = {Operand::d, FaultKind::unknown, "",
                           [](auto i, auto j) { return Place(i, j); }};
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
    const double largest = misreading.operand == Operand::a ? largest_a : largest_b;
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
             .operand = std::string(1, "abcd"[static_cast<std::size_t>(misreading.operand)]),
             .text = misreading.text}};
  }
  return {};
}

}  // namespace guardbit::emulator
