#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <utility>

#include "emulator/faults/fault_hypotheses.hpp"
#include "formats/support/stop.hpp"

// Elements of A, B, D or C that stand in other places of their fragment: registers that were loaded
// or stored in another order than the instruction's.
namespace guardbit::emulator {

namespace {

constexpr int bits_each = 4, all_bits = 2 * bits_each;
/// Rows and columns of a fragment.
constexpr std::int64_t side = 1 << bits_each;

/// An element's place in its fragment: its row above its column.
using Slot = unsigned;
Slot slot_of(std::int64_t row, std::int64_t column) {
  return static_cast<Slot>(row % side << bits_each | column % side);
}

/// Where each place's element comes from: the place with its bits in another order, or with some of
/// them the other way round.
struct Shuffle {
  /// [i]: bit i of the source is this bit of the place
  std::array<int, all_bits> bit = {0, 1, 2, 3, 4, 5, 6, 7};
  Slot flipped = 0;

  /// [place], as `source_of_bits` says
  std::array<std::uint8_t, 1U << all_bits> sources = {};

  Slot source(Slot place) const { return sources[place]; }
  Slot source_of_bits(Slot place) const {
    Slot from = flipped;
    for (std::size_t i = 0; i < all_bits; ++i)
      from ^= (place >> static_cast<unsigned>(bit[i]) & 1U) << i;
    return from;
  }
  int moved_bits() const {
    int count = std::popcount(flipped);
    for (int i = 0; i < all_bits; ++i) count += bit[static_cast<std::size_t>(i)] != i ? 1 : 0;
    return count;
  }
  /// Bits [begin, end) keep their places.
  bool keeps(int begin, int end) const {
    if ((flipped >> begin & ((1U << (end - begin)) - 1)) != 0) return false;
    for (int i = begin; i < end; ++i)
      if (bit[static_cast<std::size_t>(i)] != i) return false;
    return true;
  }
  bool keeps_rows() const { return keeps(bits_each, all_bits); }
  bool keeps_columns() const { return keeps(0, bits_each); }
  /// The bits of the row that are exchanged with the same bits of the column, if that is all.
  std::optional<unsigned> transposed_bits() const {
    unsigned exchanged = 0;
    for (int i = 0; i < all_bits; ++i) {
      const int from = bit[static_cast<std::size_t>(i)];
      if (from != i && from != (i + bits_each) % all_bits) return {};
      if (from != i) exchanged |= 1U << static_cast<unsigned>(i % bits_each);
    }
    if (flipped != 0) return {};
    return exchanged;
  }
};

/// All but the one that changes nothing, simple ones first.
const std::vector<Shuffle>& all_shuffles() {
  static const std::vector<Shuffle> all = [] {
    std::vector<Shuffle> list;
    for (Slot flipped = 1; flipped < Slot{1} << all_bits; ++flipped) {
      list.emplace_back();
      list.back().flipped = flipped;
    }
    Shuffle permuted;
    while (std::next_permutation(permuted.bit.begin(), permuted.bit.end()))
      list.push_back(permuted);
    for (Shuffle& shuffle : list)
      for (Slot place = 0; place < shuffle.sources.size(); ++place)
        shuffle.sources[place] = static_cast<std::uint8_t>(shuffle.source_of_bits(place));
    std::stable_sort(list.begin(), list.end(), [](const Shuffle& x, const Shuffle& y) {
      return x.moved_bits() < y.moved_bits();
    });
    return list;
  }();
  return all;
}

/// Where a line of D stands among those that are looked at; -1 where it does not.
class LineFinder {
 public:
  LineFinder(const LineNumbers& lines, std::int64_t count) {
    for (std::int64_t i = 0; i < count; ++i) {
      const auto number = static_cast<std::size_t>(lines(i));
      if (number >= at_.size()) at_.resize(number + 1, -1);
      at_[number] = i;
    }
  }
  std::int64_t operator()(std::int64_t number) const {
    return number < std::ssize(at_) ? at_[static_cast<std::size_t>(number)] : -1;
  }

