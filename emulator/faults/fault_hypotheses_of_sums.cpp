#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <utility>

#include "emulator/faults/fault_hypotheses.hpp"
#include "emulator/gemm/scalar.hpp"
#include "formats/format_catalogue.hpp"
#include "formats/support/stop.hpp"
#include "formats/text.hpp"

// Sums that are kept in FP16 or BF16, and those that become too large for FP16 on their way.
namespace guardbit::emulator {

namespace {

/// The error of a chain over K, in that format, of one output, over the magnitude of its terms.
double error_of_chain(const ProductNumbers& x, const formats::Format& format, std::int64_t step,
                      std::int64_t i, std::int64_t j) {
  double sum = 0, exact = 0, magnitude = 0;
  for (std::int64_t k = 0; k < x.k(); k += step) {
    double more = 0;
    for (std::int64_t l = k; l < std::min(x.k(), k + step); ++l) {
      more += x.a(i, l) * x.b(l, j);
      magnitude += std::abs(x.a(i, l) * x.b(l, j));
    }
    exact += more;
    sum = scalar::rounded(format, sum + more);
  }
  return magnitude == 0 ? 0 : (sum - exact) / magnitude;
}

/// The root mean square of these errors of some of the outputs, of more where many overflow.
double error_of_chains(const ProductNumbers& x, const formats::Format& format, std::int64_t step) {
  constexpr double enough = 8;
  double square = 0, count = 0;
  for (const std::int64_t side : {6, 24}) {
    for (const std::int64_t i : spread(x.m(), side)) {
      for (const std::int64_t j : spread(x.n(), side)) {
        const double error = error_of_chain(x, format, step, i, j);
        if (!std::isfinite(error)) continue;
        square += error * error;
        count += 1;
      }
    }
    if (count >= enough) break;
  }
  return count == 0 ? 0 : std::sqrt(square / count);
}

/// Before C and the bias are added, D is one or a sum of a few numbers of this format: most of them
/// have zeros below the bits of their parts, which others have by chance.
bool sums_are_in(const ProductNumbers& x, const formats::Format& format) {
  constexpr int zeros = 4;
  const Expected asked = x.asked(), addend = asked - x.product_alone();
  const double grid =
      std::ldexp(1.0, std::min(x.output.fraction_bits - format.fraction_bits, zeros));
  std::int64_t on_grid = 0, told = 0;
  for (std::size_t i = 0; i < x.d.values.size(); ++i) {
    const double sum = x.d.values[i] - addend.result.values[i];
    const double step = grid * 2 * half_spacing(x.output, sum);
    // What the addition of C rounded away says nothing.
    const double allowed =
        addend.magnitude.values[i] == 0 ? 0 : 1.001 * x.rounding_of_d(x.d.values[i]);
    if (!std::isfinite(sum) || sum == 0 || allowed > 0.1 * step || x.is_left_out(i)) continue;
    ++told;
    if (std::abs(sum - std::round(sum / step) * step) <= allowed) ++on_grid;
  }
  return told >= 24 && on_grid * 2 > told;
}

/// D is as far from the exact result as parts of sums that are rounded to the format once take it,
/// and exact results would not look so.
bool is_sum_of_parts(const ProductNumbers& x, const Expected& asked,
                     const formats::Format& format) {
  ProductNumbers exact = x;
  exact.d = asked.result;
  if (sums_are_in(exact, format)) return false;
  constexpr double parts = 16;  // of the smallest numbers
  const double unit = std::ldexp(1.0, -1 - format.fraction_bits),
               least = parts * half_spacing(format, 0);
  const RealMatrix extra =
      mapped(asked.magnitude, [&](double value) { return unit * value + least; });
  return agrees(x, asked, &extra);
}

double largest_of(const Format& format) {
  return scalar::decoded(format, formats::max_finite_code(format));
}

/// The least and the greatest sum of products of any elements of K that follow each other.
std::pair<double, double> extreme_sums(const ProductNumbers& x, std::int64_t i, std::int64_t j) {
  double low = 0, high = 0, low_here = 0, high_here = 0;
  for (std::int64_t k = 0; k < x.k(); ++k) {
    const double product = x.a(i, k) * x.b(k, j);
    low_here = std::min(low_here, 0.0) + product;
    high_here = std::max(high_here, 0.0) + product;
    low = std::min(low, low_here), high = std::max(high, high_here);
  }
  return {low, high};
}

/// The output is no number, and sums on the way to it may have been infinite so.
bool may_overflow(const ProductNumbers& x, std::int64_t i, std::int64_t j, double largest) {
  const auto [low, high] = extreme_sums(x, i, j);
  const double factor = std::max(1.0, std::abs(x.alpha)), seen = x.d(i, j);
  const bool above = factor * high >= largest, below = factor * low <= -largest;
  if (std::isnan(seen)) return above || below;
  return (seen > 0) == (x.alpha > 0) ? above : below;
}

/// D is infinite where sums may have become so; other outputs are right, or as sums in the format
/// take them.
Faults infinite_sums(const ProductNumbers& x, const Disagreement& wrong, const Format& format) {
  constexpr std::int64_t looked_at = 512;
  std::vector<std::int64_t> infinite;
  for (std::size_t at = 0; at < wrong.at.size(); ++at)
    if (wrong.at[at] && !std::isfinite(x.d.values[at]))
      infinite.push_back(static_cast<std::int64_t>(at));
  if (infinite.empty() || 8 * std::ssize(infinite) > 7 * x.m() * x.n()) return {};
  for (const std::int64_t i : spread(std::ssize(infinite), looked_at)) {
    const std::int64_t at = infinite[static_cast<std::size_t>(i)];
    if (!may_overflow(x, at / x.n(), at % x.n(), largest_of(format))) return {};
  }
  ProductNumbers y = x;
  Disagreement overflowed;
  y.left_out.resize(wrong.at.size());
  const Expected asked = x.asked();
  for (const std::int64_t i : infinite) {
    const auto at = static_cast<std::size_t>(i);
    y.left_out[at] = true;
    y.d.values[at] = asked.result.values[at];
  }
  overflowed.at = y.left_out;
  if (!agrees(y, asked)) {
    const Faults narrow = find_narrow_accumulator(y);
    if (narrow.empty() || narrow[0].name != formats::name_of(format)) return {};
  }
  const Region region = extent_of(overflowed, x.n());
  const std::string name = formats::name_of(format);
  return {
      {.kind = FaultKind::narrow_accumulator,
       .rows = x.rows.places(region.rows),
       .columns = x.columns.places(region.columns),
       .value = largest_of(format),
       .name = name,
       .text = "sums are kept in " + name + " and overflow: " + std::to_string(infinite.size()) +
               " elements of D are infinite or NaN where the operands give numbers, but sums of "
               "some of their products are beyond " +
               text_of(largest_of(format)) + ", in " + text_of(x, region)}};
}

/// What becomes of an output where sums are limited to a range.
struct Limited {
  std::int64_t products;
  bool is_chain;

