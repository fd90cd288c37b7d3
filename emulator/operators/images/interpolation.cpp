#include "emulator/operators/images/interpolation.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "emulator/operators/memory_order.hpp"
#include "emulator/operators/number_view.hpp"

namespace guardbit::emulator::operators {
namespace {

/// Where a result's place along one dimension takes its element: places are FP32 numbers of any
/// tensor. Images of one length are copied along it; rows and volumes are not.
std::vector<std::int64_t> nearest_places(std::int64_t input, std::int64_t output,
                                         const std::optional<double>& scale,
                                         const Interpolation& rule) {
  const auto step = step_of<float>(input, output, false, scale);
  const bool is_copy = rule.dimensions == 2 && input == output;
  std::vector<std::int64_t> places;
  for (std::int64_t i = 0; i < output; ++i) {
    const float at = static_cast<float>(i) + (rule.takes_centres ? 0.5F : 0.0F);
    places.push_back(
        is_copy ? i : std::min(static_cast<std::int64_t>(std::floor(at * step)), input - 1));
  }
  return places;
}

/// The first result that an element takes the gradient of, for each element and the one after the
/// last.
std::vector<std::int64_t> first_results(std::int64_t input, std::int64_t output,
                                        const std::optional<double>& scale,
                                        const Interpolation& rule) {
  const float step = scale && *scale > 0 ? static_cast<float>(*scale)
                                         : static_cast<float>(output) / static_cast<float>(input);
  std::vector<std::int64_t> firsts;
  for (std::int64_t i = 0; i <= input; ++i) {
    const auto place = static_cast<float>(i);
    const float at = rule.takes_centres ? std::fma(place, step, -0.5F) : place * step;
    firsts.push_back(std::min(static_cast<std::int64_t>(std::ceil(at)), output));
  }
  return firsts;
}

/// Where an output lies between the elements of the input.
template <class Number>
Number place_of(std::int64_t output, Number step, bool aligns_corners) {
  constexpr auto half = static_cast<Number>(0.5);
  const auto place = static_cast<Number>(output);
  return aligns_corners ? step * place : std::fma(step, place + half, -half);
}

/// Two neighbours of a place between elements, with their weights.
template <class Number>
struct Between {
  std::int64_t first, second;
  Number of_first, of_second;
};
template <class Number>
std::vector<Between<Number>> between(std::int64_t input, std::int64_t output,
                                     const std::optional<double>& scale, bool aligns_corners) {
  const auto step = step_of<Number>(input, output, aligns_corners, scale);
  std::vector<Between<Number>> all;
  for (std::int64_t i = 0; i < output; ++i) {
    const Number at = std::max(place_of(i, step, aligns_corners), Number{0});
    const auto first = static_cast<std::int64_t>(at);
    const Number rest = at - static_cast<Number>(first);
    all.push_back({first, first + (first < input - 1 ? 1 : 0), Number{1} - rest, rest});
  }
  return all;
}

template <class Number>
Number mixed(const Between<Number>& at, Number first, Number second) {
  return std::fma(at.of_first, first, at.of_second * second);
}

/// As the compiler fused the first row of FP32 and FP64 images whose 16 or more channels lie
/// together.
template <class Number>
Number mixed_second_first(const Between<Number>& at, Number first, Number second) {
  return std::fma(at.of_second, second, at.of_first * first);
}

/// Four neighbours of a place between elements, from the one before the first, with their weights.
template <class Number>
struct Cubic {
  std::array<std::int64_t, 4> places = {};
  std::array<Number, 4> weights = {};
};
template <class Number>
std::vector<Cubic<Number>> cubic(std::int64_t input, std::int64_t output,
                                 const std::optional<double>& scale, bool aligns_corners) {
  const auto step = step_of<Number>(input, output, aligns_corners, scale);
  std::vector<Cubic<Number>> all;
  for (std::int64_t i = 0; i < output; ++i) {
    const Number at = place_of(i, step, aligns_corners);
    // The floor is that of an FP32 number, of FP64 images, too.
    const Number whole = std::floor(static_cast<float>(at));
    Cubic<Number> own;
    for (std::int64_t k = 0; k < 4; ++k)
      own.places[index(k)] =
          std::clamp<std::int64_t>(static_cast<std::int64_t>(whole) - 1 + k, 0, input - 1);
    own.weights = cubic_weights(at - whole);
    all.push_back(own);
  }
  return all;
}

/// Of neighbours nearer than 1 and farther, by the distance.
template <class Number>
Number near_weight(Number x) {
  return std::fma(std::fma(Number{1.25F}, x, Number{-2.25F}) * x, x, Number{1});
}
template <class Number>
Number far_weight(Number x) {
  return std::fma(std::fma(std::fma(Number{-0.75F}, x, Number{3.75F}), x, Number{-6}), x,
                  Number{3});
}

}  // namespace

template <class Number>
std::array<Number, 4> cubic_weights(Number distance) {
  const Number rest = Number{1} - distance;
  return {far_weight(distance + Number{1}), near_weight(distance), near_weight(rest),
          far_weight(rest + Number{1})};
}
template std::array<float, 4> cubic_weights(float);
template std::array<double, 4> cubic_weights(double);

template <class Number>
Number weighted(const std::array<Number, 4>& x, const std::array<Number, 4>& weights) {
  const Number two = std::fma(x[0], weights[0], x[1] * weights[1]);
  return std::fma(x[3], weights[3], std::fma(x[2], weights[2], two));
}
template float weighted(const std::array<float, 4>&, const std::array<float, 4>&);
template double weighted(const std::array<double, 4>&, const std::array<double, 4>&);

Tensor interpolate_nearest(const Tensor& input, const Interpolation& rule) {
  const Images in(input.shape, rule.dimensions);
  const Dimensions shape = resized(input.shape, rule.size, rule.dimensions);
  const auto depths = nearest_places(in.size.depth, rule.size.depth, rule.scales.depth, rule);
  const auto rows = nearest_places(in.size.rows, rule.size.rows, rule.scales.rows, rule);
  const auto columns =
      nearest_places(in.size.columns, rule.size.columns, rule.scales.columns, rule);
  std::vector<std::int64_t> places;
  for (std::int64_t n = 0; n < in.count; ++n) {
    for (const std::int64_t d : depths) {
      for (const std::int64_t r : rows) {
        for (const std::int64_t c : columns) places.push_back(in.begin(n) + in.size.place(d, r, c));
      }
    }
  }
  return copies(input, shape, stride_like(input, shape), places);
}

Tensor interpolate_nearest_gradient(const Tensor& gradient, const Dimensions& input_shape,
                                    const Interpolation& rule) {
  const Images in(input_shape, rule.dimensions), out(gradient.shape, rule.dimensions);
  if (in.count != out.count) throw UnknownShape{"gradients of another number of images"};
  const Dimensions stride = stride_like(gradient, input_shape);
  if (rule.dimensions == 2 && in.size == out.size) return relaid(gradient, stride);
  const auto depths = first_results(in.size.depth, out.size.depth, rule.scales.depth, rule);
  const auto rows = first_results(in.size.rows, out.size.rows, rule.scales.rows, rule);
  const auto columns = first_results(in.size.columns, out.size.columns, rule.scales.columns, rule);
  return in_numbers_of(gradient, [&]<class Number>(Number) {
    const ViewOf<Number> gradients(gradient);
    std::vector<Number> results;
    for (std::int64_t i = 0; i < in.count * in.size.count(); ++i) {
      const std::int64_t image = i / in.size.count(), at = i % in.size.count();
      const std::size_t z = index(at / (in.size.rows * in.size.columns)),
                        y = index(at / in.size.columns % in.size.rows),
                        x = index(at % in.size.columns);
      Number sum = 0;
      for (std::int64_t d = depths[z]; d < depths[z + 1]; ++d) {
        for (std::int64_t r = rows[y]; r < rows[y + 1]; ++r) {
          for (std::int64_t c = columns[x]; c < columns[x + 1]; ++c)
            sum += gradients[index(out.begin(image) + out.size.place(d, r, c))];
        }
      }
      results.push_back(sum);
    }
    return tensor_of(gradient.type, input_shape, stride, results);
  });
}

Tensor interpolate_linear(const Tensor& input, const Interpolation& rule) {
  const Images in(input.shape, rule.dimensions);
  const Dimensions shape = resized(input.shape, rule.size, rule.dimensions);
  const Dimensions stride = stride_like(input, shape);
  if (in.size == rule.size) return relaid(input, stride);
  const bool is_fused_otherwise = rule.dimensions == 2 && says_channels_last(input) &&
                                  input.shape[1] >= 16 &&
                                  (input.type == formats::fp32 || input.type == formats::fp64);
  return in_numbers_of(input, [&]<class Number>(Number) {
    const ViewOf<Number> numbers(input);
    const auto along = [&](std::int64_t Space::*of, const std::optional<double>& scale) {
      return between<Number>(in.size.*of, rule.size.*of, scale, rule.aligns_corners);
    };
    const auto depths = along(&Space::depth, rule.scales.depth);
    const auto rows = along(&Space::rows, rule.scales.rows);
    const auto columns = along(&Space::columns, rule.scales.columns);
    std::vector<Number> results;
    for (std::int64_t n = 0; n < in.count; ++n) {
      for (const auto& d : depths) {
        for (const auto& r : rows) {
          for (const auto& c : columns) {
            const auto number = [&](std::int64_t z, std::int64_t y, std::int64_t x) {
              return numbers[index(in.begin(n) + in.size.place(z, y, x))];
            };
            const auto of_row = [&](std::int64_t z, std::int64_t y) {
              return mixed(c, number(z, y, c.first), number(z, y, c.second));
            };
            const auto of_image = [&](std::int64_t z) {
              const Number first = is_fused_otherwise
                                       ? mixed_second_first(c, number(z, r.first, c.first),
                                                            number(z, r.first, c.second))
                                       : of_row(z, r.first);
              return mixed(r, first, of_row(z, r.second));
            };
            results.push_back(rule.dimensions == 1 ? of_row(0, 0)
                              : rule.dimensions == 2
                                  ? of_image(0)
                                  : mixed(d, of_image(d.first), of_image(d.second)));
          }
        }
      }
    }
    return tensor_of(input.type, shape, stride, results);
  });
}

Tensor interpolate_cubic(const Tensor& input, const Interpolation& rule) {
  const Images in(input.shape, 2);
  const Dimensions shape = resized(input.shape, rule.size, 2);
  const Dimensions stride = stride_like(input, shape);
  if (in.size == rule.size) return relaid(input, stride);
  return in_numbers_of(input, [&]<class Number>(Number) {
    const ViewOf<Number> numbers(input);
    const auto rows =
        cubic<Number>(in.size.rows, rule.size.rows, rule.scales.rows, rule.aligns_corners);
    const auto columns =
        cubic<Number>(in.size.columns, rule.size.columns, rule.scales.columns, rule.aligns_corners);
    std::vector<Number> results;
    for (std::int64_t n = 0; n < in.count; ++n) {
      for (const auto& r : rows) {
        for (const auto& c : columns) {
          std::array<Number, 4> of_rows{}, own{};
          for (std::size_t k = 0; k < 4; ++k) {
            for (std::size_t j = 0; j < 4; ++j)
              own[j] = numbers[index(in.begin(n) + in.size.place(0, r.places[k], c.places[j]))];
            of_rows[k] = weighted(own, c.weights);
          }
          results.push_back(weighted(of_rows, r.weights));
        }
      }
    }
    return tensor_of(input.type, shape, stride, results);
  });
}

}  // namespace guardbit::emulator::operators