 private:
  std::vector<std::int64_t> at_;
};

struct Sample {
  std::int64_t i = 0, j = 0;
  /// D less what was asked, and how far rounding may take it
  double error = 0, allowed = 0;
};

/// Wrong outputs that tell most: of those with the largest errors, some all over D.
std::vector<Sample> telling_outputs(const ProductNumbers& x, const Expected& asked,
                                    const Disagreement& wrong) {
  constexpr std::int64_t most = 12;
  std::vector<Sample> all, some;
  for (std::size_t at = 0; at < wrong.at.size(); ++at) {
    if (!wrong.at[at] || x.is_hidden(at)) continue;
    const double wanted = asked.result.values[at], seen = x.d.values[at];
    if (!std::isfinite(seen) || !std::isfinite(wanted)) return {};
    const double size = std::max(std::abs(seen), std::abs(wanted));
    const auto place = static_cast<std::int64_t>(at);
    all.push_back({place / x.n(), place % x.n(), seen - wanted,
                   2 * x.rounding_unit() * asked.magnitude.values[at] + x.rounding_of_d(size)});
  }
  std::sort(all.begin(), all.end(), [](const Sample& p, const Sample& q) {
    return std::abs(p.error) * q.allowed > std::abs(q.error) * p.allowed;
  });
  for (const std::int64_t at : spread((std::ssize(all) + 1) / 2, most))
    some.push_back(all[static_cast<std::size_t>(at)]);
  return some;
}

// ---- Fragments of an operand ----

/// The wrong rows of D, and the elements of K whose fragments of A are looked at.
class OperandShuffle {
 public:
  explicit OperandShuffle(const ProductNumbers& x)
      : x_(x),
        finder_(x.rows, x.m()),
        asked_(x.asked()),
        wrong_(disagreement(x, asked_)),
        region_(extent_of(wrong_, x.n())),
        samples_(telling_outputs(x, asked_, wrong_)) {}

  /// True if one explains D; `shuffle`, `begin` and `end` then say which.
  bool find();
  /// True if a tile that comes from elsewhere does: by `down` rows and `along` elements of K.
  bool find_moved();

  Shuffle shuffle;
  std::int64_t begin = 0, end = 0, down = 0, along = 0;
  const std::vector<std::int64_t>& rows() const { return region_.rows; }

 private:
  /// Element (row, k) of A; zero where it has none, NaN where it is not looked at.
  double element(std::int64_t row, std::int64_t k) const {
    const std::int64_t i = finder_(row);
    if (k >= x_.k()) return 0;
    if (i < 0) return row < x_.rows.count ? std::numeric_limits<double>::quiet_NaN() : 0;
    return x_.a(i, k);
  }
  /// [c * 256 + place]: the sum over fragments of what stands at `place` times what column c of the
  /// fragment meets of B, for one output.
  std::vector<double> sums_of(const Sample& sample, std::int64_t first, std::int64_t last) const;
  bool fits(const std::vector<double>& sums, const Sample& sample, const Shuffle& tried) const;
  using Source = std::function<double(std::int64_t row, std::int64_t k)>;
  bool explains_all(const Source& source, std::int64_t first, std::int64_t last) const;
  Source source_of(const Shuffle& tried) const;
  bool find_moved_in(std::int64_t first, std::int64_t last);
  bool find_in(std::int64_t first, std::int64_t last);

