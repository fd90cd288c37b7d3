#include "gpu/cuda/device/device.hpp"
#include "tools/gpu/training/training_rounding.cuh"

namespace guardbit::tools::training {

namespace {

namespace arithmetic = experiments::training;

constexpr int block = 256;

__device__ std::int64_t my_index() { return std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x; }

/// A thread for each of `count` elements.
template <class... Parameters, class... Arguments>
void launch(void (*kernel)(Parameters...), std::int64_t count, const Arguments&... arguments) {
  if (count == 0) return;
  kernel<<<static_cast<unsigned>((count + block - 1) / block), block>>>(arguments...);
  gpu::check_cuda(cudaGetLastError(), "gpu train");
}

__global__ void round_kernel(NumberFormat format, const float* from, float* to,
                             std::int64_t count) {
  const std::int64_t i = my_index();
  if (i < count) to[i] = rounded(format, from[i]);
}

__global__ void bias_kernel(NumberFormat format, float* d, const float* bias, std::int64_t count,
                            std::int64_t columns) {
  const std::int64_t i = my_index();
  if (i < count) d[i] = rounded(format, arithmetic::product_result(d[i], 1.0F, bias[i % columns]));
}

/// parts[run, j]: the sum of a run of rows of column j.
__global__ void run_kernel(const float* from, float* parts, std::int64_t rows, std::int64_t columns,
                           std::int64_t count) {
  const std::int64_t at = my_index();
  if (at >= count) return;
  const std::int64_t begin = at / columns * arithmetic::sum_run;
  float part = 0.0F;
  for (std::int64_t i = begin; i < min(rows, begin + arithmetic::sum_run); ++i)
    part += from[i * columns + at % columns];
  parts[at] = part;
}

__global__ void sum_kernel(NumberFormat format, const float* parts, float* sums, std::int64_t runs,
                           std::int64_t columns) {
  const std::int64_t j = my_index();
  if (j >= columns) return;
  float sum = 0.0F;
  for (std::int64_t run = 0; run < runs; ++run) sum += parts[run * columns + j];
  sums[j] = rounded(format, sum);
}

__global__ void relu_kernel(const float* x, float* y, std::int64_t count) {
  const std::int64_t i = my_index();
  if (i < count) y[i] = arithmetic::relu(x[i]);
}

__global__ void relu_gradient_kernel(const float* y, const float* gradient, float* dx,
                                     std::int64_t count) {
  const std::int64_t i = my_index();
  if (i < count) dx[i] = arithmetic::relu_gradient(y[i], gradient[i]);
}

__global__ void max_pool_kernel(layout::Pooling pooling, const float* x, float* y,
                                std::int32_t* chosen) {
  const std::int64_t output = my_index();
  if (output >= pooling.outputs()) return;
  float maximum = 0.0F;
  std::int64_t best = 0;
  for (std::int64_t place = 0; place < pooling.size * pooling.size; ++place) {
    const float value = x[pooling.source(output, place / pooling.size, place % pooling.size)];
    if (place != 0 && !arithmetic::becomes_maximum(value, maximum)) continue;
    maximum = value;
    best = place;
  }
  y[output] = maximum;
  chosen[output] = static_cast<std::int32_t>(best);
}

__global__ void max_pool_gradient_kernel(layout::Pooling pooling, const float* gradient,
                                         const std::int32_t* chosen, float* dx) {
  const std::int64_t output = my_index();
  if (output >= pooling.outputs()) return;
  const std::int64_t place = chosen[output];
  dx[pooling.source(output, place / pooling.size, place % pooling.size)] = gradient[output];
}

__global__ void loss_kernel(NumberFormat format, const float* logits, const std::int32_t* labels,
                            std::int64_t rows, std::int64_t classes, float factor,
                            float* exponentials, float* losses, float* gradient) {
  const std::int64_t row = my_index();
  if (row >= rows) return;
  const float* const x = logits + row * classes;
  float* const e = exponentials + row * classes;
  float maximum = 0.0F;
  const float sum = arithmetic::softmax_sum(
      classes, maximum, [&](std::int64_t j) { return x[j]; },
      [&](std::int64_t j, float exponential) { e[j] = exponential; });
  losses[row] = arithmetic::cross_entropy(sum, maximum, x[labels[row]]);
  for (std::int64_t j = 0; j < classes; ++j)
    gradient[row * classes + j] =
        rounded(format, arithmetic::cross_entropy_gradient(e[j], sum, j == labels[row], factor));
}

__global__ void mean_kernel(const float* losses, std::int64_t rows, float* loss) {
  *loss = arithmetic::run_sum(rows, [&](std::int64_t i) { return losses[i]; }) /
          static_cast<float>(rows);
}

__global__ void overflow_kernel(const float* values, std::int64_t count, std::uint32_t* found) {
  const std::int64_t i = my_index();
  if (i < count && !arithmetic::is_finite(values[i])) atomicOr(found, 1U);
}

__global__ void sgd_kernel(arithmetic::SgdStep step, float* weights, const float* gradient,
                           float* momentum, float inverse_scale, std::int64_t count) {
  const std::int64_t i = my_index();
  if (i >= count) return;
  const auto result =
      step(weights[i], arithmetic::unscaled(gradient[i], inverse_scale), momentum[i]);
  weights[i] = result.weight;
  momentum[i] = result.momentum;
}

__global__ void adam_kernel(arithmetic::AdamStep step, float* weights, const float* gradient,
                            float* first, float* second, float inverse_scale, std::int64_t count) {
  const std::int64_t i = my_index();
  if (i >= count) return;
  const auto result =
      step(weights[i], arithmetic::unscaled(gradient[i], inverse_scale), first[i], second[i]);
  weights[i] = result.weight;
  first[i] = result.first;
  second[i] = result.second;
}

}  // namespace

void round_into(NumberFormat format, const float* from, float* to, std::int64_t count) {
  launch(round_kernel, count, format, from, to, count);
}

void add_bias(NumberFormat format, float* d, const float* bias, std::int64_t rows,
              std::int64_t columns) {
  launch(bias_kernel, rows * columns, format, d, bias, rows * columns, columns);
}

void sum_rows(NumberFormat format, const float* from, float* parts, float* sums, std::int64_t rows,
              std::int64_t columns) {
  const std::int64_t runs = (rows + arithmetic::sum_run - 1) / arithmetic::sum_run;
  launch(run_kernel, runs * columns, from, parts, rows, columns, runs * columns);
  launch(sum_kernel, columns, format, parts, sums, runs, columns);
}

void relu(const float* x, float* y, std::int64_t count) { launch(relu_kernel, count, x, y, count); }

void relu_gradient(const float* y, const float* gradient, float* dx, std::int64_t count) {
  launch(relu_gradient_kernel, count, y, gradient, dx, count);
}

void max_pool(const layout::Pooling& pooling, const float* x, float* y, std::int32_t* chosen) {
  launch(max_pool_kernel, pooling.outputs(), pooling, x, y, chosen);
}

void max_pool_gradient(const layout::Pooling& pooling, const float* gradient,
                       const std::int32_t* chosen, float* dx) {
  launch(max_pool_gradient_kernel, pooling.outputs(), pooling, gradient, chosen, dx);
}

void cross_entropy(NumberFormat format, const float* logits, const std::int32_t* labels,
                   std::int64_t rows, std::int64_t classes, float loss_scale, float* exponentials,
                   float* losses, float* gradient, float* loss) {
  const float factor = loss_scale / static_cast<float>(rows);
  launch(loss_kernel, rows, format, logits, labels, rows, classes, factor, exponentials, losses,
         gradient);
  mean_kernel<<<1, 1>>>(losses, rows, loss);
  gpu::check_cuda(cudaGetLastError(), "gpu train");
}

void find_overflow(const float* values, std::int64_t count, std::uint32_t* found) {
  launch(overflow_kernel, count, values, count, found);
}

void move_by_sgd(const experiments::training::SgdStep& step, float* weights, const float* gradient,
                 float* momentum, float inverse_scale, std::int64_t count) {
  launch(sgd_kernel, count, step, weights, gradient, momentum, inverse_scale, count);
}

void move_by_adam(const experiments::training::AdamStep& step, float* weights,
                  const float* gradient, float* first, float* second, float inverse_scale,
                  std::int64_t count) {
  launch(adam_kernel, count, step, weights, gradient, first, second, inverse_scale, count);
}

}  // namespace guardbit::tools::training
