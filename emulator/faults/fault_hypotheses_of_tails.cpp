#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "emulator/faults/fault_hypotheses.hpp"

// What a kernel adds that stands behind the end of K.
namespace guardbit::emulator {

namespace {

/// The last tile of K reaches into the next row of A, and meets there what the kernel holds of B:
/// any rows, which are found by least squares. Row `m - 1` has no next row.
Faults tail_of_a(const ProductNumbers& x, bool is_b) {
  const bool is_whole = x.rows.numbers.empty() || x.rows.numbers.back() + 1 == x.m();
  if (!is_whole || x.n() < 4) return {};
  const Expected asked = x.asked();
  for (const std::int64_t tile : {8, 16, 32, 64}) {
    // Up to the end of the last tile, or a tile too many.
    const std::int64_t rest = x.k() % tile, length = tile - rest, rows = x.m() - 1;
    if (length > x.k() || rows < length + 8) continue;
    const RealMatrix next = part(x.a, 1, rows, 0, length);
    RealMatrix error = part(x.d, 0, rows, 0, x.n());
    for (std::int64_t i = 0; i < rows; ++i)
      for (std::int64_t j = 0; j < x.n(); ++j) {
        error(i, j) = (error(i, j) - asked.result(i, j)) / x.alpha;
        if (!std::isfinite(error(i, j))) return {};
      }
    const RealMatrix behind =
        solve_positive(multiply_transposed(next, next), multiply_transposed(next, error));
    if (behind.empty()) continue;
    const ProductNumbers all_but_last = x.selected(all_numbers(rows), all_numbers(x.n()));
    const RealMatrix added = multiply(next, behind);
    Expected expected = all_but_last.asked();
    RealMatrix extra(rows, x.n());
    for (std::size_t i = 0; i < added.values.size(); ++i) {
      expected.result.values[i] += x.alpha * added.values[i];
      expected.magnitude.values[i] += 4 * std::abs(x.alpha * added.values[i]);
      // What is fitted is as exact as D's format is.
      extra.values[i] = 2 * x.rounding_of_d(expected.result.values[i]);
    }
    if (!agrees(all_but_last, expected, &extra)) continue;
    const std::string end = std::to_string(x.k()) + " to " + std::to_string(x.k() + length - 1);
    return {{.kind = FaultKind::unmasked_tail,
             .k = {{x.k(), x.k() + length}},
             .operand = is_b ? "b" : "a",
             .text = "k = " + end + ", behind the end of K, are added: there " +
                     (is_b ? "B" : "A") + " has the first elements of its next " +
                     (is_b ? "column" : "row") +
                     ", and the other operand is not zero (no mask at the last tile of " +
                     std::to_string(tile) + ")"}};
  }
  return {};
}

/// What a kernel may hold of B behind the end of K, in words that follow "B".
struct BehindB {
  const char* words;
  /// of B for element k + l
  std::int64_t (*row)(std::int64_t l, std::int64_t k, std::int64_t tile);
};
constexpr BehindB behind_b[] = {
    {"its last element again, as an index that is limited gives",
     [](std::int64_t, std::int64_t k, std::int64_t) { return k - 1; }},
    {"its first elements again", [](std::int64_t l, std::int64_t, std::int64_t) { return l; }},
    {"what the tile before left there",
     [](std::int64_t l, std::int64_t k, std::int64_t tile) { return k + l - tile; }},
};

/// The same where B has known rows there, for fewer rows of A than such rows.
Faults tail_of_both(const ProductNumbers& x, bool is_b) {
  const bool is_whole = x.rows.numbers.empty() || x.rows.numbers.back() + 1 == x.m();
  if (!is_whole || x.m() < 2) return {};
  const ProductNumbers all_but_last = x.selected(all_numbers(x.m() - 1), all_numbers(x.n()));
  const Expected asked = all_but_last.asked();
  for (const std::int64_t tile : {8, 16, 32, 64}) {
    const std::int64_t length = tile - x.k() % tile;
    if (tile > x.k()) continue;
    const RealMatrix next = part(x.a, 1, x.m() - 1, 0, length);
    for (const BehindB& behind : behind_b) {
      std::vector<std::int64_t> rows;
      for (std::int64_t l = 0; l < length; ++l) rows.push_back(behind.row(l, x.k(), tile));
      const RealMatrix b = selected(x.b, rows, all_numbers(x.n()));
      const auto size = [](double value) { return std::abs(value); };
      const RealMatrix more = multiply(next, b),
                       more_magnitude = multiply(mapped(next, size), mapped(b, size));
      Expected expected = asked;
      for (std::size_t i = 0; i < more.values.size(); ++i) {
        expected.result.values[i] += x.alpha * more.values[i];
        expected.magnitude.values[i] += std::abs(x.alpha) * more_magnitude.values[i];
      }
      if (!agrees(all_but_last, expected)) continue;
      const std::string end = std::to_string(x.k()) + " to " + std::to_string(x.k() + length - 1);
      return {{.kind = FaultKind::unmasked_tail,
               .k = {{x.k(), x.k() + length}},
               .operand = is_b ? "b" : "a",
               .text = "k = " + end + ", behind the end of K, are added: there " +
                       (is_b ? "B" : "A") + " has the first elements of its next " +
                       (is_b ? "column" : "row") + " and " + (is_b ? "A " : "B ") + behind.words +
                       " (no mask at the last tile of " + std::to_string(tile) + ")"}};
    }
  }
  return {};
}

}  // namespace

Faults find_unmasked_tail(const ProductNumbers& x) {
  const ProductNumbers turned = x.turned();
  if (Faults faults = tail_of_both(x, false); !faults.empty()) return faults;
  if (Faults faults = tail_of_both(turned, true); !faults.empty()) return faults;
  if (Faults faults = tail_of_a(x, false); !faults.empty()) return faults;
  return tail_of_a(turned, true);
}

}  // namespace guardbit::emulator