  const ProductNumbers& x_;
  LineFinder finder_;
  Expected asked_;
  Disagreement wrong_;
  Region region_;
  std::vector<Sample> samples_;
};

constexpr std::size_t slots = std::size_t{1} << all_bits;

std::vector<double> OperandShuffle::sums_of(const Sample& sample, std::int64_t first,
                                            std::int64_t last) const {
  std::vector<double> sums(slots * side, 0.0);
  const std::int64_t top = x_.rows(sample.i) / side * side;
  for (std::int64_t r = 0; r < side; ++r)
    for (std::int64_t k = first; k < last; k += side)
      for (std::int64_t c = 0; c < side; ++c) {
        const double value = element(top + r, k + c);
        if (value == 0) continue;
        for (std::int64_t l = 0; l < std::min(side, x_.k() - k); ++l)
          sums[static_cast<std::size_t>(l) * slots + slot_of(r, c)] +=
              x_.alpha * value * x_.b(k + l, sample.j);
      }
  return sums;
}

bool OperandShuffle::fits(const std::vector<double>& sums, const Sample& sample,
                          const Shuffle& tried) const {
  double change = 0;
  for (std::int64_t c = 0; c < side; ++c) {
    const Slot place = slot_of(x_.rows(sample.i), c);
    const std::size_t column = static_cast<std::size_t>(c) * slots;
    change += sums[column + tried.source(place)] - sums[column + place];
  }
  return std::abs(change - sample.error) <= sample.allowed;
}

OperandShuffle::Source OperandShuffle::source_of(const Shuffle& tried) const {
  return [this, tried](std::int64_t row, std::int64_t k) {
    const auto from = static_cast<std::int64_t>(tried.source(slot_of(row, k)));
    return element(row / side * side + from / side, k / side * side + from % side);
  };
}

bool OperandShuffle::explains_all(const Source& source, std::int64_t first,
                                  std::int64_t last) const {
  ProductNumbers y = x_.selected(region_.rows, region_.columns);
  for (std::int64_t i = 0; i < y.m(); ++i)
    for (std::int64_t k = first; k < std::min(last, x_.k()); ++k) {
      y.a(i, k) = source(y.rows(i), k);
      if (std::isnan(y.a(i, k))) return false;
    }
  y.multiply_operands();
  return agrees(y, y.asked());
}

bool OperandShuffle::find_moved_in(std::int64_t first, std::int64_t last) {
  constexpr std::int64_t step = 8;
  const std::int64_t top = x_.rows(region_.rows.front()), bottom = x_.rows(region_.rows.back());
  const std::int64_t rows = x_.rows(x_.m() - 1) + 1;
  const auto fits_at = [&](const Sample& sample, std::int64_t by_rows, std::int64_t by_k) {
    const std::int64_t row = x_.rows(sample.i);
    double change = 0;
    for (std::int64_t k = first; k < last; ++k)
      change += (element(row + by_rows, k + by_k) - x_.a(sample.i, k)) * x_.b(k, sample.j);
    return std::abs(x_.alpha * change - sample.error) <= sample.allowed;
  };
  for (std::int64_t by_rows = -(top / step * step); bottom + by_rows < rows; by_rows += step) {
    formats::check_stop();
    for (std::int64_t by_k = -(first / step * step); last + by_k <= x_.k(); by_k += step) {
      if (by_rows == 0 && by_k == 0) continue;
      const bool may_be = std::all_of(samples_.begin(), samples_.end(), [&](const Sample& sample) {
        return fits_at(sample, by_rows, by_k);
      });
      if (!may_be || !explains_all([&](std::int64_t row,
                                       std::int64_t k) { return element(row + by_rows, k + by_k); },
                                   first, last))
        continue;
      begin = first, end = last, down = by_rows, along = by_k;
      return true;
    }
  }
  return false;
}

bool OperandShuffle::find_moved() {
  constexpr std::int64_t most_ranges = 64;
  if (samples_.size() < 4) return false;
  for (std::int64_t length = side; length < x_.k() && length <= 8 * side; length *= 2) {
    if (x_.k() / length > most_ranges) continue;
    for (std::int64_t at = 0; at + length <= x_.k(); at += length)
      if (find_moved_in(at, at + length)) return true;
    if (x_.k() % length != 0 && find_moved_in(x_.k() - length, x_.k())) return true;
  }
  return false;
}

bool OperandShuffle::find_in(std::int64_t first, std::int64_t last) {
  std::vector<std::vector<double>> sums;
  const auto sums_at = [&](std::size_t i) -> const std::vector<double>& {
    while (sums.size() <= i) sums.push_back(sums_of(samples_[sums.size()], first, last));
    return sums[i];
  };
  formats::check_stop();
  for (const Shuffle& tried : all_shuffles()) {
    bool holds = true;
    for (std::size_t i = 0; i < samples_.size() && holds; ++i)
      holds = fits(sums_at(i), samples_[i], tried);
    if (!holds || !explains_all(source_of(tried), first, last)) continue;
    shuffle = tried, begin = first, end = std::min(last, x_.k());
    return true;
  }
  return false;
}

bool OperandShuffle::find() {
  constexpr std::int64_t most_ranges = 64;
  if (samples_.size() < 4 || x_.k() < side) return false;
  const std::int64_t whole = x_.k() / side * side;
  if (find_in(0, whole)) return true;
  if (whole < x_.k() && find_in(0, whole + side)) return true;
  for (std::int64_t length = side; length < x_.k() && length <= 8 * side; length *= 2) {
    if (x_.k() / length > most_ranges) continue;
    for (std::int64_t at = 0; at + length <= whole; at += length)
      if (find_in(at, at + length)) return true;
  }
  if (x_.k() / side > most_ranges) return false;
  for (std::int64_t at = side; at < whole; at += side)
    if (find_in(0, at) || find_in(at, whole)) return true;
  return false;
}

/// "row 16, k = 0 holds row 24, k = 8"
std::string example_of(const Shuffle& shuffle, const char* row, const char* column) {
  for (Slot place = 0; place < slots; ++place) {
    const Slot from = shuffle.source(place);
    if (from == place) continue;
    const auto text = [&](Slot at) {
      return std::string(row) + " " + std::to_string(at / side) + ", " + column +
             std::to_string(at % side);
    };
    return text(place) + " of each holds " + text(from);
  }
  return {};
}

/// The kind and the words of a shuffle of lines and of what stands along them.
std::pair<FaultKind, std::string> meaning_of(const Shuffle& shuffle, FaultKind if_rows,
                                             FaultKind if_columns, const char* row,
                                             const char* column) {
  const std::string example = example_of(shuffle, row, column);
  if (const auto exchanged = shuffle.transposed_bits()) {
    // Low bits are tiles; high ones blocks in a fragment.
    const unsigned low = *exchanged + 1;
    if (std::has_single_bit(low)) {
      const std::string tile = std::to_string(low);
      return {FaultKind::transposed, "are transposed within tiles of " + tile + " x " + tile};
    }
    return {FaultKind::transposed, "are transposed within their fragments in part: " + example};
  }
  const std::string words = "stand in other places of their fragments of 16 x 16: " + example;
  if (shuffle.keeps_rows()) return {if_columns, words};
  if (shuffle.keeps_columns()) return {if_rows, words};
  return {FaultKind::permuted_fragment, words};
}

Faults shuffled_operand(const ProductNumbers& x, bool is_b) {
  OperandShuffle search(x);
  const bool is_shuffled = search.find();
  if (!is_shuffled && !search.find_moved()) return {};
  const std::vector<Places> lines = x.rows.places(search.rows()), k = {{search.begin, search.end}};
  const char* const line = is_b ? "column" : "row";
  Fault fault{.operand = is_b ? "b" : "a"};
  const bool are_all = std::ssize(search.rows()) == x.m();
  fault.text = (are_all ? "" : lines_of(line, lines) + ", ") + "k = " + text_of(k) + " of " +
               (is_b ? "B " : "A ");
  if (is_shuffled) {
    const auto [kind, words] =
        meaning_of(search.shuffle, is_b ? FaultKind::permuted_columns : FaultKind::permuted_rows,
                   FaultKind::permuted_k, line, "k = ");
    fault.kind = kind;
    fault.text += words;
  } else {
    const auto moved = [](std::vector<Places> places, std::int64_t by) {
      for (Places& range : places) range.begin += by, range.end += by;
      return places;
    };
    fault.kind = search.down == 0 ? FaultKind::stale_k : FaultKind::moved_tile;
    fault.text += "hold what belongs to " +
                  (search.down == 0 ? "" : lines_of(line, moved(lines, search.down)) + ", ") +
                  "k = " + text_of(moved(k, search.along));
  }
  fault.k = k;
  if (!are_all) (is_b ? fault.columns : fault.rows) = lines;
  return {fault};
}

// ---- Fragments of D ----

/// D where `moving` comes from other places of each fragment and `fixed` from its own. Elements
/// that are right as they are stay, in fragments that D's edge cuts.
class ResultShuffle {
 public:
  ResultShuffle(const ProductNumbers& x, const Expected& moving, const Expected& fixed,
                const Disagreement& wrong, const std::vector<Sample>& samples)
      : x_(x),
        moving_(moving),
        fixed_(fixed),
        wrong_(wrong),
        samples_(samples),
        rows_(x.rows, x.m()),
        columns_(x.columns, x.n()) {}

