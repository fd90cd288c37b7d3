#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "emulator/faults/fault_hypotheses.hpp"

namespace guardbit::emulator {

namespace {

/// A with which D agrees, where only its elements of K [begin, end) differ from what they should
/// be, in these rows.
struct FittedTile {
  std::int64_t begin = 0, end = 0;
  std::vector<std::int64_t> rows;
  RealMatrix a;
  std::int64_t length() const { return end - begin; }
};

/// The rows in which D is wrong.
std::vector<std::int64_t> wrong_rows(const ProductNumbers& x, const Disagreement& wrong) {
  std::vector<std::int64_t> rows;
  for (std::int64_t i = 0; i < x.m(); ++i) {
    const auto line = wrong.at.begin() + i * x.n();
    if (std::find(line, line + x.n(), true) != line + x.n()) rows.push_back(i);
  }
  return rows;
}

/// The change of A in a range of K with which the product is nearest to D, transposed, and the part
/// of the error that it leaves.
struct RangeFit {
  RealMatrix change;
  double left = 1;
};

RangeFit fit_range(const ProductNumbers& x, const RealMatrix& error, double size,
                   std::int64_t begin, std::int64_t end) {
  const RealMatrix b = part(x.b, begin, end - begin, 0, x.n());
  const RealMatrix right = multiply_by_transposed(b, error);
  RangeFit fit{solve_positive(multiply_by_transposed(b, b), right)};
  if (!fit.change.empty()) fit.left = 1 - dot(fit.change.values, right.values) / size;
  return fit;
}

ProductNumbers with_a(const ProductNumbers& x, const RealMatrix& a) {
  ProductNumbers y = x;
  y.a = a;
  y.multiply_operands();
  return y;
}

bool agrees_with(const ProductNumbers& x, const RealMatrix& a) {
  const Expected expected = with_a(x, a).asked();
  return agrees(x, expected);
}

/// The shortest range of K in which other elements of A explain D.
std::optional<FittedTile> fit_tile(const ProductNumbers& x) {
  constexpr double most_left = 0.02;
  FittedTile tile;
  tile.rows = wrong_rows(x, disagreement(x, x.asked()));
  if (tile.rows.empty()) return {};
  const ProductNumbers y = x.selected(tile.rows, all_numbers(x.n()));
  const Expected asked = y.asked();
  RealMatrix error = y.d;
  for (std::size_t at = 0; at < error.values.size(); ++at) {
    error.values[at] = (error.values[at] - asked.result.values[at]) / x.alpha;
    if (!std::isfinite(error.values[at])) return {};
  }
  const double size = dot(error.values, error.values);
  const auto accepted = [&](const RangeFit& fit, std::int64_t begin, std::int64_t end) {
    tile.begin = begin, tile.end = end, tile.a = x.a;
    RealMatrix a = y.a;
    for (std::int64_t i = 0; i < y.m(); ++i)
      for (std::int64_t k = begin; k < end; ++k) a(i, k) += fit.change(k - begin, i);
    for (std::int64_t i = 0; i < y.m(); ++i)
      std::copy_n(a.row(i), x.k(), tile.a.row(tile.rows[static_cast<std::size_t>(i)]));
    const Expected expected = with_a(y, a).asked();
    const RealMatrix blur =
        mapped(expected.result, [&](double value) { return y.rounding_of_d(value); });
    return agrees(y, expected, &blur);
  };
  for (std::int64_t length = 4; length <= 64 && 2 * length <= x.n() && length < x.k();
       length *= 2) {
    RangeFit best;
    std::int64_t at = 0;
    for (std::int64_t begin = 0; begin < x.k(); begin += length) {
      RangeFit fit = fit_range(y, error, size, begin, std::min(x.k(), begin + length));
      if (fit.left < best.left) best = std::move(fit), at = begin;
    }
    if (best.left < most_left && accepted(best, at, std::min(x.k(), at + length))) return tile;
  }
  return {};
}

/// Says what the elements of the tile are.
class TileWords {
 public:
  TileWords(const ProductNumbers& x, const FittedTile& tile, bool is_b)
      : x_(x), tile_(tile), operand_(is_b ? "b" : "a"), name_(is_b ? "B" : "A"), is_b_(is_b) {}

  Faults say() const;

 private:
  using Choice = std::function<double(std::int64_t i, std::int64_t k)>;
  /// A with the chosen numbers in the tile.
  RealMatrix with(const Choice& choice) const;
  /// For each element of the tile the nearest of its own number and another one.
  RealMatrix nearest(const std::function<double(double)>& other) const;
  Fault fault(FaultKind kind, const std::string& text) const;
  std::string where() const;
  Faults zeros() const;
  Faults signs() const;
  Faults transposition() const;
  Faults other_place() const;

