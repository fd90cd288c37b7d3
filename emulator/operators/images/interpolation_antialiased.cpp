#include <algorithm>
#include <cmath>
#include <vector>

#include "emulator/operators/images/interpolation.hpp"
#include "emulator/operators/number_view.hpp"

namespace guardbit::emulator::operators {
namespace {

template <class Number>
Number triangle(Number x) {
  x = std::abs(x);
  return x < 1 ? 1 - x : 0;
}
/// The cubic convolution with A = -0.5.
template <class Number>
Number cubic_filter(Number x) {
  x = std::abs(x);
  if (x < 1) return std::fma(std::fma(Number{1.5F}, x, Number{-2.5F}) * x, x, Number{1});
  if (x < 2) return std::fma(std::fma(x - 5, x, Number{8}), x, Number{-4}) * Number{-0.5F};
  return 0;
}

/// The elements that a result is of, along one dimension.
template <class Number>
struct Filtered {
  std::int64_t begin = 0;
  std::vector<Number> weights;
};
/// Weights and their sum are rounded to the tensor's type, and the quotients once more.
template <class Number>
std::vector<Filtered<Number>> filtered(const formats::Format& type, std::int64_t input,
                                       std::int64_t output, const std::optional<double>& scale,
                                       bool aligns_corners, bool is_cubic) {
  const auto step = step_of<Number>(input, output, aligns_corners, scale);
  constexpr auto half = static_cast<Number>(0.5);
  const auto reach = static_cast<Number>(is_cubic ? 2 : 1);
  const Number support = step >= 1 ? reach * step : reach;
  const Number inverse = step >= 1 ? 1 / step : 1;
  std::vector<Filtered<Number>> all;
  for (std::int64_t i = 0; i < output; ++i) {
    const Number centre = static_cast<Number>(i) + half;
    const auto begin = std::max<std::int64_t>(
        static_cast<std::int64_t>(std::fma(centre, step, -support) + half), 0);
    const auto end =
        std::min(static_cast<std::int64_t>(std::fma(centre, step, support) + half), input);
    const Number distance = std::fma(-centre, step, static_cast<Number>(begin));
    Filtered<Number> own{.begin = begin, .weights = {}};
    Number sum = 0;
    for (std::int64_t j = 0; j < end - begin; ++j) {
      const Number x = (static_cast<Number>(j) + distance + half) * inverse;
      const Number weight = is_cubic ? cubic_filter(x) : triangle(x);
      own.weights.push_back(rounded(type, weight));
      sum += weight;
    }
    if (own.weights.empty()) throw UnknownShape{"a result of no elements"};
    if (sum != 0) {
      for (Number& weight : own.weights) weight = rounded(type, weight / rounded(type, sum));
    }
    all.push_back(std::move(own));
  }
  return all;
}

}  // namespace

Tensor interpolate_antialiased(const Tensor& input, const Interpolation& rule, bool is_cubic) {
  const Images in(input.shape, 2);
  const Dimensions shape = resized(input.shape, rule.size, 2);
  return in_numbers_of(input, [&]<class Number>(Number) {
    const ViewOf<Number> numbers(input);
    const auto rows = filtered<Number>(input.type, in.size.rows, rule.size.rows, rule.scales.rows,
                                       rule.aligns_corners, is_cubic);
    const auto columns = filtered<Number>(input.type, in.size.columns, rule.size.columns,
                                          rule.scales.columns, rule.aligns_corners, is_cubic);
    // The sum of each row that a result is of is rounded to the tensor's type.
    const auto of_row = [&](std::int64_t n, std::int64_t row, const Filtered<Number>& c) {
      const std::size_t begin = index(in.begin(n) + in.size.place(0, row, c.begin));
      Number sum = numbers[begin] * c.weights[0];
      for (std::size_t j = 1; j < c.weights.size(); ++j)
        sum = std::fma(numbers[begin + j], c.weights[j], sum);
      return rounded(input.type, sum);
    };
    std::vector<Number> results;
    for (std::int64_t n = 0; n < in.count; ++n) {
      for (const auto& r : rows) {
        for (const auto& c : columns) {
          Number sum = 0;
          for (std::size_t k = 0; k < r.weights.size(); ++k) {
            const Number own = of_row(n, r.begin + static_cast<std::int64_t>(k), c);
            sum = k == 0 ? own * r.weights[0] : std::fma(own, r.weights[k], sum);
          }
          results.push_back(sum);
        }
      }
    }
    return tensor_of(input.type, shape, stride_like(input, shape), results);
  });
}

}  // namespace guardbit::emulator::operators