  std::optional<Shuffle> find() const {
    for (const Shuffle& shuffle : all_shuffles()) {
      const bool may_be = std::all_of(samples_.begin(), samples_.end(), [&](const Sample& sample) {
        return std::abs(moved(sample.i, sample.j, shuffle).first - sample.error -
                        moving_.result(sample.i, sample.j)) <= sample.allowed;
      });
      if (may_be && explains_all(shuffle)) return shuffle;
    }
    return {};
  }

 private:
  /// Result and magnitude of what comes to (i, j).
  std::pair<double, double> moved(std::int64_t i, std::int64_t j, const Shuffle& shuffle) const {
    const std::int64_t row = x_.rows(i), column = x_.columns(j);
    const auto from = static_cast<std::int64_t>(shuffle.source(slot_of(row, column)));
    const std::int64_t p = rows_(row / side * side + from / side),
                       q = columns_(column / side * side + from % side);
    if (p < 0 || q < 0) return {0, 0};
    return {moving_.result(p, q), moving_.magnitude(p, q)};
  }
  bool is_cut(std::int64_t i, std::int64_t j) const {
    return rows_(x_.rows(i) / side * side + side - 1) < 0 ||
           columns_(x_.columns(j) / side * side + side - 1) < 0;
  }
  bool explains_all(const Shuffle& shuffle) const {
    const Region region = extent_of(wrong_, x_.n());
    Expected expected = moving_;
    for (const std::int64_t i : region.rows)
      for (const std::int64_t j : region.columns) {
        if (is_cut(i, j) && !wrong_.at[static_cast<std::size_t>(i * x_.n() + j)]) continue;
        const auto [result, magnitude] = moved(i, j, shuffle);
        expected.result(i, j) = result, expected.magnitude(i, j) = magnitude;
      }
    for (std::size_t at = 0; at < expected.result.values.size(); ++at) {
      expected.result.values[at] += fixed_.result.values[at];
      expected.magnitude.values[at] += fixed_.magnitude.values[at];
    }
    return agrees(x_, expected);
  }

