#include <algorithm>
#include <cmath>
#include <utility>

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

}  // namespace

Faults find_unmasked_tail(const ProductNumbers& x) {
  if (Faults faults = tail_of_a(x, false); !faults.empty()) return faults;
  return tail_of_a(x.turned(), true);
}

}  // namespace guardbit::emulator