  const ProductNumbers& x_;
  const FittedTile& tile_;
  std::string operand_, name_;
  bool is_b_;
};

RealMatrix TileWords::with(const Choice& choice) const {
  RealMatrix a = x_.a;
  for (const std::int64_t i : tile_.rows)
    for (std::int64_t k = tile_.begin; k < tile_.end; ++k) a(i, k) = choice(i, k);
  return a;
}

RealMatrix TileWords::nearest(const std::function<double(double)>& other) const {
  return with([&](std::int64_t i, std::int64_t k) {
    const double own = x_.a(i, k), seen = tile_.a(i, k);
    return std::abs(seen - own) <= std::abs(seen - other(own)) ? own : other(own);
  });
}

Fault TileWords::fault(FaultKind kind, const std::string& text) const {
  Fault result{.kind = kind, .operand = operand_, .text = text};
  result.k = {{tile_.begin, tile_.end}};
  if (std::ssize(tile_.rows) != x_.m())
    (is_b_ ? result.columns : result.rows) = x_.rows.places(tile_.rows);
  return result;
}

/// "rows 16 to 31, k = 8 to 15 of A"
std::string TileWords::where() const {
  std::string text;
  if (std::ssize(tile_.rows) != x_.m())
    text = lines_of(is_b_ ? "column" : "row", x_.rows.places(tile_.rows)) + ", ";
  return text + "k = " + text_of({{tile_.begin, tile_.end}}) + " of " + name_;
}

Faults TileWords::zeros() const {
  const RealMatrix a = nearest([](double) { return 0.0; });
  std::int64_t zeros = 0, all = 0;
  for (const std::int64_t i : tile_.rows)
    for (std::int64_t k = tile_.begin; k < tile_.end; ++k) {
      if (x_.a(i, k) == 0) continue;
      zeros += a(i, k) == 0 ? 1 : 0;
      ++all;
    }
  if (zeros == 0 || !agrees_with(x_, a)) return {};
  if (zeros == all)
    return {
        fault(FaultKind::missing_k, where() + " are taken as zero: their products are missing")};
  Fault result = fault(FaultKind::dropout, std::to_string(zeros) + " of " + std::to_string(all) +
                                               " elements of " + where() +
                                               " are taken as zero, here and there");
  result.value = static_cast<double>(zeros) / static_cast<double>(all);
  return {result};
}

Faults TileWords::signs() const {
  const RealMatrix a = nearest([](double own) { return -own; });
  bool is_positive = true, is_negative = true;
  std::int64_t changed = 0;
  for (std::size_t at = 0; at < a.values.size(); ++at) {
    if (a.values[at] == x_.a.values[at]) continue;
    ++changed;
    is_positive = is_positive && a.values[at] > 0;
    is_negative = is_negative && a.values[at] < 0;
  }
  if (changed == 0 || !agrees_with(x_, a)) return {};
  return {fault(FaultKind::wrong_sign,
                is_positive ? where() + " have lost their sign: all are positive"
                : is_negative
                    ? where() + " are all negative"
                    : std::to_string(changed) + " elements have the other sign, in " + where())};
}

Faults TileWords::transposition() const {
  const std::int64_t first = tile_.rows.front(), count = std::ssize(tile_.rows);
  if (x_.rows(tile_.rows.back()) - x_.rows(first) != count - 1) return {};
  for (const std::int64_t across : {8, 16, 4, 32, 64}) {
    for (const std::int64_t down : {8, 16, 4, 32, 64}) {
      if (tile_.length() % across != 0 || count % down != 0) continue;
      const RealMatrix a = with([&](std::int64_t i, std::int64_t k) {
        const std::int64_t row = (i - first) / down * down + first,
                           column = (k - tile_.begin) / across * across + tile_.begin;
        const std::int64_t index = (k - column) * down + (i - row);
        return x_.a(row + index / across, column + index % across);
      });
      if (a.values != x_.a.values && agrees_with(x_, a))
        return {fault(FaultKind::transposed, where() + " are transposed within tiles of " +
                                                 std::to_string(down) + " x " +
                                                 std::to_string(across))};
    }
  }
  return {};
}

Faults TileWords::other_place() const {
  const std::int64_t first = tile_.rows.front(), count = std::ssize(tile_.rows);
  if (tile_.rows.back() - first != count - 1) return {};
  for (std::int64_t row = 0; row + count <= x_.m(); row += count % 8 == 0 ? 8 : 1) {
    for (std::int64_t k = 0; k + tile_.length() <= x_.k(); k += 4) {
      double distance = 0, size = 0;
      for (std::int64_t i = 0; i < count && distance <= 0.1 * size + 1e-300; ++i)
        for (std::int64_t l = 0; l < tile_.length(); ++l) {
          const double seen = tile_.a(first + i, tile_.begin + l);
          distance += std::pow(seen - x_.a(row + i, k + l), 2);
          size += seen * seen;
        }
      if (distance > 0.1 * size) continue;
      const RealMatrix a = with([&](std::int64_t i, std::int64_t l) {
        return x_.a(row + i - first, k + l - tile_.begin);
      });
      if (!agrees_with(x_, a)) continue;
      std::vector<std::int64_t> rows;
      for (std::int64_t i = 0; i < count; ++i) rows.push_back(row + i);
      return {fault(FaultKind::moved_tile,
                    where() + " hold what belongs to " +
                        lines_of(is_b_ ? "column" : "row", x_.rows.places(rows)) +
                        ", k = " + text_of({{k, k + tile_.length()}}))};
    }
  }
  return {};
}

Faults TileWords::say() const {
  for (const auto look :
       {&TileWords::zeros, &TileWords::signs, &TileWords::transposition, &TileWords::other_place})
    if (Faults faults = (this->*look)(); !faults.empty()) return faults;
  return {fault(FaultKind::wrong_tile, where() + " are other numbers than they should be")};
}

Faults wrong_tile_of_a(const ProductNumbers& x, bool is_b) {
  constexpr std::int64_t fewest_columns = 8;
  if (x.n() < fewest_columns) return {};
  const std::optional<FittedTile> tile = fit_tile(x);
  return tile ? TileWords(x, *tile, is_b).say() : Faults{};
}

}  // namespace

Faults find_wrong_tile(const ProductNumbers& x) {
  if (Faults faults = wrong_tile_of_a(x, false); !faults.empty()) return faults;
  return wrong_tile_of_a(x.turned(), true);
}

}  // namespace guardbit::emulator