  const ProductNumbers& x_;
  const Expected &moving_, &fixed_;
  const Disagreement& wrong_;
  const std::vector<Sample>& samples_;
  LineFinder rows_, columns_;
};

Faults shuffled_result(const ProductNumbers& x) {
  const Expected asked = x.asked(), product = x.product_alone(), addend = asked - product,
                 nothing{RealMatrix(x.m(), x.n()), RealMatrix(x.m(), x.n())};
  const Disagreement wrong = disagreement(x, asked);
  const std::vector<Sample> samples = telling_outputs(x, asked, wrong);
  if (samples.size() < 4) return {};
  const auto fault = [&](const Shuffle& shuffle, const std::string& what, const char* operand) {
    const auto [kind, words] = meaning_of(shuffle, FaultKind::permuted_rows,
                                          FaultKind::permuted_columns, "row", "column ");
    const Region region = extent_of(wrong, x.n());
    return Faults{{.kind = kind,
                   .rows = x.rows.places(region.rows),
                   .columns = x.columns.places(region.columns),
                   .operand = operand,
                   .text = text_of(x, region) + " of " + what + " " + words}};
  };
  if (const auto s = ResultShuffle(x, asked, nothing, wrong, samples).find())
    return fault(*s, "D", "d");
  if (x.c.empty() && x.bias.empty()) return {};
  if (const auto s = ResultShuffle(x, product, addend, wrong, samples).find())
    return fault(*s, "the product, before C is added,", "d");
  if (x.c.empty()) return {};
  if (const auto s = ResultShuffle(x, addend, product, wrong, samples).find()) {
    Faults faults = fault(*s, "C", "c");
    if (faults[0].kind != FaultKind::transposed) faults[0].kind = FaultKind::misplaced_c;
    return faults;
  }
  return {};
}

}  // namespace

Faults find_shuffled_fragments(const ProductNumbers& x) {
  if (Faults faults = shuffled_result(x); !faults.empty()) return faults;
  if (Faults faults = shuffled_operand(x, false); !faults.empty()) return faults;
  return shuffled_operand(x.turned(), true);
}

}  // namespace guardbit::emulator
