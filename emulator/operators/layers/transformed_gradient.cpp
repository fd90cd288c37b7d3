#include "emulator/operators/layers/transformed_gradient.hpp"

#include <cmath>
#include <vector>

#include "emulator/operators/memory_order.hpp"
#include "emulator/operators/number_view.hpp"
#include "formats/support/parallel.hpp"
#include "formats/support/whole_division.hpp"

namespace guardbit::emulator::operators {
namespace {

constexpr std::int64_t step = 4, side = 6, filter_side = 3;
constexpr auto places = static_cast<std::size_t>(side * side);

using Six = std::array<float, 6>;
using Four = std::array<float, 4>;
using Three = std::array<float, 3>;

Six of_pixels(const Six& x) {
  const float odd = std::fma(0.25F, x[1], -x[3]), even = std::fma(0.25F, x[2], -x[4]);
  const float odd_step = x[1] - x[3], even_step = x[2] - x[4];
  return {(1.25F * x[2] - 0.25F * x[0]) - x[4],
          odd + even,
          even - odd,
          std::fma(0.5F, odd_step, even_step),
          std::fma(-0.5F, odd_step, even_step),
          (1.25F * x[3] - 0.25F * x[1]) - x[5]};
}

/// `is_fused`: multiply-adds; in the last row of the second pass the compiler kept two products.
Six of_gradients(const Four& x, bool is_fused) {
  constexpr float third = 1.0F / 3, two = 2.0F / 3, four = 4.0F / 3, eight = 8.0F / 3;
  const float even = is_fused ? std::fma(two, x[0], two * x[2]) : two * x[0] + two * x[2];
  const float odd = is_fused ? std::fma(two, x[1], two * x[3]) : two * x[1] + two * x[3];
  const float even_half = std::fma(-eight, x[0], -two * x[2]);
  const float odd_half = std::fma(-four, x[1], -third * x[3]);
  return {4 * x[0], even + odd, even - odd, even_half + odd_half, even_half - odd_half, x[3]};
}

/// The middle sum is one of FP64 numbers, rounded once.
Three of_sums(const Six& x) {
  const float ones = x[1] + x[2], halves = x[3] + x[4];
  const double middle = static_cast<double>(x[1] - x[2]) + 0.5 * static_cast<double>(x[3]) -
                        0.5 * static_cast<double>(x[4]);
  return {(x[0] + ones) + halves, static_cast<float>(middle), std::fma(0.25F, halves, ones + x[5])};
}

/// Rows and columns of a piece, and where it begins in an image.
struct Pieces {
  std::int64_t images, rows, columns;

  std::int64_t count() const { return images * rows * columns; }
};

/// One channel's image: outside of it are zeros.
struct Plane {
  const NumberView& numbers;
  std::int64_t begin, rows, columns;

