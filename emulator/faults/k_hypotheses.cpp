#include <algorithm>
#include <cmath>
#include <optional>
#include <set>
#include <utility>

#include "emulator/faults/hypotheses.hpp"

namespace guardbit::emulator {

namespace {

std::string range_text(const std::vector<Places>& ranges) {
  std::string text;
  for (std::size_t i = 0; i < ranges.size() && i < 4; ++i) {
    if (!text.empty()) text += ", ";
    text += std::to_string(ranges[i].begin);
    if (ranges[i].end != ranges[i].begin + 1) text += " to " + std::to_string(ranges[i].end - 1);
  }
  if (ranges.size() > 4) text += " and " + std::to_string(ranges.size() - 4) + " further ranges";
  return text;
}

/// What was asked and, besides, sum over k of change[k] * a[i, k] * b[k, j].
Expected with_weights(const ProductNumbers& x, const std::vector<double>& change) {
  RealMatrix a = x.a;
  for (std::int64_t i = 0; i < a.rows; ++i)
    for (std::int64_t k = 0; k < a.columns; ++k) a(i, k) *= change[static_cast<std::size_t>(k)];
  const RealMatrix more = multiply(a, x.b);
  Expected result = x.asked();
  for (std::size_t i = 0; i < more.values.size(); ++i) {
    result.result.values[i] += x.alpha * more.values[i];
    result.magnitude.values[i] *= 2;
  }
  return result;
}

/// D less what was asked, in units of alpha; zero where D is no number.
RealMatrix error_of(const ProductNumbers& x) {
  const Expected asked = x.asked();
  RealMatrix e = x.d;
  for (std::size_t i = 0; i < e.values.size(); ++i) {
    e.values[i] = (e.values[i] - asked.result.values[i]) / x.alpha;
    if (!std::isfinite(e.values[i])) e.values[i] = 0;
  }
  return e;
}

/// For each k the factor d of a[i, k] * b[k, j] with which their sum is nearest to the error.
std::vector<double> fitted_weights(const ProductNumbers& x) {
  const RealMatrix e = error_of(x);
  const RealMatrix of_a = multiply_transposed(x.a, x.a), of_b = multiply_by_transposed(x.b, x.b);
  RealMatrix squares = of_a;
  for (std::size_t i = 0; i < squares.values.size(); ++i) squares.values[i] *= of_b.values[i];
  const RealMatrix eb = multiply_by_transposed(e, x.b);
  std::vector<double> right(static_cast<std::size_t>(x.k()));
  for (std::int64_t i = 0; i < x.m(); ++i)
    for (std::int64_t k = 0; k < x.k(); ++k)
      right[static_cast<std::size_t>(k)] += x.a(i, k) * eb(i, k);
  return solve_symmetric(std::move(squares), std::move(right));
}

std::vector<std::int64_t> at_value(const std::vector<double>& list, double value) {
  std::vector<std::int64_t> result;
  for (std::size_t i = 0; i < list.size(); ++i)
    if (list[i] == value) result.push_back(static_cast<std::int64_t>(i));
  return result;
}

Faults name_weights(const std::vector<double>& change) {
  const std::vector<Places> missing = places_of(at_value(change, -1)),
                            repeated = places_of(at_value(change, 1));
  const std::vector<Places> negated = places_of(at_value(change, -2));
  if (missing.size() == 1 && repeated.size() == 1 &&
      missing[0].end - missing[0].begin == repeated[0].end - repeated[0].begin)
    return {{.kind = FaultKind::stale_k,
             .k = missing,
             .operand = "both",
             .text = "in the places of k = " + range_text(missing) +
                     " stand the elements of k = " + range_text(repeated) + " of both operands"}};
  Faults faults;
  if (!missing.empty())
    faults.push_back({.kind = FaultKind::missing_k,
                      .k = missing,
                      .value = 0,
                      .text = "the products of k = " + range_text(missing) + " are missing"});
  if (!repeated.empty())
    faults.push_back({.kind = FaultKind::repeated_k,
                      .k = repeated,
                      .value = 2,
                      .text = "the products of k = " + range_text(repeated) + " are added twice"});
  if (!negated.empty())
    faults.push_back({.kind = FaultKind::negated_k,
                      .k = negated,
                      .value = -1,
                      .text = "the products of k = " + range_text(negated) + " are subtracted"});
  // Other weights, those of neighbours together.
  for (std::size_t k = 0; k < change.size(); ++k) {
    const double d = change[k];
    if (d == 0 || d == -1 || d == 1 || d == -2) continue;
    std::size_t end = k + 1;
    while (end < change.size() && std::abs(change[end] - d) < 0.01 * std::abs(1 + d) + 1e-6) ++end;
    const std::vector<Places> here = {
        {static_cast<std::int64_t>(k), static_cast<std::int64_t>(end)}};
    faults.push_back({.kind = FaultKind::weighted_k,
                      .k = here,
                      .value = 1 + d,
                      .text = "the products of k = " + range_text(here) + " have the factor " +
                              std::to_string(1 + d)});
    k = end - 1;
  }
  return faults;
}

/// source[l]: the k of the one operand that is multiplied with element l of the other, or -1 for
/// none.
using Sources = std::vector<std::int64_t>;

/// sum over l of a[i, source[l]] * b[l, j]; or, `of_b`, of a[i, l] * b[source[l], j].
Expected with_sources(const ProductNumbers& x, const Sources& source, bool of_b) {
  ProductNumbers y = x;
  for (std::int64_t l = 0; l < x.k(); ++l) {
    const std::int64_t from = source[static_cast<std::size_t>(l)];
    if (from == l) continue;
    if (of_b)
      for (std::int64_t j = 0; j < x.n(); ++j) y.b(l, j) = from < 0 ? 0 : x.b(from, j);
    else
      for (std::int64_t i = 0; i < x.m(); ++i) y.a(i, l) = from < 0 ? 0 : x.a(i, from);
  }
  y.product = multiply(y.a, y.b);
  for (double& value : y.product_magnitude.values) value *= 2;
  return y.asked();
}

/// The source of each l whose product with element l of the other operand is seen most in what D
/// has and `known` has not.
void choose_sources(const ProductNumbers& x, bool of_b, Sources& source) {
  ProductNumbers y = x;
  y.product = with_sources(x, source, of_b).result;
  // What is left of D with the sources so far, in units of alpha.
  RealMatrix left = x.d;
  for (std::size_t i = 0; i < left.values.size(); ++i) {
    left.values[i] = (left.values[i] - y.product.values[i]) / x.alpha;
    if (!std::isfinite(left.values[i])) left.values[i] = 0;
  }
  // seen(k, l): how much of a[:, k] b[l, :] is in it.
  const RealMatrix seen = multiply_by_transposed(multiply_transposed(x.a, left), x.b);
  std::vector<double> size_a(static_cast<std::size_t>(x.k())), size_b(size_a);
  for (std::int64_t k = 0; k < x.k(); ++k) {
    for (std::int64_t i = 0; i < x.m(); ++i)
      size_a[static_cast<std::size_t>(k)] += x.a(i, k) * x.a(i, k);
    for (std::int64_t j = 0; j < x.n(); ++j)
      size_b[static_cast<std::size_t>(k)] += x.b(k, j) * x.b(k, j);
  }
  for (std::int64_t l = 0; l < x.k(); ++l) {
    const std::int64_t now = source[static_cast<std::size_t>(l)];
    std::int64_t best = now;
    double most = 0.5;
    const auto amount = [&](std::int64_t from) {
      const std::int64_t k = of_b ? l : from, other = of_b ? from : l;
      return seen(k, other) /
             std::max(size_a[static_cast<std::size_t>(k)] * size_b[static_cast<std::size_t>(other)],
                      1e-300);
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

}  // namespace

Faults find_k_weights(const ProductNumbers& x) {
  if (static_cast<double>(x.m()) * static_cast<double>(x.n()) < 1.2 * static_cast<double>(x.k()))
    return {};
  constexpr std::int64_t longest = 4096;
  if (x.k() > longest) return {};
  std::vector<double> change = fitted_weights(x);
  for (double& d : change) {
    const double simple = std::round(d * 8) / 8;
    if (std::abs(d - simple) < 0.03) d = simple;
  }
  if (std::all_of(change.begin(), change.end(), [](double d) { return d == 0; })) return {};
  return agrees(x, with_weights(x, change)) ? name_weights(change) : Faults{};
}

Faults find_k_sources(const ProductNumbers& x) {
  constexpr std::int64_t longest = 2048;
  if (x.k() > longest) return {};
  for (const bool of_b : {false, true}) {
    Sources source(static_cast<std::size_t>(x.k()));
    for (std::int64_t l = 0; l < x.k(); ++l) source[static_cast<std::size_t>(l)] = l;
    bool found = false;
    for (int round = 0; round < 12 && !found; ++round) {
      const Sources before = source;
      choose_sources(x, of_b, source);
      found = agrees(x, with_sources(x, source, of_b));
      if (source == before) break;
    }
    if (!found) continue;
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
               .text = "k = " + range_text(places) + " are in another order in " + name +
                       " than in the other operand: " + first}};
    return {{.kind = FaultKind::stale_k,
             .k = places,
             .operand = operand,
             .text = "in the places of k = " + range_text(places) + " " + name +
                     " holds other elements: " + first}};
  }
  return {};
}

}  // namespace guardbit::emulator
