#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "emulator/faults/first_faults.hpp"
#include "formats/support/stop.hpp"

namespace guardbit::emulator {

namespace {

/// The product with the factor weight[k] at each k, times alpha, and the addends.
Expected with_weights(const ProductNumbers& x, const std::vector<double>& weight) {
  ProductNumbers y = x;
  for (std::int64_t i = 0; i < y.m(); ++i)
    for (std::int64_t k = 0; k < y.k(); ++k) y.a(i, k) *= weight[static_cast<std::size_t>(k)];
  y.product = multiply(y.a, x.b);
  // Kernels may add a wrong product and take it off again.
  for (double& value : y.product_magnitude.values) value *= 2;
  return y.asked();
}

/// D less what is expected, in units of alpha; zero where D is no number.
RealMatrix errors(const ProductNumbers& x, const Expected& expected) {
  return mapped(difference(x.d, expected.result), [&](double value) { return value / x.alpha; });
}

/// What is fitted besides the factors of K: nothing, or a number for each row or column of D.
enum class Besides : std::uint8_t { nothing, rows, columns };

RealMatrix without_means(RealMatrix x, Besides besides) {
  switch (besides) {
    case Besides::nothing: break;
    case Besides::rows: return without_row_means(std::move(x));
    case Besides::columns: return transposed(without_row_means(transposed(x)));
  }
  return x;
}

/// For each k the factor d of a[i, k] * b[k, j] with which their sum is nearest to the error.
std::vector<double> fitted_weights(const ProductNumbers& x, int steps,
                                   Besides besides = Besides::nothing) {
  const RealMatrix a = transposed(x.a);
  // [k]: the sum over all outputs of e[i, j] * a[i, k] * b[k, j]
  const auto seen = [&](const RealMatrix& e) {
    const RealMatrix of_a = multiply(a, e);
    std::vector<double> sums(static_cast<std::size_t>(x.k()));
    for (std::int64_t k = 0; k < x.k(); ++k)
      for (std::int64_t j = 0; j < x.n(); ++j)
        sums[static_cast<std::size_t>(k)] += of_a(k, j) * x.b(k, j);
    return sums;
  };
  const auto known = [&](RealMatrix e) {
    for (std::size_t at = 0; at < e.values.size(); ++at)
      if (x.is_hidden(at)) e.values[at] = 0;
    return without_means(std::move(e), besides);
  };
  const auto times = [&](const std::vector<double>& w) {
    RealMatrix weighted = x.b;
    for (std::int64_t k = 0; k < x.k(); ++k)
      for (std::int64_t j = 0; j < x.n(); ++j) weighted(k, j) *= w[static_cast<std::size_t>(k)];
    return seen(known(multiply(x.a, weighted)));
  };
  std::vector<double> diagonal = squares_of_rows(a);
  const std::vector<double> size_b = squares_of_rows(x.b);
  for (std::size_t k = 0; k < diagonal.size(); ++k) diagonal[k] *= size_b[k];
  return solve_symmetric(times, diagonal, seen(known(errors(x, x.asked()))), steps);
}

/// Of a factor: none, or that its products are missing, repeated or negated.
double nearest_change(double d) {
  double nearest = 0;
  for (const double other : {-1.0, 1.0, -2.0})
    if (std::abs(d - other) < std::abs(d - nearest)) nearest = other;
  return nearest;
}

std::vector<std::int64_t> at_value(const std::vector<double>& list, double value) {
  std::vector<std::int64_t> result;
  for (std::size_t i = 0; i < list.size(); ++i)
    if (list[i] == value) result.push_back(static_cast<std::int64_t>(i));
  return result;
}

Faults name_weights(const std::vector<double>& change) {
  const auto k = std::ssize(change);
  const std::vector<Places> missing = places_of(at_value(change, -1)),
                            repeated = places_of(at_value(change, 1)),
                            negated = places_of(at_value(change, -2));
  if (missing.size() == 1 && repeated.size() == 1 &&
      missing[0].end - missing[0].begin == repeated[0].end - repeated[0].begin)
    return {{.kind = FaultKind::stale_k,
             .k = missing,
             .operand = "both",
             .text = "in the places of k = " + k_text(missing, k) +
                     " stand the elements of k = " + text_of(repeated) + " of both operands"}};
  Faults faults;
  const auto add = [&](FaultKind kind, const std::vector<Places>& places, double weight,
                       const char* what) {
    if (!places.empty())
      faults.push_back({.kind = kind,
                        .k = places,
                        .value = weight,
                        .text = "the products of k = " + k_text(places, k) + what});
  };
  add(FaultKind::missing_k, missing, 0, " are missing");
  add(FaultKind::repeated_k, repeated, 2, " are added twice");
  add(FaultKind::negated_k, negated, -1, " are subtracted");
  // Other weights, all k of one weight together.
  std::vector<std::int64_t> left;
  for (std::int64_t l = 0; l < k; ++l) {
    const double d = change[static_cast<std::size_t>(l)];
    if (d != 0 && d != -1 && d != 1 && d != -2) left.push_back(l);
  }
  while (!left.empty()) {
    const double d = change[static_cast<std::size_t>(left.front())];
    std::vector<std::int64_t> here, others;
    for (const std::int64_t l : left) {
      const bool same =
          std::abs(change[static_cast<std::size_t>(l)] - d) < 0.01 * std::abs(1 + d) + 1e-6;
      (same ? here : others).push_back(l);
    }
    add(FaultKind::weighted_k, places_of(here), 1 + d,
        (" have the factor " + text_of(1 + d)).c_str());
    left = std::move(others);
  }
  constexpr std::size_t most = 8;
  if (faults.size() <= most) return faults;
  std::vector<std::int64_t> all;
  for (std::int64_t l = 0; l < k; ++l)
    if (change[static_cast<std::size_t>(l)] != 0) all.push_back(l);
  return {
      {.kind = FaultKind::weighted_k,
       .k = places_of(all),
       .text = "the products of k = " + k_text(places_of(all), k) + " have factors of their own"}};
}

/// Elements of K that have another factor, all alike.
struct KRange {
  std::int64_t begin = 0, end = 0;
  /// of the factor: -1 missing, 1 twice, -2 negated
  double change = 0;
};

/// The range that takes most away from the error of these outputs, if it is nearly all.
std::optional<KRange> best_range(const ProductNumbers& x, const RealMatrix& error,
                                 const std::vector<std::int64_t>& outputs) {
  const std::int64_t k = x.k();
  // prefix[o][l]: what the first l elements of K give of output o, in units of alpha.
  std::vector<std::vector<double>> prefix;
  std::vector<double> wrong;
  double all = 0;
  for (const std::int64_t o : outputs) {
    const std::int64_t i = o / x.n(), j = o % x.n();
    std::vector<double>& sums = prefix.emplace_back(1, 0.0);
    for (std::int64_t l = 0; l < k; ++l) sums.push_back(sums.back() + x.a(i, l) * x.b(l, j));
    wrong.push_back(error(i, j));
    all += wrong.back() * wrong.back();
  }
  double least = all / 16;
  KRange best;
  const auto look = [&](std::int64_t begin, std::int64_t end) {
    for (const double change : {-1.0, 1.0, -2.0}) {
      double left = 0;
      for (std::size_t o = 0; o < wrong.size() && left < least; ++o) {
        const double rest = wrong[o] - change * (prefix[o][static_cast<std::size_t>(end)] -
                                                 prefix[o][static_cast<std::size_t>(begin)]);
        left += rest * rest;
      }
      if (left < least) least = left, best = {begin, end, change};
    }
  };
  // Every tail and head, and tiles.
  const std::int64_t grain = k <= 256 ? 1 : std::max<std::int64_t>(8, (k / 512 + 7) / 8 * 8);
  for (std::int64_t begin = 1; begin < k; ++begin) look(begin, k), look(0, begin);
  for (std::int64_t begin = 0; begin < k; begin += grain) {
    formats::check_stop();
    for (std::int64_t end = begin + grain; end < k; end += grain) look(begin, end);
  }
  if (best.change == 0) return {};
  return best;
}

}  // namespace

Faults find_k_weights(const ProductNumbers& x) {
  const auto outputs = static_cast<double>(x.m() * x.n());
  if (outputs < 1.2 * static_cast<double>(x.k()) || x.k() < 2) return {};
  constexpr int steps = 60;
  std::vector<double> weight = fitted_weights(x, steps);
  for (double& w : weight) w += 1;
  // What most have in common is another alpha, unless enough have the right one.
  double common = simple_near(median(weight));
  const auto right =
      std::count_if(weight.begin(), weight.end(), [](double w) { return std::abs(w - 1) < 0.02; });
  if (right * 8 >= x.k()) common = 1;
  if (!(std::abs(common) > 1e-3) || !std::isfinite(common)) return {};
  std::vector<double> change, whole_change, whole_weight;
  for (double& w : weight) {
    double d = w / common - 1;
    whole_change.push_back(nearest_change(d));
    whole_weight.push_back(common * (1 + whole_change.back()));
    const double simple = std::round(d * 8) / 8;
    if (std::abs(d - simple) < 0.03) d = simple;
    change.push_back(d);
    w = common * (1 + d);
  }
  if (std::all_of(change.begin(), change.end(), [](double d) { return d == 0; })) return {};
  const auto named = [&](const std::vector<double>& changes) {
    Faults faults = name_weights(changes);
    if (common != 1) faults.push_back(alpha_fault(x, common * x.alpha));
    return faults;
  };
  // Where D is narrow and outputs are few, the noise of a factor is more than what is rounded off.
  const bool is_whole =
      std::any_of(whole_change.begin(), whole_change.end(), [](double d) { return d != 0; });
  if (is_whole && agrees(x, with_weights(x, whole_weight))) return named(whole_change);
  if (!agrees(x, with_weights(x, weight))) return {};
  // Where some k hardly count, their fitted factors may be anything: missing, repeated and negated
  // ones alone are simpler.
  std::vector<double> simple = change, simple_weight = weight;
  for (std::size_t l = 0; l < change.size(); ++l)
    if (change[l] != -1 && change[l] != 1 && change[l] != -2)
      simple[l] = 0, simple_weight[l] = common;
  const bool is_simple = simple != change &&
                         std::any_of(simple.begin(), simple.end(), [](double d) { return d != 0; });
  if (is_simple && agrees(x, with_weights(x, simple_weight))) change = simple;
  return named(change);
}

namespace {

FirstFaults guess_k_weights(const ProductNumbers& x, const WholeProduct& whole, Besides besides) {
  // What another fault does to a fitted factor at most, and to most.
  constexpr double most_blur = 0.45, blur = 0.15;
  // Numbers of their own are taken off exactly, and what they leave is, too.
  const int steps = besides == Besides::nothing ? 10 : 40;
  std::vector<double> change = fitted_weights(x, steps, besides), weight;
  std::int64_t changed = 0;
  double squares = 0;
  for (double& d : change) {
    const double simple = nearest_change(d);
    if (!(std::abs(d - simple) < most_blur)) return {};
    squares += std::pow(d - simple, 2);
    d = simple;
    weight.push_back(1 + d);
    changed += d != 0 ? 1 : 0;
  }
  if (changed == 0 || 2 * changed > x.k()) return {};
  if (squares > blur * blur * static_cast<double>(x.k())) return {};
  FirstFault first{name_weights(change), x, whole};
  first.is_apart = besides != Besides::nothing;
  RealMatrix& a = first.mended.a;
  for (std::int64_t i = 0; i < a.rows; ++i)
    for (std::int64_t k = 0; k < a.columns; ++k) a(i, k) *= weight[static_cast<std::size_t>(k)];
  first.mended.multiply_operands();
  first.whole.a = [weight, a = whole.a](std::int64_t i, std::int64_t k) {
    return weight[static_cast<std::size_t>(k)] * a(i, k);
  };
  return {first};
}

}  // namespace

FirstFaults guess_k_weights(const ProductNumbers& x, const WholeProduct& whole) {
  const auto outputs = static_cast<double>(x.m() * x.n());
  if (outputs < 1.2 * static_cast<double>(x.k()) || x.k() < 2) return {};
  FirstFaults list;
  for (const Besides besides : {Besides::nothing, Besides::rows, Besides::columns}) {
    // What is hidden has no place in a mean.
    if (besides != Besides::nothing && (x.activation != Activation::none || !x.left_out.empty()))
      break;
    for (FirstFault& first : guess_k_weights(x, whole, besides)) list.push_back(std::move(first));
    if (!list.empty()) break;
  }
  return list;
}

Faults find_k_range(const ProductNumbers& x) {
  constexpr std::int64_t fewest = 8, most = 48;
  const std::int64_t outputs = x.m() * x.n();
  if (outputs < fewest || x.k() < 2) return {};
  std::vector<std::int64_t> some;
  for (std::int64_t o = 0; o < outputs; o += std::max<std::int64_t>(1, outputs / most))
    if (!x.is_left_out(static_cast<std::size_t>(o))) some.push_back(o);
  const auto range = best_range(x, errors(x, x.asked()), some);
  if (!range) return {};
  std::vector<double> weight(static_cast<std::size_t>(x.k()), 1.0), change(weight.size());
  for (std::int64_t l = range->begin; l < range->end; ++l) {
    change[static_cast<std::size_t>(l)] = range->change;
    weight[static_cast<std::size_t>(l)] += range->change;
  }
  return agrees(x, with_weights(x, weight)) ? name_weights(change) : Faults{};
}

Faults find_scattered_range(const ProductNumbers& x) {
  constexpr std::int64_t fewest = 12, most = 48;
  Expected expected = x.asked();
  const Disagreement wrong = disagreement(x, expected);
  if (wrong.count < fewest || 2 * wrong.count > std::ssize(wrong.at) || x.k() < 2) return {};
  std::vector<std::int64_t> all, some;
  for (std::size_t at = 0; at < wrong.at.size(); ++at)
    if (wrong.at[at]) all.push_back(static_cast<std::int64_t>(at));
  for (const std::int64_t i : spread(std::ssize(all), most))
    some.push_back(all[static_cast<std::size_t>(i)]);
  const auto range = best_range(x, errors(x, expected), some);
  if (!range) return {};
  std::vector<double> change(static_cast<std::size_t>(x.k()));
  for (std::int64_t l = range->begin; l < range->end; ++l)
    change[static_cast<std::size_t>(l)] = range->change;
  for (const std::int64_t at : all) {
    const std::int64_t i = at / x.n(), j = at % x.n();
    double sum = 0;
    for (std::int64_t l = range->begin; l < range->end; ++l) sum += x.a(i, l) * x.b(l, j);
    expected.result(i, j) += x.alpha * range->change * sum;
    expected.magnitude(i, j) *= 2;
  }
  if (!agrees(x, expected)) return {};
  Faults faults = name_weights(change);
  for (Fault& fault : faults)
    fault.text = "here and there, in " + std::to_string(wrong.count) + " of " +
                 std::to_string(std::ssize(wrong.at)) + " elements: " + fault.text +
                 ", as where parts of a sum race";
  return faults;
}

}  // namespace guardbit::emulator
