#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <utility>

#include "emulator/faults/fault_hypotheses.hpp"

// Numbers that are added to lines of D, and factors of lines.
namespace guardbit::emulator {

namespace {

/// A factor and a constant for each line.
struct LineFit {
  std::vector<double> factor, constant;
};

/// The nearest factor of `base` in each row of `d`, and the nearest constant, where they are asked
/// for. The constant alone is the median, which a few wrong elements do not move.
LineFit fit_rows(const RealMatrix& d, const RealMatrix& base, bool with_factor,
                 bool with_constant) {
  LineFit fit;
  for (std::int64_t i = 0; i < d.rows; ++i) {
    double n = 0, x = 0, y = 0, xx = 0, xy = 0;
    std::vector<double> left;
    for (std::int64_t j = 0; j < d.columns; ++j) {
      const double p = base(i, j), q = d(i, j);
      if (!std::isfinite(p) || !std::isfinite(q)) continue;
      n += 1, x += p, y += q, xx += p * p, xy += p * q;
      left.push_back(q - p);
    }
    double factor = 1, constant = 0;
    if (n > 0 && with_factor && with_constant) {
      const double variance = xx - x * x / n;
      factor = variance > 0 ? (xy - x * y / n) / variance : 1;
      constant = (y - factor * x) / n;
    } else if (n > 0 && with_factor) {
      factor = xx > 0 ? xy / xx : 1;
    } else if (n > 0) {
      constant = median(left);
    }
    fit.factor.push_back(factor);
    fit.constant.push_back(constant);
  }
  return fit;
}

/// "each column of D has a factor of its own: 1.5, 2, 0.25, ..."; "columns 16 to 31 of D have the
/// factor 0.5"
std::string factor_text(const std::string& which, bool is_plural, const std::string& what,
                        const std::vector<double>& factors,
                        const std::vector<std::int64_t>& changed) {
  constexpr std::size_t most_shown = 3;
  std::string text = which + " of " + what + (is_plural ? " have " : " has ");
  std::vector<double> used;
  used.reserve(changed.size());
  for (const std::int64_t i : changed) used.push_back(factors[static_cast<std::size_t>(i)]);
  const double middle = simple_near(median(used));
  if (std::all_of(used.begin(), used.end(), [&](double factor) {
        return std::abs(factor - middle) <= 1e-3 * std::abs(middle);
      }))
    return text + "the factor " + text_of(middle, 4);
  text += is_plural ? "factors of their own" : "a factor of its own";
  const std::size_t shown = std::min(most_shown, changed.size());
  for (std::size_t i = 0; i < shown; ++i)
    text.append(i == 0 ? ": " : ", ")
        .append(text_of(factors[static_cast<std::size_t>(changed[i])], 4));
  return changed.size() > shown ? text + ", ..." : text;
}

/// Rows that agree with `base` and `fixed` as they are.
std::vector<bool> right_rows(const ProductNumbers& x, Expected base, const Expected& fixed) {
  for (std::size_t i = 0; i < base.result.values.size(); ++i) {
    base.result.values[i] += fixed.result.values[i];
    base.magnitude.values[i] += fixed.magnitude.values[i];
  }
  const Disagreement wrong = disagreement(x, base);
  std::vector<bool> right(static_cast<std::size_t>(x.m()), true);
  for (std::size_t at = 0; at < wrong.at.size(); ++at)
    if (wrong.at[at]) right[at / static_cast<std::size_t>(x.n())] = false;
  return right;
}

/// The factor with which these numbers are as good as what is added to the changed lines, a number
/// of its own for each; [i] is that of changed line i.
std::optional<double> factor_that_fits(const std::vector<double>& numbers,
                                       const std::vector<double>& added,
                                       const std::vector<std::int64_t>& changed) {
  double product = 0, square = 0, size = 0, left = 0;
  for (std::size_t i = 0; i < changed.size(); ++i) {
    product += added[static_cast<std::size_t>(changed[i])] * numbers[i];
    square += numbers[i] * numbers[i];
  }
  if (changed.size() < 3 || square == 0) return {};
  const double factor = simple_near(product / square);
  for (std::size_t i = 0; i < changed.size(); ++i) {
    const double number = added[static_cast<std::size_t>(changed[i])];
    size += number * number;
    left += std::pow(number - factor * numbers[i], 2);
  }
  if (!(left < 1e-3 * size)) return {};
  return factor;
}

/// The factor of the bias that explains what is added; the right one is 1.
std::optional<double> factor_of_bias(const ProductNumbers& x, const std::vector<double>& added,
                                     const std::vector<std::int64_t>& changed) {
  if (x.bias.columns != 1 || x.bias.rows != x.m()) return {};
  std::vector<double> numbers;
  numbers.reserve(changed.size());
  for (const std::int64_t i : changed)
    numbers.push_back(x.bias.values[static_cast<std::size_t>(i)]);
  const auto factor = factor_that_fits(numbers, added, changed);
  return factor ? std::optional(1 + *factor) : std::nullopt;
}

/// The factor of each row's sum over A that explains what is added: what the other operand has too
/// much.
std::optional<double> factor_of_sums(const ProductNumbers& x, const std::vector<double>& added,
                                     const std::vector<std::int64_t>& changed) {
  if (2 * std::ssize(changed) < x.m()) return {};
  std::vector<double> sums;
  for (const std::int64_t i : changed) {
    double& sum = sums.emplace_back();
    for (std::int64_t k = 0; k < x.k(); ++k) sum += x.alpha * x.a(i, k);
  }
  return factor_that_fits(sums, added, changed);
}

/// The number that is added to several changed lines, if it is one.
std::optional<double> common_number(const std::vector<double>& added,
                                    const std::vector<std::int64_t>& changed) {
  // Of noise that D's roundings leave.
  constexpr double close = 1e-2;
  if (changed.size() < 2) return {};
  std::vector<double> numbers;
  numbers.reserve(changed.size());
  for (const std::int64_t i : changed) numbers.push_back(added[static_cast<std::size_t>(i)]);
  const double middle = simple_near(median(numbers));
  const bool is_one = std::all_of(numbers.begin(), numbers.end(), [&](double number) {
    return std::abs(number - middle) <= close * std::abs(middle);
  });
  return is_one ? std::optional(middle) : std::nullopt;
}

std::string zero_point_text(double zero_point, bool are_columns) {
  const std::string number = text_of(zero_point);
  return std::string("a number for each ") + (are_columns ? "column" : "row") +
         " is added: " + number + " times the sum of " + (are_columns ? "B's column" : "A's row") +
         ", as if " + number + " were added to each element of " + (are_columns ? "A" : "B") +
         " (a zero point)";
}

/// Rows of D are rows of `base`, each with a factor and a constant of its own, and `fixed`.
Faults fitted_rows(const ProductNumbers& x, const Expected& base, const Expected& fixed,
                   bool are_columns, const char* what) {
  RealMatrix d = difference(x.d, fixed.result);
  // What ReLU made zero says nothing of a number.
  const bool is_relu = x.activation == Activation::relu;
  for (std::size_t at = 0; at < d.values.size(); ++at)
    if (is_relu ? x.is_hidden(at) : x.is_left_out(at))
      d.values[at] = std::numeric_limits<double>::quiet_NaN();
  const std::vector<bool> right = right_rows(x, base, fixed);
  for (const auto& [with_factor, with_constant] :
       {std::pair{false, true}, {true, false}, {true, true}}) {
    LineFit fit = fit_rows(d, base.result, with_factor, with_constant);
    for (std::size_t i = 0; i < right.size(); ++i)
      if (right[i]) fit.factor[i] = 1, fit.constant[i] = 0;
    Expected expected = base;
    RealMatrix extra(x.m(), x.n());
    double clearest = 0;  // change by the fit, in roundings of D
    std::vector<std::int64_t> changed;
    for (std::int64_t i = 0; i < x.m(); ++i) {
      const double p = fit.factor[static_cast<std::size_t>(i)],
                   q = fit.constant[static_cast<std::size_t>(i)];
      double rounding = 0, change = 0;
      for (std::int64_t j = 0; j < x.n(); ++j) {
        const double moved = p * base.result(i, j) + q;
        change += std::abs(moved - base.result(i, j));
        expected.result(i, j) = moved + fixed.result(i, j);
        expected.magnitude(i, j) =
            std::abs(p) * base.magnitude(i, j) + std::abs(q) + fixed.magnitude(i, j);
        rounding += x.rounding_of_d(expected.result(i, j));
      }
      // A fitted number is as exact as D's format is in the line.
      const double blur = rounding / static_cast<double>(x.n());
      double size = 1e-300;
      for (std::int64_t j = 0; j < x.n(); ++j) size = std::max(size, std::abs(base.result(i, j)));
      for (std::int64_t j = 0; j < x.n(); ++j)
        extra(i, j) = with_factor ? blur * (1 + std::abs(base.result(i, j)) / size) : blur;
      const double clear = change / std::max(rounding, 1e-300);
      clearest = std::max(clearest, clear);
      if (clear > 4) changed.push_back(i);
    }
    if (clearest <= 4 || !agrees(x, expected, &extra)) continue;
    const std::string line = are_columns ? "column" : "row";
    const std::vector<Places> places =
        std::ssize(changed) == x.m() ? std::vector<Places>{} : x.rows.places(changed);
    Faults faults;
    const auto add = [&](FaultKind kind, const std::string& text) {
      Fault fault{.kind = kind, .name = are_columns ? "columns" : "rows", .text = text};
      (are_columns ? fault.columns : fault.rows) = places;
      faults.push_back(fault);
    };
    const std::string which = places.empty() ? "each " + line : lines_of(line, places);
    if (with_factor)
      add(FaultKind::line_factor,
          factor_text(which, !places.empty() && !is_one(places), what, fit.factor, changed));
    const auto bias =
        with_factor || !are_columns ? std::nullopt : factor_of_bias(x, fit.constant, changed);
    const auto zero_point = with_factor ? std::nullopt : factor_of_sums(x, fit.constant, changed);
    if (zero_point) {
      add(FaultKind::bias, zero_point_text(*zero_point, are_columns));
      faults.back().value = zero_point;
    } else if (bias) {
      add(FaultKind::bias, (*bias == 0   ? "the bias is not added"
                            : *bias == 2 ? "the bias is added twice"
                                         : "the bias has the factor " + text_of(*bias)) +
                               (places.empty() ? "" : " in " + lines_of(line, places)));
      faults.back().value = bias;
    } else if (with_constant) {
      const auto number = with_factor ? std::nullopt : common_number(fit.constant, changed);
      add(FaultKind::bias, (number ? "the number " + text_of(*number) + " is added"
                                   : "a number for each " + line + " is added") +
                               (places.empty() ? "" : ", in " + lines_of(line, places)));
      faults.back().value = number;
    }
    return faults;
  }
  return {};
}

Faults changed_rows(const ProductNumbers& x, bool are_columns) {
  constexpr std::int64_t shortest = 6;
  if (x.n() < shortest || x.m() < 2) return {};
  const Expected nothing = {RealMatrix(x.m(), x.n()), RealMatrix(x.m(), x.n())};
  if (Faults faults = fitted_rows(x, x.asked(), nothing, are_columns, "D"); !faults.empty())
    return faults;
  if (x.c.empty() && x.bias.empty()) return {};
  const Expected product = x.product_alone(), addend = x.asked() - product;
  return fitted_rows(x, product, addend, are_columns, "the product");
}

}  // namespace

Faults find_line_changes(const ProductNumbers& x) {
  if (Faults faults = changed_rows(x.turned(), true); !faults.empty()) return faults;
  return changed_rows(x, false);
}

}  // namespace guardbit::emulator