  float at(std::int64_t row, std::int64_t column) const {
    if (row < 0 || row >= rows || column < 0 || column >= columns) return 0;
    return numbers[static_cast<std::size_t>(begin + row * columns + column)];
  }
};

/// Both passes, columns first, of the numbers at(row, column) of a piece; the sum of place p goes
/// to `result` [p * stride].
template <std::size_t Count, class At, class Transform>
void transform(const At& at, const Transform& pass, float* result, std::size_t stride) {
  std::array<Six, Count> of_columns;
  for (std::size_t column = 0; column < Count; ++column) {
    std::array<float, Count> numbers;
    for (std::size_t row = 0; row < Count; ++row) numbers.at(row) = at(row, column);
    of_columns.at(column) = pass(numbers, true);
  }
  for (std::size_t row = 0; row < side; ++row) {
    std::array<float, Count> numbers;
    for (std::size_t column = 0; column < Count; ++column)
      numbers.at(column) = of_columns.at(column).at(row);
    const Six sums = pass(numbers, row + 1 < side);
    for (std::size_t column = 0; column < side; ++column)
      result[(row * side + column) * stride] = sums.at(column);
  }
}

/// Of one channel all pieces' transforms, [place, piece].
template <std::size_t Count, class Transform>
std::vector<float> transforms_of(const NumberView& numbers, const Tensor& tensor,
                                 std::int64_t channel, const Pieces& pieces,
                                 std::array<std::int64_t, 2> padding, const Transform& pass) {
  const auto count = static_cast<std::size_t>(pieces.count());
  std::vector<float> result(places * count);
  std::size_t piece = 0;
  for (std::int64_t image = 0; image < pieces.images; ++image) {
    const Plane plane{numbers,
                      (image * tensor.shape[1] + channel) * tensor.shape[2] * tensor.shape[3],
                      tensor.shape[2], tensor.shape[3]};
    for (std::int64_t row = 0; row < pieces.rows; ++row)
      for (std::int64_t column = 0; column < pieces.columns; ++column, ++piece)
        transform<Count>(
            [&](std::size_t r, std::size_t c) {
              return plane.at(row * step + static_cast<std::int64_t>(r) - padding[0],
                              column * step + static_cast<std::int64_t>(c) - padding[1]);
            },
            pass, result.data() + piece, count);
  }
  return result;
}

/// A filter of the gradient from its 36 sums.
void store_filter(const std::array<float, places>& sums, float* filter) {
  std::array<Three, side> of_columns;
  for (std::size_t column = 0; column < side; ++column) {
    Six numbers;
    for (std::size_t row = 0; row < side; ++row) numbers.at(row) = sums.at(row * side + column);
    of_columns.at(column) = of_sums(numbers);
  }
  for (std::size_t row = 0; row < filter_side; ++row) {
    Six numbers;
    for (std::size_t column = 0; column < side; ++column)
      numbers.at(column) = of_columns.at(column).at(row);
    const Three results = of_sums(numbers);
    for (std::size_t column = 0; column < filter_side; ++column)
      filter[row * filter_side + column] = results.at(column);
  }
}

void require_fit(const Tensor& gradient, const Tensor& input, const Tensor& weight,
                 std::array<std::int64_t, 2> padding) {
  bool fits = gradient.rank() == 4 && input.rank() == 4 && weight.rank() == 4 &&
              gradient.type == input.type && weight.type == input.type &&
              gradient.shape[0] == input.shape[0] && gradient.shape[1] == weight.shape[0] &&
              input.shape[1] == weight.shape[1];
  for (const std::size_t i : {std::size_t{2}, std::size_t{3}})
    fits = fits && weight.shape[i] == filter_side &&
           gradient.shape[i] == input.shape[i] + 2 * padding.at(i - 2) - filter_side + 1;
  if (!fits) throw UnknownShape{"shapes that no convolution of 3 x 3 with stride 1 has"};
}

}  // namespace

Tensor transformed_weight_gradient(const Tensor& gradient, const Tensor& input,
                                   const Tensor& weight, std::array<std::int64_t, 2> padding,
                                   int threads) {
  require_fit(gradient, input, weight, padding);
  const NumberView gradients(gradient), numbers(input);
  const Pieces pieces{gradient.shape[0], formats::divided_up(gradient.shape[2], step),
                      formats::divided_up(gradient.shape[3], step)};
  const auto outputs = static_cast<std::size_t>(weight.shape[0]);
  const auto channels = static_cast<std::size_t>(weight.shape[1]);
  const auto count = static_cast<std::size_t>(pieces.count());
  std::vector<std::vector<float>> of_channels(channels);
  formats::parallel_for(channels, 1, threads, [&](std::size_t begin, std::size_t end) {
    for (std::size_t c = begin; c < end; ++c)
      of_channels[c] = transforms_of<6>(numbers, input, static_cast<std::int64_t>(c), pieces,
                                        padding, [](const Six& x, bool) { return of_pixels(x); });
  });
  std::vector<float> results(static_cast<std::size_t>(weight.count()));
  formats::parallel_for(outputs, 1, threads, [&](std::size_t begin, std::size_t end) {
    for (std::size_t o = begin; o < end; ++o) {
      const std::vector<float> own = transforms_of<4>(
          gradients, gradient, static_cast<std::int64_t>(o), pieces, {0, 0}, of_gradients);
      for (std::size_t c = 0; c < channels; ++c) {
        std::array<float, places> sums{};
        for (std::size_t p = 0; p < places; ++p)
          for (std::size_t i = p * count; i < (p + 1) * count; ++i)
            sums.at(p) = std::fma(own[i], of_channels[c][i], sums.at(p));
        store_filter(sums, results.data() + (o * channels + c) * filter_side * filter_side);
      }
    }
  });
  return tensor_of_numbers(weight.type, weight.shape, dense_stride_like(weight), results);
}

}  // namespace guardbit::emulator::operators
