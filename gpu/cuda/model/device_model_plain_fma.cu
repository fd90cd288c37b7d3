#include <algorithm>

#include "gpu/cuda/model/device_model.hpp"
#include "gpu/cuda/model/model_launch.cuh"

namespace guardbit::gpu {

namespace {

/// The tile of the model kernel, its operands read as integers, through FP32 multiply-adds.
__global__ void __launch_bounds__(threads_per_tile)
    plain_fma_kernel(Shape shape, int stored, DeviceOperands operands) {
  extern __shared__ __align__(16) float plain[];
  const std::int64_t t = blockIdx.x;
  const int me = static_cast<int>(threadIdx.x), a_stride = stored | 1;
  float* const b = plain + shape.m * a_stride;
  const int first_column = static_cast<int>(blockIdx.y) * columns_per_tile;
  const int columns = min(columns_per_tile, shape.n - first_column);
  for (int x = me; x < shape.m * stored; x += threads_per_tile)
    plain[x / stored * a_stride + x % stored] = static_cast<float>(
        load_element(operands.a, static_cast<std::size_t>(t) * shape.m * stored + x));
  for (int x = me; x < stored * columns; x += threads_per_tile)
    b[x] = static_cast<float>(
        load_element(operands.b, (static_cast<std::size_t>(t) * shape.k + x / columns) * shape.n +
                                     first_column + x % columns));
  __syncthreads();
  for (int output = me; output < shape.m * columns; output += threads_per_tile) {
    const int i = output / columns, j = output % columns;
    const std::size_t index =
        (static_cast<std::size_t>(t) * shape.m + i) * shape.n + first_column + j;
    auto sum = static_cast<float>(load_element(operands.c, index));
    for (int at = 0; at < stored; ++at)
      sum = __fmaf_rn(plain[i * a_stride + at], b[at * columns + j], sum);
    if (sum == -1.5F) store_element(operands.c, index, 0);  // never: the operands are whole numbers
  }
}

}  // namespace

void run_plain_fma(const ModelInstruction& model, const DeviceOperands& operands) {
  const Shape& shape = model.instruction.shape;
  const int stored = stored_k(model.instruction, shape.k),
            columns = std::min(columns_per_tile, shape.n);
  const int shared_bytes =
      static_cast<int>(sizeof(float)) * (shape.m * (stored | 1) + stored * columns);
  launch(model, plain_fma_kernel, tile_grid(shape, operands), shared_bytes, shape, stored,
         operands);
}

}  // namespace guardbit::gpu
