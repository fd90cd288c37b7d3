#include "emulator/operators/layers/tiled_gradient.hpp"

#include <cmath>
#include <vector>

#include "emulator/operators/memory_order.hpp"
#include "emulator/operators/number_view.hpp"
#include "formats/support/parallel.hpp"

namespace guardbit::emulator::operators {
namespace {

constexpr std::int64_t units = 16, lanes = 8, groups = 4;

struct Sharing {
  std::int64_t run, lanes_of_row, rows;
};
constexpr Sharing sharing_of(GradientTiling tiling) {
  return tiling == GradientTiling::narrow ? Sharing{2, 4, 2} : Sharing{6, 2, 4};
}

/// Which thread has a pixel: the sum of what its row and its column say.
std::size_t thread_of_row(std::int64_t image, std::int64_t row, const Sharing& sharing) {
  const std::int64_t unit = image % groups * groups + row / sharing.rows % groups;
  return static_cast<std::size_t>(row % sharing.rows * sharing.lanes_of_row * units + unit);
}
std::size_t thread_of_column(std::int64_t column, const Sharing& sharing) {
  return static_cast<std::size_t>(column / sharing.run % sharing.lanes_of_row * units);
}

float total_of(const std::vector<float>& of_threads) {
  std::array<float, lanes> sums{};
  for (std::size_t lane = 0; lane < sums.size(); ++lane)
    for (std::size_t unit = 0; unit < std::size_t{units}; ++unit)
      sums[lane] += of_threads[lane * std::size_t{units} + unit];
  std::array<float, lanes / 2> pairs{};
  for (std::size_t i = 0; i < pairs.size(); ++i) pairs[i] = sums[2 * i] + sums[2 * i + 1];
  return (pairs[0] + pairs[3]) + (pairs[1] + pairs[2]);
}

void require_tiles_fit(const Tensor& gradient, const Tensor& input, const Tensor& weight) {
  const bool fits = gradient.rank() == 4 && input.rank() == 4 && weight.rank() == 4 &&
                    gradient.type == input.type && weight.type == input.type &&
                    gradient.shape[0] == input.shape[0] && gradient.shape[1] == weight.shape[0] &&
                    input.shape[1] == weight.shape[1];
  if (!fits) throw UnknownShape{"shapes that no convolution has"};
}

}  // namespace

Tensor tiled_weight_gradient(const Tensor& gradient, const Tensor& input, const Tensor& weight,
                             std::array<std::int64_t, 2> stride,
                             std::array<std::int64_t, 2> padding, GradientTiling tiling,
                             int threads) {
  require_tiles_fit(gradient, input, weight);
  const NumberView gradients(gradient), numbers(input);
  const Sharing sharing = sharing_of(tiling);
  const std::int64_t rows = gradient.shape[2], columns = gradient.shape[3];
  const std::int64_t height = input.shape[2], width = input.shape[3];
  const std::int64_t filter_rows = weight.shape[2], filter_columns = weight.shape[3];
  const auto plane = [](const Tensor& tensor, std::int64_t image, std::int64_t channel) {
    return (image * tensor.shape[1] + channel) * tensor.shape[2] * tensor.shape[3];
  };
  std::vector<std::size_t> of_column;
  for (std::int64_t q = 0; q < columns; ++q) of_column.push_back(thread_of_column(q, sharing));
  const auto sum_at = [&](std::int64_t o, std::int64_t c, std::int64_t t, std::int64_t s) {
    std::vector<float> sums(std::size_t{units * lanes});
    for (std::int64_t n = 0; n < gradient.shape[0]; ++n) {
      const std::int64_t of_gradient = plane(gradient, n, o), of_input = plane(input, n, c);
      for (std::int64_t p = 0; p < rows; ++p) {
        const std::int64_t y = p * stride[0] - padding[0] + t;
        if (y < 0 || y >= height) continue;
        const std::size_t of_row = thread_of_row(n, p, sharing);
        for (std::int64_t q = 0; q < columns; ++q) {
          const std::int64_t x = q * stride[1] - padding[1] + s;
          if (x < 0 || x >= width) continue;
          float& sum = sums[of_row + of_column[static_cast<std::size_t>(q)]];
          sum = std::fma(numbers[static_cast<std::size_t>(of_input + y * width + x)],
                         gradients[static_cast<std::size_t>(of_gradient + p * columns + q)], sum);
        }
      }
    }
    return total_of(sums);
  };
  const auto of_output = static_cast<std::size_t>(weight.shape[1] * filter_rows * filter_columns);
  std::vector<float> results(static_cast<std::size_t>(weight.count()));
  formats::parallel_for(
      static_cast<std::size_t>(weight.shape[0]), 1, threads,
      [&](std::size_t begin, std::size_t end) {
        for (std::size_t i = begin * of_output; i < end * of_output; ++i) {
          const auto at = static_cast<std::int64_t>(i);
          const std::int64_t s = at % filter_columns, t = at / filter_columns % filter_rows;
          const std::int64_t channel = at / filter_columns / filter_rows;
          results[i] = sum_at(channel / weight.shape[1], channel % weight.shape[1], t, s);
        }
      });
  return tensor_of_numbers(weight.type, weight.shape, dense_stride_like(weight), results);
}

}  // namespace guardbit::emulator::operators
