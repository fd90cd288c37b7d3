#include "emulator/operators/pooling.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <vector>

#include "emulator/operators/memory_order.hpp"
#include "emulator/operators/number_view.hpp"
#include "emulator/operators/reductions.hpp"

namespace guardbit::emulator::operators {
namespace {

struct Images {
  std::int64_t count = 1, rows = 1, columns = 1;
  explicit Images(const Dimensions& shape) {
    rows = shape[shape.size() - 2];
    columns = shape[shape.size() - 1];
    for (std::size_t d = 0; d + 2 < shape.size(); ++d) count *= shape[d];
  }
  std::int64_t size() const { return rows * columns; }
};

bool has_channels_together(const Tensor& tensor) {
  return tensor.rank() == 4 && tensor.shape[1] > 1 && tensor.stride[1] == 1 &&
         !is_contiguous(tensor);
}

/// Strides of an image tensor of another size in the input's order of memory.
Dimensions stride_like(const Tensor& input, const Dimensions& shape) {
  return has_channels_together(input) ? channels_last_stride(shape) : contiguous_stride(shape);
}

Dimensions resized(const Dimensions& shape, Pair size) {
  Dimensions other = shape;
  other[other.size() - 2] = size.rows;
  other[other.size() - 1] = size.columns;
  return other;
}

std::int64_t pooled_size(std::int64_t input, std::int64_t size, std::int64_t stride,
                         std::int64_t padding, std::int64_t dilation, bool rounds_up) {
  const std::int64_t room =
      input + 2 * padding - dilation * (size - 1) - 1 + (rounds_up ? stride - 1 : 0);
  if (room < 0) throw UnknownShape{"a window that is larger than the image"};
  std::int64_t count = room / stride + 1;
  if (rounds_up && (count - 1) * stride >= input + padding) --count;
  return count;
}
Pair pooled_size(const Images& in, const PoolingWindow& w) {
  return {pooled_size(in.rows, w.size.rows, w.stride.rows, w.padding.rows, w.dilation.rows,
                      w.rounds_up),
          pooled_size(in.columns, w.size.columns, w.stride.columns, w.padding.columns,
                      w.dilation.columns, w.rounds_up)};
}

/// The part of an averaging window that lies inside the image, and its divisor.
struct Extent {
  std::int64_t begin, end, padded;
};
Extent extent_of(std::int64_t place, std::int64_t size, std::int64_t stride, std::int64_t padding,
                 std::int64_t input) {
  const std::int64_t begin = place * stride - padding;
  const std::int64_t end = std::min(begin + size, input + padding);
  return {std::max<std::int64_t>(begin, 0), std::min(end, input), end - begin};
}
float divisor_of(const Extent& rows, const Extent& columns, const AverageRule& rule) {
  if (rule.divisor) return static_cast<float>(*rule.divisor);
  if (rule.counts_padding) return static_cast<float>(rows.padded * columns.padded);
  return static_cast<float>((rows.end - rows.begin) * (columns.end - columns.begin));
}

/// The elements that an output of adaptive pooling averages.
struct Share {
  std::int64_t begin, end;
};
Share share_of(std::int64_t place, std::int64_t outputs, std::int64_t inputs) {
  return {place * inputs / outputs, ((place + 1) * inputs + outputs - 1) / outputs};
}

float scale_of(std::int64_t input, std::int64_t output, const std::optional<double>& scale) {
  if (scale && *scale > 0) return static_cast<float>(1.0 / *scale);
  return static_cast<float>(input) / static_cast<float>(output);
}
std::int64_t nearest(std::int64_t place, float scale, std::int64_t input, bool takes_centres) {
  const float at = takes_centres ? static_cast<float>(place) + 0.5F : static_cast<float>(place);
  return std::min(static_cast<std::int64_t>(std::floor(at * scale)), input - 1);
}

/// Two neighbours of a place between elements, with their weights.
struct Between {
  std::int64_t first, second;
  float of_first, of_second;
};
Between between(std::int64_t place, std::int64_t input, std::int64_t output, bool aligns_corners,
                const std::optional<double>& scale) {
  float at = 0;
  if (aligns_corners) {
    const float step =
        output > 1 ? static_cast<float>(input - 1) / static_cast<float>(output - 1) : 0.0F;
    at = step * static_cast<float>(place);
  } else {
    const float step = scale_of(input, output, scale);
    at = std::max(std::fma(step, static_cast<float>(place) + 0.5F, -0.5F), 0.0F);
  }
  const auto first = static_cast<std::int64_t>(at);
  const float rest = at - static_cast<float>(first);
  return {first, first + (first < input - 1 ? 1 : 0), 1.0F - rest, rest};
}

/// Four neighbours of a place between elements, from the one before the first, with their weights.
struct Cubic {
  std::int64_t first = 0;
  std::array<float, 4> weights = {};
};
/// Weights of neighbours nearer than 1 and farther, by the distance.
float near_weight(float x) { return std::fma(std::fma(1.25F, x, -2.25F) * x, x, 1.0F); }
float far_weight(float x) {
  return std::fma(std::fma(std::fma(-0.75F, x, 3.75F), x, -6.0F), x, 3.0F);
}
Cubic cubic(std::int64_t place, std::int64_t input, std::int64_t output, bool aligns_corners,
            const std::optional<double>& scale) {
  float at = 0;
  if (aligns_corners) {
    const float step =
        output > 1 ? static_cast<float>(input - 1) / static_cast<float>(output - 1) : 0.0F;
    at = step * static_cast<float>(place);
  } else {
    at = std::fma(scale_of(input, output, scale), static_cast<float>(place) + 0.5F, -0.5F);
  }
  const float whole = std::floor(at);
  const float t = at - whole, rest = 1.0F - t;
  return {static_cast<std::int64_t>(whole) - 1,
          {far_weight(t + 1.0F), near_weight(t), near_weight(rest), far_weight(rest + 1.0F)}};
}
float weighted(const std::array<float, 4>& x, const std::array<float, 4>& weights) {
  const float two = std::fma(x[0], weights[0], x[1] * weights[1]);
  return std::fma(x[3], weights[3], std::fma(x[2], weights[2], two));
}

std::size_t index(std::int64_t i) { return static_cast<std::size_t>(i); }

}  // namespace

MaxPooled max_pool(const Tensor& input, const PoolingWindow& w) {
  const Images in(input.shape);
  const Pair size = pooled_size(in, w);
  const NumberView numbers(input);
  std::vector<float> greatest;
  std::vector<std::int64_t> places;
  for (std::int64_t n = 0; n < in.count; ++n) {
    for (std::int64_t r = 0; r < size.rows; ++r) {
      for (std::int64_t c = 0; c < size.columns; ++c) {
        float best = -std::numeric_limits<float>::infinity();
        std::int64_t place = -1;
        for (std::int64_t y = 0; y < w.size.rows; ++y) {
          for (std::int64_t x = 0; x < w.size.columns; ++x) {
            const std::int64_t row = r * w.stride.rows - w.padding.rows + y * w.dilation.rows;
            const std::int64_t column =
                c * w.stride.columns - w.padding.columns + x * w.dilation.columns;
            if (row < 0 || column < 0 || row >= in.rows || column >= in.columns) continue;
            const std::int64_t at = row * in.columns + column;
            const float number = numbers[index(n * in.size() + at)];
            if (place < 0) place = at;
            if (number > best || number != number) {
              best = number;
              place = at;
            }
          }
        }
        greatest.push_back(best);
        places.push_back(place);
      }
    }
  }
  const Dimensions shape = resized(input.shape, size);
  return {tensor_of_numbers(input.type, shape, stride_like(input, shape), greatest),
          tensor_of_integers(formats::int64, shape, places)};
}

Tensor max_pool_gradient(const Tensor& gradient, const Tensor& input, const Tensor& indices) {
  const Images in(input.shape), out(gradient.shape);
  const NumberView gradients(gradient);
  const std::vector<std::int64_t> places = places_of(indices, in.size(), -1);
  if (indices.count() != gradient.count() || out.count != in.count)
    throw UnknownShape{"indices or gradients for another number of windows"};
  std::vector<float> results(index(input.count()));
  for (std::size_t i = 0; i < places.size(); ++i) {
    const std::int64_t image = static_cast<std::int64_t>(i) / out.size();
    if (places[i] >= 0) results[index(image * in.size() + places[i])] += gradients[i];
  }
  return tensor_of_numbers(input.type, input.shape, stride_of_result(input), results);
}

Tensor average_pool(const Tensor& input, const PoolingWindow& w, const AverageRule& rule) {
  const Images in(input.shape);
  const Pair size = pooled_size(in, w);
  const NumberView numbers(input);
  std::vector<float> results;
  for (std::int64_t n = 0; n < in.count; ++n) {
    for (std::int64_t r = 0; r < size.rows; ++r) {
      const Extent rows = extent_of(r, w.size.rows, w.stride.rows, w.padding.rows, in.rows);
      for (std::int64_t c = 0; c < size.columns; ++c) {
        const Extent columns =
            extent_of(c, w.size.columns, w.stride.columns, w.padding.columns, in.columns);
        float sum = 0;
        for (std::int64_t y = rows.begin; y < rows.end; ++y) {
          for (std::int64_t x = columns.begin; x < columns.end; ++x)
            sum += numbers[index(n * in.size() + y * in.columns + x)];
        }
        const bool is_empty = rows.begin >= rows.end || columns.begin >= columns.end;
        results.push_back(is_empty ? 0 : sum / divisor_of(rows, columns, rule));
      }
    }
  }
  const Dimensions shape = resized(input.shape, size);
  return tensor_of_numbers(input.type, shape, stride_like(input, shape), results);
}

Tensor average_pool_gradient(const Tensor& gradient, const Tensor& input, const PoolingWindow& w,
                             const AverageRule& rule) {
  const Images in(input.shape), out(gradient.shape);
  const NumberView gradients(gradient);
  // Where channels lie together PyTorch 2.11 looks for an element's windows as if there were no
  // padding.
  const Pair shift = has_channels_together(input) ? Pair{0, 0} : w.padding;
  const auto first = [](std::int64_t place, std::int64_t size, std::int64_t stride) {
    return place < size ? 0 : (place - size) / stride + 1;
  };
  std::vector<float> results;
  for (std::int64_t n = 0; n < in.count; ++n) {
    for (std::int64_t y = shift.rows; y < in.rows + shift.rows; ++y) {
      for (std::int64_t x = shift.columns; x < in.columns + shift.columns; ++x) {
        float sum = 0;
        for (std::int64_t r = first(y, w.size.rows, w.stride.rows);
             r < std::min(y / w.stride.rows + 1, out.rows); ++r) {
          const Extent rows = extent_of(r, w.size.rows, w.stride.rows, w.padding.rows, in.rows);
          for (std::int64_t c = first(x, w.size.columns, w.stride.columns);
               c < std::min(x / w.stride.columns + 1, out.columns); ++c) {
            const Extent columns =
                extent_of(c, w.size.columns, w.stride.columns, w.padding.columns, in.columns);
            if (rows.begin >= rows.end || columns.begin >= columns.end) continue;
            // The quotient is of the tensor's type.
            sum += rounded_to(input.type, gradients[index(n * out.size() + r * out.columns + c)] /
                                              divisor_of(rows, columns, rule));
          }
        }
        results.push_back(sum);
      }
    }
  }
  return tensor_of_numbers(input.type, input.shape, stride_of_result(input), results);
}

Tensor adaptive_average_pool(const Tensor& input, Pair size) {
  const Images in(input.shape);
  const NumberView numbers(input);
  std::vector<float> results;
  for (std::int64_t n = 0; n < in.count; ++n) {
    for (std::int64_t r = 0; r < size.rows; ++r) {
      const Share rows = share_of(r, size.rows, in.rows);
      for (std::int64_t c = 0; c < size.columns; ++c) {
        const Share columns = share_of(c, size.columns, in.columns);
        float sum = 0;
        for (std::int64_t y = rows.begin; y < rows.end; ++y) {
          for (std::int64_t x = columns.begin; x < columns.end; ++x)
            sum += numbers[index(n * in.size() + y * in.columns + x)];
        }
        results.push_back(sum / static_cast<float>(rows.end - rows.begin) /
                          static_cast<float>(columns.end - columns.begin));
      }
    }
  }
  const Dimensions shape = resized(input.shape, size);
  return tensor_of_numbers(input.type, shape, stride_like(input, shape), results);
}

std::optional<Tensor> adaptive_average_pool_gradient(const Tensor& gradient, const Tensor& input) {
  const Images in(input.shape), out(gradient.shape);
  if (in.rows % out.rows != 0 || in.columns % out.columns != 0) return std::nullopt;
  const NumberView gradients(gradient);
  const std::int64_t height = in.rows / out.rows, width = in.columns / out.columns;
  std::vector<float> results(index(input.count()));
  for (std::int64_t n = 0; n < in.count; ++n) {
    for (std::int64_t y = 0; y < in.rows; ++y) {
      for (std::int64_t x = 0; x < in.columns; ++x) {
        const float own = gradients[index(n * out.size() + y / height * out.columns + x / width)];
        const float by_columns = rounded_to(input.type, own / static_cast<float>(width));
        results[index(n * in.size() + y * in.columns + x)] =
            by_columns / static_cast<float>(height);
      }
    }
  }
  return tensor_of_numbers(input.type, input.shape, stride_of_result(input), results);
}

Tensor upsample_nearest(const Tensor& input, Pair size, const Scales& scales) {
  const Images in(input.shape);
  const NumberView numbers(input);
  const float by_row = scale_of(in.rows, size.rows, scales.rows);
  const float by_column = scale_of(in.columns, size.columns, scales.columns);
  std::vector<float> results;
  for (std::int64_t n = 0; n < in.count; ++n) {
    for (std::int64_t r = 0; r < size.rows; ++r) {
      const std::int64_t row = nearest(r, by_row, in.rows, scales.takes_centres);
      for (std::int64_t c = 0; c < size.columns; ++c)
        results.push_back(numbers[index(n * in.size() + row * in.columns +
                                        nearest(c, by_column, in.columns, scales.takes_centres))]);
    }
  }
  const Dimensions shape = resized(input.shape, size);
  return tensor_of_numbers(input.type, shape, stride_like(input, shape), results);
}

Tensor upsample_nearest_gradient(const Tensor& gradient, const Dimensions& input_shape,
                                 const Scales& scales) {
  const Images in(input_shape), out(gradient.shape);
  const NumberView gradients(gradient);
  const float by_row = scale_of(in.rows, out.rows, scales.rows);
  const float by_column = scale_of(in.columns, out.columns, scales.columns);
  std::vector<float> results(index(in.count * in.size()));
  for (std::int64_t n = 0; n < in.count; ++n) {
    for (std::int64_t r = 0; r < out.rows; ++r) {
      const std::int64_t row = nearest(r, by_row, in.rows, scales.takes_centres);
      for (std::int64_t c = 0; c < out.columns; ++c)
        results[index(n * in.size() + row * in.columns +
                      nearest(c, by_column, in.columns, scales.takes_centres))] +=
            gradients[index(n * out.size() + r * out.columns + c)];
    }
  }
  return tensor_of_numbers(gradient.type, input_shape, stride_like(gradient, input_shape), results);
}

Tensor upsample_bilinear(const Tensor& input, Pair size, bool aligns_corners,
                         const Scales& scales) {
  const Images in(input.shape);
  const NumberView numbers(input);
  std::vector<float> results;
  for (std::int64_t n = 0; n < in.count; ++n) {
    const auto at = [&](std::int64_t y, std::int64_t x) {
      return numbers[index(n * in.size() + y * in.columns + x)];
    };
    for (std::int64_t r = 0; r < size.rows; ++r) {
      const Between rows = between(r, in.rows, size.rows, aligns_corners, scales.rows);
      for (std::int64_t c = 0; c < size.columns; ++c) {
        const Between columns =
            between(c, in.columns, size.columns, aligns_corners, scales.columns);
        const float upper = std::fma(columns.of_first, at(rows.first, columns.first),
                                     columns.of_second * at(rows.first, columns.second));
        const float lower = std::fma(columns.of_first, at(rows.second, columns.first),
                                     columns.of_second * at(rows.second, columns.second));
        results.push_back(std::fma(rows.of_first, upper, rows.of_second * lower));
      }
    }
  }
  const Dimensions shape = resized(input.shape, size);
  return tensor_of_numbers(input.type, shape, stride_like(input, shape), results);
}

Tensor upsample_linear(const Tensor& input, std::int64_t length, bool aligns_corners,
                       const std::optional<double>& scale) {
  const NumberView numbers(input);
  const std::int64_t own = input.shape.back();
  std::vector<float> results;
  for (std::int64_t row = 0; row * own < input.count(); ++row) {
    for (std::int64_t c = 0; c < length; ++c) {
      const Between at = between(c, own, length, aligns_corners, scale);
      results.push_back(std::fma(at.of_first, numbers[index(row * own + at.first)],
                                 at.of_second * numbers[index(row * own + at.second)]));
    }
  }
  Dimensions shape = input.shape;
  shape.back() = length;
  return tensor_of_numbers(input.type, shape, results);
}

Tensor upsample_bicubic(const Tensor& input, Pair size, bool aligns_corners, const Scales& scales) {
  const Images in(input.shape);
  if (in.rows == size.rows && in.columns == size.columns) return input;
  const NumberView numbers(input);
  std::vector<float> results;
  for (std::int64_t n = 0; n < in.count; ++n) {
    for (std::int64_t r = 0; r < size.rows; ++r) {
      const Cubic rows = cubic(r, in.rows, size.rows, aligns_corners, scales.rows);
      for (std::int64_t c = 0; c < size.columns; ++c) {
        const Cubic columns = cubic(c, in.columns, size.columns, aligns_corners, scales.columns);
        std::array<float, 4> of_rows{}, own{};
        for (std::int64_t k = 0; k < 4; ++k) {
          const std::int64_t y = std::clamp<std::int64_t>(rows.first + k, 0, in.rows - 1);
          for (std::int64_t j = 0; j < 4; ++j) {
            const std::int64_t x = std::clamp<std::int64_t>(columns.first + j, 0, in.columns - 1);
            own[index(j)] = numbers[index(n * in.size() + y * in.columns + x)];
          }
          of_rows[index(k)] = weighted(own, columns.weights);
        }
        results.push_back(weighted(of_rows, rows.weights));
      }
    }
  }
  const Dimensions shape = resized(input.shape, size);
  return tensor_of_numbers(input.type, shape, results);
}

std::optional<Tensor> adaptive_max_pool_gradient(const Tensor& gradient, const Tensor& input,
                                                 const Tensor& indices) {
  const Images in(input.shape), out(gradient.shape);
  if (indices.shape != gradient.shape || in.count != out.count)
    throw UnknownShape{"indices of another shape"};
  const NumberView gradients(gradient);
  const std::vector<std::int64_t> places = places_of(indices, in.size());
  std::vector<float> results(index(input.count()));
  std::vector<std::int8_t> counts(results.size());
  for (std::int64_t i = 0; i < gradient.count(); ++i) {
    const std::size_t to = index(i / out.size() * in.size() + places[index(i)]);
    if (++counts[to] > 2) return std::nullopt;
    results[to] += gradients[index(i)];
  }
  return tensor_of_numbers(input.type, input.shape, results);
}

}  // namespace guardbit::emulator::operators
