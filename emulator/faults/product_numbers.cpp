#include "emulator/faults/product_numbers.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <utility>

#include "emulator/faults/code_numbers.hpp"
#include "emulator/gemm/scalar.hpp"
#include "formats/format_catalogue.hpp"
#include "formats/support/stop.hpp"

namespace guardbit::emulator {

namespace {

RealMatrix real(const CodeMatrix& x, std::int64_t g, const std::vector<std::int64_t>& rows,
                const std::vector<std::int64_t>& columns) {
  if (x.empty()) return {};
  const CodeNumbers numbers(x, g);
  RealMatrix result(std::ssize(rows), std::ssize(columns));
  double* to = result.values.data();
  for (const std::int64_t i : rows) {
    formats::check_stop();
    for (const std::int64_t j : columns) *to++ = numbers(i, j);
  }
  return result;
}

RealMatrix magnitudes(const RealMatrix& x) {
  return mapped(x, [](double value) { return std::abs(value); });
}

Expected scaled(const ProductNumbers& x, double factor) {
  return {mapped(x.product, [&](double value) { return factor * value; }),
          mapped(x.product_magnitude, [&](double value) { return std::abs(factor) * value; })};
}

/// Adds factor * addend to the result and its size to the magnitude; one row or one column serves
/// all.
void add(Expected& x, const RealMatrix& addend, double factor) {
  if (addend.empty() || factor == 0) return;  // then it is not read, as in BLAS
  for (std::int64_t i = 0; i < x.result.rows; ++i) {
    for (std::int64_t j = 0; j < x.result.columns; ++j) {
      const double term = factor * addend(addend.rows == 1 ? 0 : i, addend.columns == 1 ? 0 : j);
      x.result(i, j) += term;
      x.magnitude(i, j) += std::abs(term);
    }
  }
}

/// How far honest rounding takes the function of `wanted`, where it takes `wanted` by up to
/// `allowed`: through the function, and in its steps. Some kernels round what they take, its
/// factor and the function to D's format.
double allowed_through(const ProductNumbers& x, double wanted, double allowed) {
  const auto function = [&](double at) { return activated_in_doubles(x.activation, at); };
  const double off = allowed + 3.1 * half_spacing(x.output, wanted), middle = function(wanted);
  return std::max(std::abs(function(wanted + off) - middle),
                  std::abs(function(wanted - off) - middle)) +
         x.rounding_of_d(middle) + 0x1p-20 * std::abs(middle) + 0x1p-22 * std::abs(wanted);
}

/// The argument near `asked` at which a smooth activation is `value`; where there is none, `value`.
double argument_near(Activation activation, double value, double asked) {
  const double lowest = place_of_minimum(activation);
  const double least = activated_in_doubles(activation, lowest);
  // Rounding may take the least value a little further.
  if (value < least) return value < least * (1 + 0x1p-8) ? value : lowest;
  if (value == 0 || !std::isfinite(value)) return value;
  // It rises from the minimum on, and lies less than 1 below its argument.
  const bool rises = value > 0 || asked >= lowest;
  double low = rises ? lowest : -64, high = rises ? std::max(value, 0.0) + 1 : lowest;
  for (int step = 0; step < 64; ++step) {
    const double middle = (low + high) / 2;
    const bool is_below = activated_in_doubles(activation, middle) < value;
    (is_below == rises ? low : high) = middle;
  }
  return (low + high) / 2;
}

/// D's number before a smooth activation, where `allowed` is the bound of honest rounding there. Of
/// a zero that agrees with what was asked, it is that.
double before_activation(const ProductNumbers& x, double value, double asked, double allowed) {
  const double middle = activated_in_doubles(x.activation, asked);
  const bool agrees =
      std::abs(value - middle) <= allowed_through(x, asked, allowed) + x.rounding_of_d(middle);
  return value == 0 && agrees ? asked : argument_near(x.activation, value, asked);
}

double to_tf32(double x) { return scalar::rounded(formats::tf32, x); }
double truncated_to_tf32(double x) { return truncated(formats::tf32, x); }
double as_it_is(double x) { return x; }

/// Rounds FP32 operands to TF32, as it was asked for, each in the way that takes the product
/// nearest to D: to nearest, toward zero, or not at all.
void round_to_tf32(ProductNumbers& x) {
  using Way = double (*)(double);
  constexpr Way ways[] = {as_it_is, to_tf32, truncated_to_tf32};
  const ProductNumbers few = x.selected(spread(x.m(), 12), spread(x.n(), 12));
  double least = std::numeric_limits<double>::infinity();
  std::pair<Way, Way> best = {as_it_is, as_it_is};
  for (const Way of_a : ways) {
    for (const Way of_b : ways) {
      ProductNumbers y = few;
      y.a = mapped(y.a, of_a), y.b = mapped(y.b, of_b);
      y.multiply_operands();
      const double error = error_of(y, y.asked());
      if (error < least) least = error, best = {of_a, of_b};
    }
  }
  x.a = mapped(x.a, best.first), x.b = mapped(x.b, best.second);
}

}  // namespace

ProductNumbers numbers_of(const GemmCapture& capture, const GemmProblem& problem, std::int64_t g,
                          const std::vector<std::int64_t>& rows,
                          const std::vector<std::int64_t>& columns) {
  ProductNumbers x;
  const std::vector<std::int64_t> k = all_numbers(problem.k());
  x.a = real(problem.a, g, rows, k);
  x.b = real(problem.b, g, k, columns);
  x.rows.numbers = rows;
  x.columns.numbers = columns;
  if (!problem.scale_a.empty())
    for (std::int64_t i = 0; i < x.a.rows; ++i)
      for (std::int64_t l = 0; l < x.a.columns; ++l)
        x.a(i, l) *= scale_at(problem.scale_a, g, rows[static_cast<std::size_t>(i)], l, problem.m(),
                              problem.k(), problem.scale_k);
  if (!problem.scale_b.empty())
    for (std::int64_t l = 0; l < x.b.rows; ++l)
      for (std::int64_t j = 0; j < x.b.columns; ++j)
        x.b(l, j) *= scale_at(problem.scale_b, g, l, columns[static_cast<std::size_t>(j)],
                              problem.k(), problem.n(), problem.scale_k);
  x.c = real(problem.c, g, rows, columns);
  x.bias = real(problem.bias, g, {0}, columns);
  x.d = real(capture.d, g, rows, columns);
  x.alpha = capture.alpha;
  x.beta = x.c.empty() ? 0 : capture.beta;
  x.input = capture.tf32 ? formats::tf32 : problem.a.format;
  x.output = capture.d.format;
  if (capture.tf32) round_to_tf32(x);
  x.multiply_operands();
  x.activation = capture.activation;
  x.undo_activation();
  return x;
}

std::vector<Places> LineNumbers::places(const std::vector<std::int64_t>& lines) const {
  std::vector<std::int64_t> result, both;
  for (const std::int64_t line : lines) result.push_back((*this)(line));
  // The wrong ones, or ranges of these, as far as they are looked at.
  std::vector<Places> ranges = places_of(wrong);
  std::erase_if(ranges, [&](const Places& range) {
    const auto first = std::lower_bound(result.begin(), result.end(), range.begin);
    return first == result.end() || *first >= range.end;
  });
  const std::vector<std::int64_t> near = numbers_in(ranges);
  std::set_intersection(near.begin(), near.end(), numbers.begin(), numbers.end(),
                        std::back_inserter(both));
  if (!both.empty() && both == result) return ranges;
  if (looked_at > 1 && std::ssize(result) == looked_at) return {{0, count}};
  return places_of(result);
}

LineNumbers LineNumbers::selected(const std::vector<std::int64_t>& lines) const {
  LineNumbers result{{}, wrong, count, looked_at};
  for (const std::int64_t line : lines) result.numbers.push_back((*this)(line));
  return result;
}

void ProductNumbers::multiply_operands() {
  product = multiply(a, b);
  product_magnitude = multiply(magnitudes(a), magnitudes(b));
}

void ProductNumbers::undo_activation() {
  if (activation == Activation::none) return;
  const Expected wanted_here = asked();
  const double unit = rounding_unit();
  for (std::size_t i = 0; i < d.values.size(); ++i) {
    double& value = d.values[i];
    const double wanted = wanted_here.result.values[i];
    if (is_smooth(activation) && std::isfinite(wanted))
      value = before_activation(*this, value, wanted, unit * wanted_here.magnitude.values[i]);
    if (activation == Activation::relu && value == 0 && wanted < 0) value = wanted;
  }
}

Expected operator-(Expected x, const Expected& y) {
  for (std::size_t i = 0; i < x.result.values.size(); ++i) {
    x.result.values[i] -= y.result.values[i];
    x.magnitude.values[i] -= y.magnitude.values[i];
  }
  return x;
}

Expected ProductNumbers::with_factors(double product_factor, double c_factor) const {
  Expected x = scaled(*this, product_factor);
  add(x, c, c_factor);
  add(x, bias, 1);
  return x;
}

Expected ProductNumbers::product_alone() const { return scaled(*this, alpha); }

std::vector<double> ProductNumbers::d_without_bias() const {
  Expected x{d, RealMatrix(m(), n())};
  add(x, bias, -1);
  return std::move(x.result.values);
}

Expected ProductNumbers::asked() const { return with_factors(alpha, beta); }

ProductNumbers ProductNumbers::selected(const std::vector<std::int64_t>& rows_taken,
                                        const std::vector<std::int64_t>& columns_taken) const {
  ProductNumbers x = *this;
  x.rows = rows.selected(rows_taken);
  x.columns = columns.selected(columns_taken);
  const std::vector<std::int64_t> elements = all_numbers(k());
  x.a = emulator::selected(a, rows_taken, elements);
  x.b = emulator::selected(b, elements, columns_taken);
  for (RealMatrix* matrix : {&x.c, &x.d, &x.product, &x.product_magnitude})
    if (!matrix->empty()) *matrix = emulator::selected(*matrix, rows_taken, columns_taken);
  x.left_out.clear();
  if (!left_out.empty())
    for (const std::int64_t i : rows_taken)
      for (const std::int64_t j : columns_taken)
        x.left_out.push_back(left_out[static_cast<std::size_t>(i * n() + j)]);
  if (!bias.empty())
    x.bias = emulator::selected(bias, bias.rows == 1 ? std::vector<std::int64_t>{0} : rows_taken,
                                bias.columns == 1 ? std::vector<std::int64_t>{0} : columns_taken);
  return x;
}

ProductNumbers ProductNumbers::turned() const {
  ProductNumbers x = *this;
  std::swap(x.rows, x.columns);
  x.a = transposed(b);
  x.b = transposed(a);
  for (RealMatrix* matrix : {&x.c, &x.bias, &x.d, &x.product, &x.product_magnitude})
    if (!matrix->empty()) *matrix = transposed(*matrix);
  for (std::size_t at = 0; at < left_out.size(); ++at) {
    const auto columns_here = static_cast<std::size_t>(n()),
               rows_here = static_cast<std::size_t>(m());
    x.left_out[at % columns_here * rows_here + at / columns_here] = left_out[at];
  }
  return x;
}

double ProductNumbers::rounding_of_d(double wanted) const {
  return rounding_of(output, spacings, wanted);
}

double ProductNumbers::rounding_unit() const {
  return emulator::rounding_unit(input, k()) + parts_unit;
}

double ProductNumbers::rounding_of_sums(double result, double magnitude) const {
  // Sums drift with what they have reached: of terms that cancel they stay near zero.
  return rounding_unit() * magnitude + drift_unit(input, k()) * std::abs(result);
}

double rounding_of(const formats::Format& output, double spacings, double wanted) {
  return 2.0002 * spacings * half_spacing(output, wanted);
}

double rounding_unit(const formats::Format& input, std::int64_t k) {
  if (formats::is_integer(input)) return 0;
  const auto length = static_cast<double>(std::max<std::int64_t>(k, 8));
  if (input.fraction_bits > 24) return length * 0x1p-52;
  // Hopper keeps 13 fraction bits of FP8 products and of the sum so far, and truncates after each
  // 32 products.
  if (formats::bits(input) <= 8) return 0x1p-12 * std::max(2.0, length / 64);
  // Errors of a chain grow with its length where signs do not cancel, of a random walk with the
  // square root.
  return std::pow(length, 0.75) * (input.fraction_bits > 10 ? 0x1p-23 : 0x1p-22);
}

double drift_unit(const formats::Format& input, std::int64_t k) {
  // The units of integers, FP64 and 8 bits grow with K anyway.
  if (formats::is_integer(input) || input.fraction_bits > 24 || formats::bits(input) <= 8) return 0;
  // Matrix units truncate what they align, each product as well.
  const double one = input.fraction_bits > 10 ? 0x1p-24 : 0x1p-23;
  return std::expm1(static_cast<double>(k + 1) * one);
}

double half_spacing(const formats::Format& format, double x) {
  if (formats::is_integer(format)) return 0.5;
  int exponent = 0;
  std::frexp(x, &exponent);
  const int lowest = 1 - format.bias;
  return std::ldexp(0.5, (x == 0 ? lowest : std::max(exponent - 1, lowest)) - format.fraction_bits);
}

double truncated(const formats::Format& format, double x) {
  const double spacing = 2 * half_spacing(format, x);
  return std::isfinite(x) ? std::trunc(x / spacing) * spacing : x;
}

namespace {

/// Of integers: a conversion saturates, or a sum in 32 bits wraps.
bool is_integer_overflow(const ProductNumbers& x, double seen, double wanted, double largest) {
  const double least = x.output.has_sign ? -largest : 0;
  const bool is_above = wanted >= largest;
  if (!is_above && wanted > least) return false;
  if (is_above ? seen == largest : seen <= least) return true;
  return formats::bits(x.output) == 32 && std::fmod(seen - wanted, 0x1p32) == 0;
}

/// What D's format makes of a number that is too large for it, or NaN of one.
bool is_overflow(const ProductNumbers& x, double seen, double wanted, double largest) {
  if (formats::is_integer(x.output)) return is_integer_overflow(x, seen, wanted, largest);
  return std::abs(wanted) >= largest * 0.999 &&
         (!std::isfinite(seen) || std::abs(seen) >= largest * 0.99);
}

/// Compares output by output until `differs` says to stop.
template <class Differs>
void compare(const ProductNumbers& x, const Expected& expected, const RealMatrix* extra,
             const Differs& differs) {
  formats::check_stop();
  // Products and sums in FP32 lose their subnormal bits, or are flushed to zero.
  const double lost = formats::is_integer(x.input) || x.input.fraction_bits > 24
                          ? 0
                          : static_cast<double>(x.k()) * 0x1p-126;
  const double largest = scalar::decoded(x.output, formats::max_finite_code(x.output));
  for (std::size_t i = 0; i < x.d.values.size(); ++i) {
    double wanted = expected.result.values[i], seen = x.d.values[i];
    if (!std::isfinite(wanted) || x.is_left_out(i)) continue;
    if (x.activation == Activation::relu)
      wanted = std::max(wanted, 0.0), seen = std::isnan(seen) ? seen : std::max(seen, 0.0);
    double allowed = lost + x.rounding_of_sums(wanted, expected.magnitude.values[i]) +
                     (extra == nullptr ? 0 : extra->values[i]);
    if (is_smooth(x.activation)) {
      allowed = allowed_through(x, wanted, allowed);
      wanted = activated_in_doubles(x.activation, wanted);
      seen = activated_in_doubles(x.activation, seen);
    }
    const double error = std::abs(seen - wanted);
    if (error <= allowed || error <= allowed + x.rounding_of_d(wanted)) continue;
    if (!is_overflow(x, seen, wanted, largest) && !differs(i)) return;
  }
}

}  // namespace

Disagreement disagreement(const ProductNumbers& x, const Expected& expected,
                          const RealMatrix* extra) {
  Disagreement result;
  result.at.resize(x.d.values.size());
  compare(x, expected, extra, [&](std::size_t i) {
    result.at[i] = true;
    ++result.count;
    return true;
  });
  return result;
}

bool agrees(const ProductNumbers& x, const Expected& expected, const RealMatrix* extra) {
  bool all_agree = true;
  compare(x, expected, extra, [&](std::size_t) { return all_agree = false; });
  return all_agree && (std::isinf(x.most_error) || error_of(x, expected) <= x.most_error);
}

bool agrees_at_worst(const ProductNumbers& x, const Expected& expected) {
  const double unit = drift_unit(x.input, x.k());
  const RealMatrix extra =
      mapped(expected.magnitude, [&](double magnitude) { return unit * magnitude; });
  return agrees(x, expected, &extra);
}

double error_of(const ProductNumbers& x, const Expected& expected) {
  double sum = 0;
  std::int64_t count = 0;
  for (std::size_t i = 0; i < x.d.values.size(); ++i) {
    const double error = x.d.values[i] - expected.result.values[i];
    if (!std::isfinite(error) || !(expected.magnitude.values[i] > 0) || x.is_blurred(i)) continue;
    const double share = error / expected.magnitude.values[i];
    sum += share * share;
    ++count;
  }
  return count == 0 ? 0 : std::sqrt(sum / static_cast<double>(count));
}

bool is_rounded_once(const ProductNumbers& x) {
  if (is_smooth(x.activation)) return false;      // the functions here are not exact
  if (x.output.fraction_bits > 24) return false;  // nor are the sums, for a D of FP64
  const Expected asked = x.asked();
  // A double's own rounding error is below this part of the magnitude.
  const double blur = static_cast<double>(x.k() + 4) * 0x1p-53;
  for (std::size_t i = 0; i < x.d.values.size(); ++i) {
    const double wanted = asked.result.values[i];
    if (!std::isfinite(wanted)) continue;
    if (!(std::abs(x.d.values[i] - wanted) <=
          half_spacing(x.output, wanted) + blur * asked.magnitude.values[i]))
      return false;
  }
  return true;
}

}  // namespace guardbit::emulator
