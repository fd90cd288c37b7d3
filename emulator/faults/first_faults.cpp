#include "emulator/faults/first_faults.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <utility>

#include "formats/support/words.hpp"

namespace guardbit::emulator {

namespace {

/// The factors of the product, of one and of C that most outputs show, and the typical distance of
/// an output from their sum.
struct CommonFactors {
  std::vector<double> factors;
  double left = 0;
};

/// Outputs that are far off are left out again and again. No factors if they do not explain most of
/// D.
CommonFactors common_factors(const ProductNumbers& x) {
  constexpr int rounds = 8;
  constexpr double near = 3, most_left = 0.6;
  const std::vector<double> ones(x.d.values.size(), 1.0);
  std::vector<const std::vector<double>*> columns = {&x.product.values, &ones};
  if (!x.c.empty()) columns.push_back(&x.c.values);
  const std::vector<double> rest = x.d_without_bias();
  std::vector<double> off(rest.size());
  std::vector<double> factors, sizes;
  double enough = std::numeric_limits<double>::infinity(), typical = 0;
  for (int round = 0; round < rounds; ++round) {
    factors = nearest_factors(columns, rest,
                              [&](std::size_t i) { return !x.is_hidden(i) && off[i] <= enough; });
    std::vector<double> distances;
    sizes.clear();
    for (std::size_t i = 0; i < rest.size(); ++i) {
      double left = rest[i];
      for (std::size_t column = 0; column < columns.size(); ++column)
        left -= factors[column] * (*columns[column])[i];
      off[i] = std::isfinite(left) ? std::abs(left) : std::numeric_limits<double>::infinity();
      if (x.is_hidden(i)) continue;
      distances.push_back(off[i]);
      sizes.push_back(std::abs(rest[i]));
    }
    typical = median(std::move(distances));
    enough = near * typical;
  }
  if (!(typical < most_left * median(std::move(sizes)))) return {};
  return {factors, typical};
}

/// Leaves these outputs out of the product.
void leave_out(const std::vector<bool>& outputs, const Expected& asked, ProductNumbers& x) {
  x.left_out = outputs;
  for (std::size_t at = 0; at < outputs.size(); ++at)
    if (outputs[at]) x.d.values[at] = asked.result.values[at];
}

bool is_blank(const Fault& fault) {
  return fault.kind == FaultKind::not_written || fault.kind == FaultKind::not_a_number;
}

}  // namespace

double typical_error(const ProductNumbers& x) {
  const Expected asked = x.asked();
  std::vector<double> errors;
  for (std::size_t at = 0; at < x.d.values.size(); ++at) {
    const double error = std::abs(x.d.values[at] - asked.result.values[at]);
    if (!x.is_hidden(at) && std::isfinite(error)) errors.push_back(error);
  }
  return median(std::move(errors));
}

bool is_nearer(FirstFault& first, double typical) {
  constexpr double clearly = 0.995, much = 0.1;
  first.left = typical_error(first.mended);
  // Numbers that were fitted line by line are nearer anyway.
  const Fault& fault = first.faults[0];
  if (fault.kind == FaultKind::bias && !fault.value) return first.left < much * typical;
  // Of the outputs that these leave out, nothing was wrong but that.
  const bool is_of_a_part = fault.operand == "d" && !fault.rows.empty() && !fault.columns.empty();
  return first.is_apart || is_of_a_part || fault.kind == FaultKind::clamped ||
         first.left < clearly * typical;
}

bool may_follow(const Faults& second, const Faults& first) {
  // Many explain anything, and so do errors of narrow sums where a guess is not exact.
  constexpr std::size_t most = 2;
  return second.size() <= most && std::all_of(second.begin(), second.end(), [&](const Fault& x) {
           if (x.kind == FaultKind::unknown) return false;
           if (x.kind == FaultKind::narrow_accumulator && !x.value) return false;
           return std::all_of(first.begin(), first.end(), [&](const Fault& y) {
             const bool is_of_moved =
                 (y.kind == FaultKind::permuted_rows && x.operand == "a" && !x.rows.empty()) ||
                 (y.kind == FaultKind::permuted_columns && x.operand == "b" && !x.columns.empty());
             return !is_of_moved && (x.kind != y.kind || y.kind == FaultKind::not_written ||
                                     y.kind == FaultKind::not_a_number);
           });
         });
}

FirstFaults guess_missing_addend(const ProductNumbers& x, const WholeProduct& whole) {
  FirstFaults list;
  if (!x.c.empty() && x.beta != 0) {
    FirstFault& first = list.emplace_back(FirstFault{{missing_c_fault()}, x, whole});
    first.mended.c = {}, first.mended.beta = 0;
    first.whole.c = {}, first.whole.beta = 0;
  }
  if (!x.bias.empty()) {
    const Fault fault{
        .kind = FaultKind::bias, .value = 0, .name = "columns", .text = "the bias is not added"};
    FirstFault& first = list.emplace_back(FirstFault{{fault}, x, whole});
    first.mended.bias = {}, first.whole.bias = {};
  }
  return list;
}

FirstFaults guess_factors(const ProductNumbers& x, const WholeProduct& whole) {
  constexpr double much = 0.02;
  const auto [factors, left] = common_factors(x);
  if (factors.empty()) return {};
  double size = 0;
  for (const double value : x.d.values)
    size = std::max(size, std::isfinite(value) ? std::abs(value) : 0);
  // A factor is as exact as its numbers are many and what is left is small.
  const auto settled = [&, distance = left](double factor, double asked,
                                            const RealMatrix& numbers) {
    constexpr double clearly = 6;
    const double squares = dot(numbers.values, numbers.values);
    const double noise = squares > 0 ? clearly * distance / std::sqrt(squares) : 0;
    const bool is_asked = std::abs(factor - asked) < std::max(noise, 1e-3 * std::abs(asked) + 1e-6);
    return is_asked ? asked : simple_near(factor);
  };
  const double alpha = settled(factors[0], x.alpha, x.product),
               beta = x.c.empty() ? 0 : settled(factors[2], x.beta, x.c),
               constant = std::abs(factors[1]) < 1e-4 * size ? 0 : simple_near(factors[1]);
  // A factor that is nearly gone was not applied.
  const double of_c = std::abs(beta) < much ? 0 : beta;
  if (std::abs(alpha) < 1e-6 * std::abs(x.alpha)) return {};
  FirstFault first{changed_factors(x, alpha, of_c, constant), x, whole};
  if (first.faults.empty()) return {};
  first.mended.alpha = first.whole.alpha = alpha;
  first.mended.beta = first.whole.beta = of_c;
  if (constant != 0) {
    if (first.mended.bias.empty()) first.mended.bias = RealMatrix(1, x.n());
    for (double& value : first.mended.bias.values) value += constant;
    first.whole.bias = [constant, bias = whole.bias](std::int64_t i, std::int64_t j) {
      return constant + (bias ? bias(i, j) : 0);
    };
  }
  return {first};
}

FirstFaults guess_line_constants(const ProductNumbers& x, const WholeProduct& whole) {
  constexpr std::size_t fewest = 8;
  FirstFaults list;
  const Expected asked = x.asked();
  for (const bool are_columns : {true, false}) {
    if (!are_columns && !x.bias.empty()) break;
    const std::int64_t lines = are_columns ? x.n() : x.m(), length = are_columns ? x.m() : x.n();
    FirstFault first{{{.kind = FaultKind::bias,
                       .name = are_columns ? "columns" : "rows",
                       .text = std::string("a number for each ") +
                               (are_columns ? "column" : "row") + " is added"}},
                     x,
                     whole};
    RealMatrix& bias = first.mended.bias;
    if (bias.empty()) bias = are_columns ? RealMatrix(1, lines) : RealMatrix(lines, 1);
    std::vector<double> spreads, added;
    for (std::int64_t line = 0; line < lines; ++line) {
      std::vector<double> errors;
      for (std::int64_t i = 0; i < length; ++i) {
        const std::int64_t row = are_columns ? i : line, column = are_columns ? line : i;
        const double error = x.d(row, column) - asked.result(row, column);
        if (!x.is_hidden(static_cast<std::size_t>(row * x.n() + column)) && std::isfinite(error))
          errors.push_back(error);
      }
      if (errors.size() < fewest) return list;
      const double middle = median(errors);
      bias.values[static_cast<std::size_t>(line)] += middle;
      added.push_back(middle);
      for (double& error : errors) error = std::abs(error - middle);
      spreads.push_back(median(std::move(errors)));
    }
    // One for all is a constant; the middle of noise is as exact as its numbers are many.
    const auto [low, high] = std::minmax_element(added.begin(), added.end());
    const double noise = 11 * median(spreads) / std::sqrt(static_cast<double>(length));
    if (*high - *low < std::max(noise, 1e-3 * std::max(std::abs(*low), std::abs(*high)))) continue;
    first.whole.m = 0;
    list.push_back(std::move(first));
  }
  return list;
}

FirstFaults guess_activation(const ProductNumbers& x, const WholeProduct& whole) {
  if (x.activation != Activation::none || x.d.empty()) return {};
  const double least = *std::min_element(x.d.values.begin(), x.d.values.end());
  const auto lowest = std::count(x.d.values.begin(), x.d.values.end(), 0.0);
  FirstFaults list;
  for (const Activation activation :
       {Activation::relu, Activation::gelu, Activation::gelu_tanh, Activation::silu}) {
    const double bound =
        is_smooth(activation) ? activated_in_doubles(activation, place_of_minimum(activation)) : 0;
    const bool fits = is_smooth(activation) ? least >= bound * (1 + 0x1p-8) && least < 0.9 * bound
                                            : least == 0 && lowest * 8 >= std::ssize(x.d.values);
    if (!fits) continue;
    FirstFault first{{activation_fault(formats::word_of(activation))}, x, whole};
    first.mended.activation = activation;
    first.mended.undo_activation();
    first.whole.m = 0;  // it knows of no activation
    list.push_back(std::move(first));
  }
  return list;
}

FirstFaults guess_range(const ProductNumbers& x, const WholeProduct& whole) {
  constexpr std::ptrdiff_t fewest = 16;
  if (x.activation != Activation::none || !x.left_out.empty()) return {};
  double low = 0, high = 0;
  for (const double value : x.d.values) low = std::min(low, value), high = std::max(high, value);
  const bool is_low = low < 0 && std::count(x.d.values.begin(), x.d.values.end(), low) >= fewest,
             is_high = high > 0 && std::count(x.d.values.begin(), x.d.values.end(), high) >= fewest;
  if (!is_low && !is_high) return {};
  FirstFault first{{range_fault(is_low ? low : -std::numeric_limits<double>::infinity(),
                                is_high ? high : std::numeric_limits<double>::infinity())},
                   x,
                   whole};
  // What is limited says nothing of the rest.
  std::vector<bool> outputs;
  for (const double value : x.d.values)
    outputs.push_back((is_low && value == low) || (is_high && value == high));
  leave_out(outputs, x.asked(), first.mended);
  first.whole.m = 0;
  return {first};
}

FirstFaults guess_misplaced_tiles(const ProductNumbers& x, const WholeProduct& whole) {
  constexpr std::size_t most = 4;
  if (!x.left_out.empty()) return {};
  const Expected asked = x.asked();
  const Disagreement wrong = disagreement(x, asked);
  // Where most is wrong, something else is, too, and is to be found first.
  if (2 * wrong.count > std::ssize(wrong.at)) return {};
  for (const std::int64_t side : {64, 32, 16}) {
    FirstFault first{{}, x, whole};
    std::vector<bool> outputs(wrong.at.size());
    for (std::int64_t row = 0; row + side <= x.m(); row += side)
      for (std::int64_t column = 0; column + side <= x.n(); column += side) {
        Region tile;
        for (std::int64_t by = 0; by < side; ++by)
          tile.rows.push_back(row + by), tile.columns.push_back(column + by);
        std::vector<std::size_t> here;
        for (const std::int64_t i : tile.rows)
          for (const std::int64_t j : tile.columns)
            here.push_back(static_cast<std::size_t>(i * x.n() + j));
        const auto count =
            std::count_if(here.begin(), here.end(), [&](std::size_t at) { return wrong.at[at]; });
        if (4 * count < 3 * std::ssize(here) || first.faults.size() > most) continue;
        const Faults faults = find_misplaced(x, tile);
        if (faults.empty()) continue;
        first.faults.push_back(faults[0]);
        for (const std::size_t at : here) outputs[at] = true;
      }
    if (first.faults.empty() || first.faults.size() > most) continue;
    leave_out(outputs, asked, first.mended);
    first.whole.m = 0;
    return {first};
  }
  return {};
}

FirstFaults guess_blank_areas(const ProductNumbers& x, const WholeProduct& whole) {
  constexpr std::size_t most = 6;
  constexpr std::int64_t fewest = 4;
  if (!x.left_out.empty()) return {};
  const Expected asked = x.asked();
  Disagreement blank = disagreement(x, asked);
  blank.count = 0;
  for (std::size_t at = 0; at < blank.at.size(); ++at) {
    blank.at[at] = blank.at[at] && (x.d.values[at] == 0 || !std::isfinite(x.d.values[at]));
    blank.count += blank.at[at] ? 1 : 0;
  }
  if (blank.count < fewest || 2 * blank.count > x.m() * x.n()) return {};
  const std::vector<Region> areas = areas_of(blank, x.m(), x.n());
  if (areas.size() > most) return {};
  FirstFault first{{}, x, whole};
  for (const Region& area : areas) {
    const Faults faults = find_blank(x, area);
    if (faults.empty() || !is_blank(faults[0])) return {};
    first.faults.push_back(faults[0]);
  }
  leave_out(blank.at, asked, first.mended);
  first.whole.m = 0;  // it cannot leave out outputs
  return {first};
}

}  // namespace guardbit::emulator
