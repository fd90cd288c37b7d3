#include <algorithm>
#include <cmath>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "emulator/faults/first_faults.hpp"

// Elements of K of one operand in the places of others.
namespace guardbit::emulator {

namespace {

double squares_of(const RealMatrix& x) { return dot(x.values, x.values); }

/// source[l]: the k of the one operand that is multiplied with element l of the other, or -1 for
/// none.
using Sources = std::vector<std::int64_t>;

/// The product with elements source[l] of A, or of B, in the places of l.
ProductNumbers with_sources(const ProductNumbers& x, const Sources& source, bool of_b) {
  ProductNumbers y = x;
  for (std::int64_t l = 0; l < x.k(); ++l) {
    const std::int64_t from = source[static_cast<std::size_t>(l)];
    if (from == l) continue;
    if (of_b)
      for (std::int64_t j = 0; j < x.n(); ++j) y.b(l, j) = from < 0 ? 0 : x.b(from, j);
    else
      for (std::int64_t i = 0; i < x.m(); ++i) y.a(i, l) = from < 0 ? 0 : x.a(i, from);
  }
  y.multiply_operands();
  return y;
}

/// The source of each l whose product with element l of the other operand is seen most in what D
/// has and `known`, the product with the sources so far, has not.
void choose_sources(const ProductNumbers& x, bool of_b, const Expected& known, Sources& source) {
  const RealMatrix left = difference(x.d, known.result);
  // What numbers of one sign have in common would hide where they differ.
  constexpr std::int64_t fewest = 8;
  const auto centred = [](RealMatrix matrix) {
    return matrix.columns < fewest ? matrix : without_row_means(std::move(matrix));
  };
  const RealMatrix a = centred(transposed(x.a)), b = centred(x.b);
  // seen(k, l): how much of a[:, k] b[l, :] is in it.
  const RealMatrix seen = multiply_by_transposed(multiply(a, left), b);
  const std::vector<double> size_a = squares_of_rows(a), size_b = squares_of_rows(b);
  for (std::int64_t l = 0; l < x.k(); ++l) {
    const std::int64_t now = source[static_cast<std::size_t>(l)];
    std::int64_t best = now;
    double most = 0.5;
    const auto amount = [&](std::int64_t from) {
      const std::int64_t k = of_b ? l : from, other = of_b ? from : l;
      const double size =
          size_a[static_cast<std::size_t>(k)] * size_b[static_cast<std::size_t>(other)];
      return seen(k, other) / x.alpha / std::max(size, 1e-300);
    };
    const double now_seen = now < 0 ? 0 : amount(now);
    // The present source is right if what is left holds nothing of it; wrong if it holds the
    // opposite.
    for (std::int64_t from = 0; from < x.k(); ++from) {
      if (from == now) continue;
      const double gain = (amount(from) - now_seen) / 2;
      if (gain > most) best = from, most = gain;
    }
    source[static_cast<std::size_t>(l)] = best;
  }
}

/// The fault of an operand whose element k is that of source[k].
Faults moved_k(const ProductNumbers& x, const Sources& source, bool of_b) {
  std::vector<std::int64_t> moved;
  for (std::int64_t l = 0; l < x.k(); ++l)
    if (source[static_cast<std::size_t>(l)] != l) moved.push_back(l);
  const std::vector<Places> places = places_of(moved);
  const std::set<std::int64_t> used(source.begin(), source.end());
  const std::string operand = of_b ? "b" : "a", name = of_b ? "B" : "A";
  const std::string first = std::to_string(moved.front()) + " meets " +
                            std::to_string(source[static_cast<std::size_t>(moved.front())]) +
                            " of " + name;
  if (static_cast<std::int64_t>(used.size()) == x.k())
    return {{.kind = FaultKind::permuted_k,
             .k = places,
             .operand = operand,
             .text = "k = " + k_text(places, x.k()) + " are in another order in " + name +
                     " than in the other operand: " + first}};
  return {{.kind = FaultKind::stale_k,
           .k = places,
           .operand = operand,
           .text = "in the places of k = " + k_text(places, x.k()) + " " + name +
                   " holds other elements: " + first}};
}

/// What an operand seems to hold at each k, by looking again and again.
std::optional<Sources> likest_sources(const ProductNumbers& x, bool of_b) {
  constexpr int rounds = 6;
  constexpr double much = 0.7;
  Sources source = all_numbers(x.k());
  Expected expected = x.asked();
  const double all = squares_of(difference(x.d, expected.result));
  double left = all;
  for (int round = 0; round < rounds; ++round) {
    Sources next = source;
    choose_sources(x, of_b, expected, next);
    if (next == source) break;
    Expected better = with_sources(x, next, of_b).asked();
    const double now = squares_of(difference(x.d, better.result));
    if (now > left) break;
    source = std::move(next), expected = std::move(better), left = now;
  }
  if (left > much * all) return {};
  return source;
}

}  // namespace

FirstFaults guess_k_sources(const ProductNumbers& x, const WholeProduct& whole) {
  constexpr std::int64_t longest = 512;
  FirstFaults list;
  if (x.k() > longest || x.m() * x.n() < 2 * x.k()) return list;
  for (const bool of_b : {false, true}) {
    const auto source = likest_sources(x, of_b);
    if (!source) continue;
    list.push_back({moved_k(x, *source, of_b), with_sources(x, *source, of_b), whole});
    list.back().whole.m = 0;
  }
  return list;
}

namespace {

/// A tile of one operand that seems to be another of its tiles.
struct StaleTile {
  Sources source;
  bool of_b;
};

std::optional<StaleTile> likest_tile(const ProductNumbers& x) {
  constexpr std::int64_t farthest = 4;
  const ProductNumbers few = x.selected(spread(x.m(), 12), spread(x.n(), 12));
  const RealMatrix error =
      mapped(difference(few.d, few.asked().result), [&](double value) { return value / x.alpha; });
  const double all = squares_of(error);
  if (!(all > 0)) return {};
  struct Best {
    double left;
    std::int64_t tile = 0, begin = 0, from = 0;
    bool of_b = false;
  } best{0.05 * all};
  // What the outputs change by where a tile of the operand is that of `from`.
  const auto look = [&](std::int64_t tile, std::int64_t begin, std::int64_t from, bool of_b) {
    double left = 0;
    for (std::int64_t i = 0; i < few.m(); ++i)
      for (std::int64_t j = 0; j < few.n() && left < best.left; ++j) {
        double change = 0;
        for (std::int64_t l = 0; l < tile; ++l)
          change += of_b ? few.a(i, begin + l) * (few.b(from + l, j) - few.b(begin + l, j))
                         : (few.a(i, from + l) - few.a(i, begin + l)) * few.b(begin + l, j);
        left += std::pow(error(i, j) - change, 2);
      }
    if (left < best.left) best = {left, tile, begin, from, of_b};
  };
  for (const std::int64_t tile : {128, 64, 32, 16, 8})
    for (std::int64_t begin = 0; begin + tile <= x.k(); begin += tile)
      for (std::int64_t by = -farthest; by <= farthest; ++by) {
        const std::int64_t from = begin + by * tile;
        if (by == 0 || from < 0 || from + tile > x.k()) continue;
        for (const bool of_b : {false, true}) look(tile, begin, from, of_b);
      }
  if (best.tile == 0) return {};
  StaleTile result{all_numbers(x.k()), best.of_b};
  for (std::int64_t l = 0; l < best.tile; ++l)
    result.source[static_cast<std::size_t>(best.begin + l)] = best.from + l;
  return result;
}

}  // namespace

Faults find_stale_tile(const ProductNumbers& x) {
  const auto tile = likest_tile(x);
  return tile && agrees(x, with_sources(x, tile->source, tile->of_b).asked())
             ? moved_k(x, tile->source, tile->of_b)
             : Faults{};
}

FirstFaults guess_stale_tile(const ProductNumbers& x, const WholeProduct& whole) {
  const auto tile = likest_tile(x);
  if (!tile) return {};
  FirstFault first{moved_k(x, tile->source, tile->of_b), with_sources(x, tile->source, tile->of_b),
                   whole};
  first.whole.m = 0;
  return {first};
}

namespace {

/// Element l of B meets l + by of A, and behind A's end its first ones: a start that is off, or
/// halves that are exchanged. A few outputs tell, where more sources would need more outputs than
/// K.
Faults find_rotation(const ProductNumbers& x) {
  const std::int64_t k = x.k();
  const ProductNumbers few = x.selected(spread(x.m(), 3), spread(x.n(), 3));
  const Expected asked = few.asked();
  const auto may_be = [&](std::int64_t by) {
    bool is_told = false;
    for (std::int64_t i = 0; i < few.m(); ++i)
      for (std::int64_t j = 0; j < few.n(); ++j) {
        if (few.is_hidden(static_cast<std::size_t>(i * few.n() + j))) continue;
        double change = -few.product(i, j);
        for (std::int64_t l = 0; l < k; ++l) change += few.a(i, (l + by) % k) * few.b(l, j);
        const double wanted = asked.result(i, j) + x.alpha * change;
        const double allowed =
            2 * x.rounding_unit() * asked.magnitude(i, j) + x.rounding_of_d(wanted);
        if (!(std::abs(few.d(i, j) - wanted) <= allowed)) return false;
        is_told = true;
      }
    return is_told;
  };
  for (std::int64_t by = 1; by < k; ++by) {
    if (!may_be(by)) continue;
    Sources source;
    for (std::int64_t l = 0; l < k; ++l) source.push_back((l + by) % k);
    if (agrees(x, with_sources(x, source, false).asked())) return moved_k(x, source, false);
  }
  return {};
}

}  // namespace

Faults find_k_sources(const ProductNumbers& x) {
  constexpr std::int64_t longest = 2048;
  // Where it leads to D, each round but the first takes away much of what is left.
  constexpr double enough = 0.95;
  if (x.k() > longest) return {};
  if (Faults faults = find_rotation(x); !faults.empty()) return faults;
  for (const bool of_b : {false, true}) {
    Sources source = all_numbers(x.k());
    Expected expected = x.asked();
    double left = squares_of(difference(x.d, expected.result));
    for (int round = 0; round < 12; ++round) {
      const Sources before = source;
      choose_sources(x, of_b, expected, source);
      if (source == before) break;
      expected = with_sources(x, source, of_b).asked();
      if (agrees(x, expected)) return moved_k(x, source, of_b);
      const double now = squares_of(difference(x.d, expected.result));
      if (round > 0 && now > enough * left) break;
      left = now;
    }
  }
  return {};
}

}  // namespace guardbit::emulator
