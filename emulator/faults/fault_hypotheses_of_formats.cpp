#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <utility>

#include "emulator/faults/fault_hypotheses.hpp"
#include "emulator/gemm/scalar.hpp"
#include "formats/format_catalogue.hpp"
#include "formats/support/stop.hpp"
#include "formats/text.hpp"

// What D, products or sums went through: narrower formats.
namespace guardbit::emulator {

namespace {

/// All outputs but a few agree, as those next to a tie go either way, and far more than with what
/// was asked.
bool nearly_agrees(const ProductNumbers& x, const Expected& asked, const Expected& expected) {
  const std::int64_t left = disagreement(x, expected).count;
  return left * 16 <= std::ssize(x.d.values) && left * 2 < disagreement(x, asked).count;
}

/// The largest power of two of which all these numbers are multiples; 0 of none.
double common_step(const std::vector<double>& values) {
  double step = 0;
  for (const double value : values) {
    if (!std::isfinite(value) || value == 0) continue;
    int exponent = 0;
    const auto significand =
        static_cast<std::uint64_t>(std::ldexp(std::abs(std::frexp(value, &exponent)), 53));
    const double lowest = std::ldexp(1.0, exponent - 53 + std::countr_zero(significand));
    step = step == 0 ? lowest : std::min(step, lowest);
  }
  return step;
}

/// The numbers as sums of BF16 numbers: the first ones truncated, the last ones rounded.
std::vector<RealMatrix> bf16_pieces(RealMatrix x, int count) {
  std::vector<RealMatrix> pieces;
  for (int i = 0; i + 1 < count; ++i) {
    pieces.push_back(mapped(x, [](double value) { return truncated(formats::bf16, value); }));
    for (std::size_t at = 0; at < x.values.size(); ++at) x.values[at] -= pieces.back().values[at];
  }
  pieces.push_back(mapped(x, [](double value) { return scalar::rounded(formats::bf16, value); }));
  return pieces;
}

/// D agrees with sums of products of pieces of A and B whose ranks add up to at most `most_rank`,
/// each product rounded to the format.
bool agrees_with_rounded_products(const ProductNumbers& x, const formats::Format& format,
                                  const std::vector<RealMatrix>& a,
                                  const std::vector<RealMatrix>& b, int most_rank = 0) {
  ProductNumbers rounded = x;
  std::int64_t told = 0;
  for (std::int64_t i = 0; i < x.m(); ++i)
    for (std::int64_t j = 0; j < x.n(); ++j) {
      formats::check_stop();
      double sum = 0;
      for (std::int64_t k = 0; k < x.k(); ++k)
        for (int p = 0; p < std::ssize(a); ++p)
          for (int q = 0; q < std::ssize(b) && p + q <= most_rank; ++q)
            sum += scalar::rounded(format, a[static_cast<std::size_t>(p)](i, k) *
                                               b[static_cast<std::size_t>(q)](k, j));
      rounded.product(i, j) = sum;
      // A product that overflows is seen in D.
      if (!std::isfinite(sum) && std::isfinite(x.d(i, j))) return false;
      told += std::isfinite(sum) ? 1 : 0;
    }
  return 2 * told > x.m() * x.n() && agrees(x, rounded.asked());
}

}  // namespace

std::optional<formats::Format> held_format(const ProductNumbers& x) {
  constexpr std::int64_t fewest = 24, fewest_to_agree = 3;
  const Expected asked = x.asked();
  const double step = common_step(x.d.values);
  for (const auto& format :
       {formats::e5m2, formats::e4m3, formats::bf16, formats::fp16, formats::fp32}) {
    if (format.fraction_bits >= x.output.fraction_bits || formats::is_integer(x.output)) continue;
    // Outputs that the format holds although their exact values are others.
    std::int64_t held = 0;
    bool holds_all = true;
    for (std::size_t i = 0; i < x.d.values.size() && holds_all; ++i) {
      const double value = x.d.values[i], exact = asked.result.values[i];
      if (!std::isfinite(value) || x.is_zero(i)) continue;
      holds_all = scalar::rounded(format, value) == value;
      // Small whole numbers are in every format.
      if (2 * half_spacing(format, value) <= step) continue;
      if (std::abs(exact - scalar::rounded(format, exact)) > 0.1 * half_spacing(format, exact))
        ++held;
    }
    if (!holds_all || held < fewest_to_agree) continue;
    ProductNumbers y = x;
    y.output = format;
    if (held >= fewest || agrees(y, asked)) return format;
  }
  return {};
}

Fault held_fault(const formats::Format& format, bool is_truncated) {
  const std::string name = formats::name_of(format);
  return {.kind = FaultKind::converted_output,
          .operand = "d",
          .name = name,
          .text = std::string("D was ") + (is_truncated ? "truncated" : "rounded") + " to " + name +
                  " and back"};
}

Faults find_output_conversion(const ProductNumbers& x) {
  const Expected asked = x.asked();
  for (const auto& format : {formats::fp16, formats::bf16}) {
    const std::string name = formats::name_of(format);
    const auto fault = [&](const char* operand, const std::string& text) {
      return Faults{
          {.kind = FaultKind::converted_output, .operand = operand, .name = name, .text = text}};
    };
    const RealMatrix spacing =
        mapped(asked.result, [&](double value) { return half_spacing(format, value); });
    const bool is_narrower = format.fraction_bits < x.output.fraction_bits;
    Expected rounded = asked;
    for (double& value : rounded.result.values) value = scalar::rounded(format, value);
    if (!is_narrower && format != x.output && agrees(x, asked, &spacing) &&
        nearly_agrees(x, asked, rounded))
      return fault("d", "D was rounded to " + name + " before it was rounded to its own format");
    if (x.c.empty() && x.bias.empty()) continue;
    const RealMatrix of_product = mapped(x.product, [&](double value) {
      return 1.001 * std::abs(x.alpha) * half_spacing(format, value);
    });
    const Expected product = x.product_alone(), addend = asked - product;
    rounded = addend;
    for (std::size_t i = 0; i < rounded.result.values.size(); ++i) {
      rounded.result.values[i] += scalar::rounded(format, product.result.values[i]);
      rounded.magnitude.values[i] += product.magnitude.values[i];
    }
    if (agrees(x, asked, &of_product) && nearly_agrees(x, asked, rounded))
      return fault("product", "the product was rounded to " + name + " before C was added");
  }
  return {};
}

Faults find_other_rounding(const ProductNumbers& x) {
  constexpr std::int64_t fewest = 24;
  if (formats::is_integer(x.output) || x.spacings != 0.5) return {};
  const Expected asked = x.asked();
  ProductNumbers y = x;
  y.spacings = 1;
  if (!agrees(y, asked)) return {};
  // Where the exact result lies clearly between two numbers of the format: which one D took.
  std::int64_t near = 0, far = 0, far_outside = 0;
  for (std::size_t i = 0; i < x.d.values.size(); ++i) {
    const double exact = asked.result.values[i], seen = x.d.values[i];
    const double half = half_spacing(x.output, exact),
                 noise = x.rounding_unit() * asked.magnitude.values[i];
    if (!std::isfinite(seen) || noise > 0.1 * half) continue;
    const bool is_far = std::abs(seen - exact) > half + noise;
    (is_far ? far : near) += 1;
    far_outside += is_far && std::abs(seen) > std::abs(exact) ? 1 : 0;
  }
  if (far < fewest) return {};
  const std::string name = formats::name_of(x.output);
  const bool is_truncated = far_outside == 0 && 4 * far > near;
  return {{.kind = FaultKind::converted_output,
           .operand = "d",
           .name = name,
           .text = is_truncated ? "D was truncated to " + name + ", not rounded to nearest"
                                : "D was rounded to one of the two neighbours in " + name +
                                      ", not always to the nearest, as stochastic rounding does"}};
}

Faults find_flushed_results(const ProductNumbers& x) {
  constexpr std::int64_t fewest = 8;
  if (formats::is_integer(x.output)) return {};
  const double least = std::ldexp(1.0, 1 - x.output.bias);
  Expected expected = x.asked();
  std::int64_t flushed = 0;
  for (std::size_t i = 0; i < x.d.values.size(); ++i) {
    double& wanted = expected.result.values[i];
    if (x.d.values[i] != 0 || !(std::abs(wanted) < least)) continue;
    if (std::abs(wanted) > half_spacing(x.output, 0)) ++flushed;
    wanted = 0;
  }
  if (flushed < fewest || !agrees(x, expected)) return {};
  const std::string name = formats::name_of(x.output);
  return {{.kind = FaultKind::converted_output,
           .operand = "d",
           .name = name,
           .text = std::to_string(flushed) + " results below " + text_of(least) +
                   ", the smallest normal number of " + name + ", are zero"}};
}

Faults find_saturation(const ProductNumbers& x) {
  if (formats::is_integer(x.output) || !formats::has_infinity(x.output)) return {};
  const Expected asked = x.asked();
  const double largest = scalar::decoded(x.output, formats::max_finite_code(x.output));
  std::int64_t limited = 0;
  for (std::size_t i = 0; i < x.d.values.size(); ++i)
    limited +=
        std::abs(x.d.values[i]) == largest && std::abs(asked.result.values[i]) > 1.001 * largest
            ? 1
            : 0;
  if (limited == 0) return {};
  const std::string name = formats::name_of(x.output);
  return {{.kind = FaultKind::converted_output,
           .operand = "d",
           .name = name,
           .text = std::to_string(limited) + (limited == 1 ? " result" : " results") +
                   " too large for " + name + (limited == 1 ? " is " : " are ") + text_of(largest) +
                   ", not infinite: the conversion saturates"}};
}

Faults find_small_constant(const ProductNumbers& x) {
  const Expected asked = x.asked();
  // Sums that are truncated lean to zero: only on both sides of it a constant is told from that.
  std::int64_t above = 0, below = 0;
  double sum = 0, square = 0, count = 0;
  for (std::size_t i = 0; i < x.d.values.size(); ++i) {
    const double error = x.d.values[i] - asked.result.values[i];
    if (!std::isfinite(error)) continue;
    (asked.result.values[i] > 0 ? above : below) += 1;
    sum += error, square += error * error, count += 1;
  }
  if (count < 64 || above * 5 < below || below * 5 < above) return {};
  const double mean = sum / count, spread_of_errors = std::sqrt(square / count - mean * mean);
  if (!(std::abs(mean) > 4 * spread_of_errors)) return {};
  return {{.kind = FaultKind::constant,
           .value = mean,
           .text = "the constant " + text_of(mean, 4) +
                   " is added to every element: a small one, but all errors are near it"}};
}

Faults find_multiples(const ProductNumbers& x) {
  constexpr std::size_t fewest = 24;
  std::vector<double> values;
  for (const double value : x.d.values)
    if (std::isfinite(value)) values.push_back(value);
  std::sort(values.begin(), values.end());
  values.erase(std::unique(values.begin(), values.end()), values.end());
  double step = std::numeric_limits<double>::infinity();
  for (std::size_t i = 0; i + 1 < values.size(); ++i)
    step = std::min(step, values[i + 1] - values[i]);
  if (values.size() < 3 || x.d.values.size() < fewest || !std::isfinite(step)) return {};
  // Multiples of a number with few bits are exact in D's format.
  if (!std::all_of(values.begin(), values.end(), [&](double value) {
        return std::abs(value / step - std::round(value / step)) < 1e-3;
      }))
    return {};
  const Expected asked = x.asked();
  for (const bool truncates : {false, true}) {
    const RealMatrix extra(x.m(), x.n(), truncates ? step : step / 2);
    if (agrees(x, asked, &extra))
      return {{.kind = FaultKind::converted_output,
               .value = step,
               .operand = "d",
               .text = std::string("D is ") + (truncates ? "truncated" : "rounded") +
                       " to multiples of " + text_of(step)}};
  }
  return {};
}

Faults find_rounded_products(const ProductNumbers& x) {
  constexpr double most_products = 1e7;
  if (formats::is_integer(x.input) ||
      static_cast<double>(x.m() * x.n()) * static_cast<double>(x.k()) > most_products)
    return {};
  // A few outputs refute it where it is not so.
  const auto few_of = [](const ProductNumbers& y) {
    return y.selected(spread(y.m(), 4), spread(y.n(), 16));
  };
  const auto fits = [&](const ProductNumbers& y) {
    const auto agrees_here = [](const ProductNumbers& z) {
      return agrees_with_rounded_products(z, z.input, {z.a}, {z.b});
    };
    return agrees_here(few_of(y)) && agrees_here(y);
  };
  const auto of_products = [](const formats::Format& format) {
    const std::string name = formats::name_of(format);
    return Fault{.kind = FaultKind::narrow_accumulator,
                 .operand = "product",
                 .name = name,
                 .text = "each product is rounded to " + name + " before it is added"};
  };
  if (formats::bits(x.input) == 16) return fits(x) ? Faults{of_products(x.input)} : Faults{};
  // Products with a vector, and of one element of K, are multiplied in a narrower format.
  if (x.input != formats::fp32 || (x.m() != 1 && x.n() != 1 && x.k() != 1)) return {};
  for (const auto& format : {formats::bf16, formats::fp16}) {
    ProductNumbers y = x;
    const auto convert = [&](double value) { return scalar::rounded(format, value); };
    y.a = mapped(x.a, convert);
    y.b = mapped(x.b, convert);
    y.input = format;
    y.multiply_operands();
    if (!fits(y)) continue;
    const std::string name = formats::name_of(format);
    return {{.kind = FaultKind::converted_input,
             .operand = "both",
             .name = name,
             .text = "A and B were rounded to " + name + " before they were multiplied"},
            of_products(format)};
  }
  // FP32 by pieces of BF16, where a compiler keeps the products of pieces in BF16, too.
  for (const auto& [count, most_rank] : {std::pair{2, 1}, {3, 2}, {3, 4}}) {
    const auto agrees_here = [&, parts = count, rank = most_rank](const ProductNumbers& y) {
      return agrees_with_rounded_products(y, formats::bf16, bf16_pieces(y.a, parts),
                                          bf16_pieces(y.b, parts), rank);
    };
    if (!agrees_here(few_of(x)) || !agrees_here(x)) continue;
    Fault fault = of_products(formats::bf16);
    fault.text =
        "A and B are sums of BF16 numbers, and each product of two of these is rounded to bf16 before "
        "it is added";
    return {fault};
  }
  return {};
}

}  // namespace guardbit::emulator