  std::string text(const std::string& format, double largest) const {
    const std::string number = text_of(largest);
    return is_chain ? "sums are kept in " + format + " and limited to " + number +
                          ", its largest number, after each " +
                          (products == 1 ? "product" : std::to_string(products) + " products")
                    : "sums of " + std::to_string(products) + " products are limited to " + number +
                          ", the largest number of " + format + ", before they are added";
  }

  double operator()(const ProductNumbers& x, std::int64_t i, std::int64_t j, double largest) const {
    double sum = 0;
    for (std::int64_t begin = 0; begin < x.k(); begin += products) {
      double part = is_chain ? sum : 0;
      for (std::int64_t k = begin; k < std::min(x.k(), begin + products); ++k)
        part += x.a(i, k) * x.b(k, j);
      part = std::clamp(part, -largest, largest);
      sum = is_chain ? part : sum + part;
    }
    return sum;
  }
};

/// D agrees, but for this part of the magnitudes, with sums that are limited to the format's range
/// after so many products, which change at least `fewest` outputs clearly.
bool agrees_with(const ProductNumbers& x, const Limited& limited, const Format& format, double unit,
                 std::int64_t fewest) {
  const Expected asked = x.asked(), addend = asked - x.product_alone();
  const double largest = largest_of(format);
  const RealMatrix extra = mapped(asked.magnitude, [&](double value) { return unit * value; });
  Expected expected = asked;
  std::int64_t told = 0;
  for (std::int64_t i = 0; i < x.m(); ++i) {
    formats::check_stop();
    for (std::int64_t j = 0; j < x.n(); ++j) {
      const double sum = addend.result(i, j) + x.alpha * limited(x, i, j, largest);
      const double noise =
          extra(i, j) + x.rounding_unit() * asked.magnitude(i, j) + x.rounding_of_d(sum);
      told += std::abs(sum - asked.result(i, j)) > 2 * noise ? 1 : 0;
      expected.result(i, j) = sum;
    }
  }
  return told >= fewest && agrees(x, expected, &extra);
}

/// D agrees with them: rounded to the format never, once for each product, or often.
bool agrees_with(const ProductNumbers& x, const ProductNumbers& few, const Limited& limited,
                 const Format& format) {
  constexpr std::int64_t fewest = 8;
  const double unit = std::ldexp(1.0, -1 - format.fraction_bits);
  for (const double part : {0.0, unit, 1.5 * unit * std::sqrt(static_cast<double>(x.k()))})
    if (agrees_with(few, limited, format, part, 0) && agrees_with(x, limited, format, part, fewest))
      return true;
  return false;
}

Faults limited_sums(const ProductNumbers& x, const Format& format) {
  const ProductNumbers few = x.selected(spread(x.m(), 12), spread(x.n(), 12));
  const double largest = largest_of(format);
  bool is_large = false;
  for (std::int64_t i = 0; i < few.m() && !is_large; ++i)
    for (std::int64_t j = 0; j < few.n() && !is_large; ++j) {
      const auto [low, high] = extreme_sums(few, i, j);
      is_large = low < -largest || high > largest;
    }
  if (!is_large) return {};
  for (const bool is_chain : {true, false}) {
    for (std::int64_t products = 1; products <= x.k() && products <= 1024; products *= 2) {
      const Limited limited{products, is_chain};
      if (!agrees_with(x, few, limited, format)) continue;
      const std::string name = formats::name_of(format);
      return {{.kind = FaultKind::narrow_accumulator,
               .value = largest,
               .name = name,
               .text = limited.text(name, largest)}};
    }
  }
  return {};
}

}  // namespace

Faults find_narrow_accumulator(const ProductNumbers& x) {
  const Expected asked = x.asked();
  for (const auto& format : {formats::fp16, formats::bf16}) {
    if (format.fraction_bits >= x.output.fraction_bits && format != x.output) continue;
    if (format != x.output && !sums_are_in(x, format)) continue;
    if (format != x.output && is_sum_of_parts(x, asked, format))
      return {{.kind = FaultKind::narrow_accumulator,
               .name = formats::name_of(format),
               .text = "parts of the sums were rounded to " + formats::name_of(format) +
                       " before they were added"}};
    const double unit =
        std::ldexp(1.5, -1 - format.fraction_bits) * std::sqrt(static_cast<double>(x.k()));
    const RealMatrix extra = mapped(asked.magnitude, [&](double value) { return unit * value; });
    // Noise is everywhere, damage in places.
    if (!agrees(x, asked, &extra)) continue;
    const Disagreement wrong = disagreement(x, asked);
    std::vector<bool> rows(static_cast<std::size_t>(x.m())),
        columns(static_cast<std::size_t>(x.n()));
    for (std::size_t at = 0; at < wrong.at.size(); ++at)
      if (wrong.at[at])
        rows[at / static_cast<std::size_t>(x.n())] = columns[at % static_cast<std::size_t>(x.n())] =
            true;
    const auto failed = [](const std::vector<bool>& lines) {
      return static_cast<double>(std::count(lines.begin(), lines.end(), true)) /
             static_cast<double>(lines.size());
    };
    if (wrong.count < 24 || failed(rows) < 0.6 || failed(columns) < 0.6) continue;
    // They are as large as a chain in the format makes them, whatever it adds at once.
    const double seen = error_of(x, asked);
    if (seen > 3 * error_of_chains(x, format, 1) || 3 * seen < error_of_chains(x, format, 16))
      continue;
    return {{.kind = FaultKind::narrow_accumulator,
             .name = formats::name_of(format),
             .text = "errors are as large as those of sums kept in " + formats::name_of(format)}};
  }
  return {};
}

Faults find_overflow(const ProductNumbers& x) {
  const Format& format = formats::fp16;
  if (formats::is_integer(x.input) || formats::bits(x.output) < 16) return {};
  const Disagreement wrong = disagreement(x, x.asked());
  if (Faults faults = infinite_sums(x, wrong, format); !faults.empty()) return faults;
  return limited_sums(x, format);
}

}  // namespace guardbit::emulator
