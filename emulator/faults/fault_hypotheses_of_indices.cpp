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

enum class Operand : std::uint8_t { a, b, c, d, bias };

/// How one matrix is read.
struct Reading {
  Operand operand;
  IndexMap map;
  /// the matrix that is read in its place, if it is not itself
  std::optional<Operand> source = {};
};

struct Misreading {
  FaultKind kind;
  std::string text;
  Reading reading;
  /// of another matrix
  std::optional<Reading> second = {};
  /// elements lose their sign
  bool is_positive = false;
  /// what lies outside is zero; else it is unknown
  bool reads_zeros = false;

  const Reading* of(Operand operand) const {
    if (reading.operand == operand) return &reading;
    return second && second->operand == operand ? &*second : nullptr;
  }
};

struct Shape {
  std::int64_t rows, columns;
};

Shape shape_of(const WholeProduct& x, Operand operand) {
  switch (operand) {
    case Operand::a: return {x.m, x.k};
    case Operand::b: return {x.k, x.n};
    case Operand::bias: return {1, x.n};
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

Place itself(std::int64_t i, std::int64_t j) { return {i, j}; }
Place turned(std::int64_t i, std::int64_t j) { return {j, i}; }

/// One operand's elements of K some places from the other's: a pipeline that is off by a stage.
void add_shifts_of_k(const WholeProduct& x, std::vector<Misreading>& list) {
  for (const Operand operand : {Operand::a, Operand::b}) {
    const bool is_a = operand == Operand::a;
    const char* const name = is_a ? "A" : "B";
    const char* const lines = is_a ? "column" : "row";
    for (const std::int64_t by :
         {1, -1, 2, -2, 4, -4, 8, -8, 16, -16, 32, -32, 64, -64, 128, -128}) {
      const std::int64_t count = std::abs(by), k = x.k;
      if (2 * count > k) continue;
      const std::string text = std::string(name) + ": each " + lines + " is the one " +
                               std::to_string(count) +
                               (by > 0 ? " further on, the last " : " before, the first ") +
                               (count == 1 ? "one is " : std::to_string(count) + " are ");
      const auto add = [&](FaultKind kind, const std::string& edge, auto place, bool zeros) {
        const IndexMap map = [=](auto i, auto j) {
          return is_a ? Place(i, place(j)) : Place(place(i), j);
        };
        list.push_back(
            {.kind = kind, .text = text + edge, .reading = {operand, map}, .reads_zeros = zeros});
      };
      add(
          FaultKind::permuted_k,
          std::string("the ") + (by > 0 ? "first" : "last") + (count == 1 ? " one" : " ones"),
          [=](std::int64_t l) { return (l + by + k) % k; }, false);
      add(
          FaultKind::stale_k, "zero", [=](std::int64_t l) { return l + by; }, true);
      add(
          FaultKind::stale_k, "right",
          [=](std::int64_t l) { return l + by < 0 || l + by >= k ? l : l + by; }, false);
    }
  }
}

/// One operand's elements of K in an order that registers or shared memory give them.
void add_orders_of_k(const WholeProduct& x, std::vector<Misreading>& list) {
  for (const Operand operand : {Operand::a, Operand::b}) {
    const bool is_a = operand == Operand::a;
    const std::int64_t k = x.k;
    // `place` knows k and the row of A or the column of B.
    const auto add = [&](FaultKind kind, const std::string& text, auto place) {
      const IndexMap map = [=](auto i, auto j) {
        const std::int64_t l = is_a ? j : i, from = place(l, is_a ? i : j);
        const std::int64_t used = from < k ? from : l;
        return is_a ? Place(i, used) : Place(used, j);
      };
      list.push_back({.kind = kind,
                      .text = std::string(is_a ? "A" : "B") + ": " + text,
                      .reading = {operand, map}});
    };
    for (const std::int64_t mask : {1, 2, 4, 8, 16, 32})
      add(FaultKind::permuted_k, "halves of each " + std::to_string(2 * mask) + " k are exchanged",
          [=](std::int64_t l, std::int64_t) { return l ^ mask; });
    for (const std::int64_t group : {4, 8, 16, 32}) {
      const std::string of_group = "each " + std::to_string(group) + " k are ";
      add(FaultKind::permuted_k, of_group + "in the opposite order",
          [=](std::int64_t l, std::int64_t) { return l ^ (group - 1); });
      for (std::int64_t step = 2; step < group; step *= 2)
        add(FaultKind::permuted_k,
            of_group + "taken in steps of " + std::to_string(step) + ": the second is " +
                std::to_string(step),
            [=](std::int64_t l, std::int64_t) {
              const std::int64_t in = l % group, count = group / step;
              return l - in + in % count * step + in / count;
            });
    }
    // Swizzled shared memory that is read as if it were not, or the other way round.
    for (const std::int64_t wide : {1, 2, 4, 8, 16})
      for (const std::int64_t lines : {1, 2, 4, 8})
        add(FaultKind::permuted_k,
            "k is taken from k xor " + (wide == 1 ? "" : std::to_string(wide) + " ") + "(" +
                (is_a ? "row" : "column") + (lines == 1 ? "" : " / " + std::to_string(lines)) +
                " mod 8), as a swizzle that one side does not undo",
            [=](std::int64_t l, std::int64_t line) { return l ^ (line / lines % 8 * wide); });
    add(FaultKind::transposed,
        "of each 16 x 16, the blocks of 8 x 8 beside the diagonal are exchanged",
        [=](std::int64_t l, std::int64_t) { return l; });
    list.back().reading.map = [shape = shape_of(x, operand)](auto i, auto j) {
      const bool is_beside = ((i ^ j) & 8) != 0;
      const Place other(i ^ 8, j ^ 8);
      return is_beside && other.first < shape.rows && other.second < shape.columns ? other
                                                                                   : Place(i, j);
    };
  }
}

/// Square operands in each other's place.
void add_exchanges(const WholeProduct& x, std::vector<Misreading>& list) {
  if (x.m != x.k || x.n != x.k) return;
  list.push_back({.kind = FaultKind::wrong_operand,
                  .text = "A and B are exchanged: D is B * A",
                  .reading = {Operand::a, itself, Operand::b},
                  .second = Reading{Operand::b, itself, Operand::a}});
  list.push_back({.kind = FaultKind::transposed,
                  .text = "A and B are both transposed: D is the transposed B * A",
                  .reading = {Operand::a, turned},
                  .second = Reading{Operand::b, turned}});
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
    list.push_back({.kind = FaultKind::wrong_sign,
                    .text = std::move(lost),
                    .reading = {operand, itself},
                    .is_positive = true});
    const auto add = [&](std::string what, IndexMap map) {
      what.append(" stands in the place of ").append(name);
      list.push_back({.kind = FaultKind::wrong_operand,
                      .text = std::move(what),
                      .reading = {operand, std::move(map), source}});
    };
    if (of_source.rows >= shape.rows && of_source.columns >= shape.columns) add(other, itself);
    if (of_source.columns >= shape.rows && of_source.rows >= shape.columns)
      add("the transposed " + other, turned);
    if (of_source.columns != shape.columns)
      add("what lies in memory at " + other + "'s place",
          [=](auto i, auto j) { return at(i * shape.columns + j, of_source); });
  }
}

/// Every way to read one matrix from other addresses that kernels are known to make.
std::vector<Misreading> misreadings(const WholeProduct& x) {
  std::vector<Misreading> list;
  add_shifts_of_k(x, list);
  add_orders_of_k(x, list);
  add_exchanges(x, list);
  if (x.bias)
    list.push_back({.kind = FaultKind::misplaced_c,
                    .text = "the bias is added by the number of the row, not of the column",
                    .reading = {Operand::bias, [](auto i, auto) { return Place(0, i); }}});
  for (const Operand operand : {Operand::a, Operand::b, Operand::c, Operand::d}) {
    if (operand == Operand::c && (!x.c || x.beta == 0)) continue;
    const Shape shape = shape_of(x, operand);
    const std::string name(1, "ABCD"[static_cast<std::size_t>(operand)]);
    const auto add = [&](FaultKind kind, const std::string& text, IndexMap map) {
      list.push_back({kind, name + text, {operand, std::move(map)}});
    };
    if (shape.rows == shape.columns)
      add(FaultKind::transposed, " is transposed", [](auto i, auto j) { return Place(j, i); });
    else if (shape.rows > 1 && shape.columns > 1)
      add(FaultKind::transposed, " is read as if it were stored the other way round",
          [=](auto i, auto j) { return at(j * shape.rows + i, shape); });
    if (operand == Operand::d && shape.rows > 1 && shape.columns > 1)
      add(FaultKind::transposed, " is stored column by column", [=](auto i, auto j) {
        const std::int64_t index = i * shape.columns + j;
        return Place(index % shape.rows, index / shape.rows);
      });
    std::vector<std::int64_t> strides = {x.m, x.n, x.k};
    for (std::int64_t by = 1; by <= 32; by *= 2)
      strides.push_back(shape.columns - by), strides.push_back(shape.columns + by);
    for (const std::int64_t to : {8, 16, 32, 64, 128})
      strides.push_back((shape.columns + to - 1) / to * to);
    std::sort(strides.begin(), strides.end());
    strides.erase(std::unique(strides.begin(), strides.end()), strides.end());
    for (const std::int64_t stride : strides) {
      if (stride <= 0 || stride == shape.columns) continue;
      const std::string text = " has the leading dimension " + std::to_string(stride) + ", not " +
                               std::to_string(shape.columns);
      if (stride > shape.columns && (operand == Operand::a || operand == Operand::b)) {
        add(FaultKind::wrong_stride, text + ", and what lies behind it is zero",
            [=](auto i, auto j) { return at(i * stride + j, shape); });
        list.back().reads_zeros = true;
        add(FaultKind::wrong_stride,
            " lies in memory with the leading dimension " + std::to_string(stride) +
                ", zeros between its rows, and is read with " + std::to_string(shape.columns),
            [=](auto i, auto j) {
              const std::int64_t index = i * shape.columns + j;
              return Place(index / stride, index % stride);
            });
        list.back().reads_zeros = true;
      }
      add(FaultKind::wrong_stride, text, [=, writes = operand == Operand::d](auto i, auto j) {
        const std::int64_t index = i * shape.columns + j;
        return writes ? Place(index / stride, index % stride) : at(i * stride + j, shape);
      });
    }
    for (const std::int64_t by : {1, -1, 2, -2, 3, -3, 4, -4, 8, -8, 16, -16})
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
    const Reading* const reading = misreading.of(operand);
    if (reading == nullptr) return matrix(operand == Operand::bias ? 0 : p, q);
    const auto [r, s] = reading->map(p, q);
    const Operand source = reading->source.value_or(operand);
    const Shape shape = shape_of(x, source);
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
  if (const Reading* const written = misreading.of(Operand::d)) {
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
  const Misreading none = {FaultKind::unknown, "", {Operand::d, itself}};
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
