#include "gpu/cuda/device/device.hpp"
#include "tools/gpu/training/training_rounding.cuh"

namespace guardbit::tools::training {

namespace {

constexpr int lanes = 32, tile_rows = 16, tile_columns = 8;

/// 0 beyond the lines and beyond K.
__device__ float element(const OperandView& x, std::int64_t line, std::int64_t k) {
  if (line >= x.lines || k >= x.k) return 0.0F;
  std::int64_t at = 0;
  switch (x.kind) {
    case OperandView::Kind::rows: at = line * x.stride + k; break;
    case OperandView::Kind::columns: at = k * x.stride + line; break;
    case OperandView::Kind::windows: at = x.windows.source(line, k); break;
    case OperandView::Kind::windows_columns: at = x.windows.source(k, line); break;
    case OperandView::Kind::turned_filters: at = x.filters.source(line, k); break;
  }
  return at < 0 ? 0.0F : x.values[at];
}

/// Two numbers of a 16-bit format in one register, the one with the smaller k below.
template <MatrixUnit unit>
__device__ std::uint32_t pair_of(const OperandView& x, std::int64_t line, std::int64_t k) {
  const float low = element(x, line, k), high = element(x, line, k + 1);
  if constexpr (unit == MatrixUnit::fp16)
    return std::uint32_t{__half_as_ushort(__float2half_rn(low))} |
           std::uint32_t{__half_as_ushort(__float2half_rn(high))} << 16;
  else
    return std::uint32_t{__bfloat16_as_ushort(__float2bfloat16_rn(low))} |
           std::uint32_t{__bfloat16_as_ushort(__float2bfloat16_rn(high))} << 16;
}

__device__ void multiply_add(float (&d)[4], const std::uint32_t (&a)[4],
                             const std::uint32_t (&b)[2], bool is_fp16) {
  if (is_fp16) {
    asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
  } else {
    asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
  }
}

__device__ void multiply_add_tf32(float (&d)[4], const std::uint32_t (&a)[4],
                                  const std::uint32_t (&b)[2]) {
  asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

/// A warp for each tile of 16 x 8 outputs. The fragments are those of the PTX ISA: register r of A
/// holds row group + 8 (r & 1), from K step (r >> 1), register r of B column group, K step r.
template <MatrixUnit unit>
__global__ void __launch_bounds__(lanes)
    multiply_kernel(OperandView a, OperandView b, float* __restrict__ d) {
  constexpr int per_register = unit == MatrixUnit::tf32 ? 1 : 2;
  constexpr int half = 4 * per_register;  // what a quad's registers hold of K
  const int group = static_cast<int>(threadIdx.x) / 4;
  const int member = static_cast<int>(threadIdx.x) % 4;
  const std::int64_t row = std::int64_t{blockIdx.x} * tile_rows + group;
  const std::int64_t column = std::int64_t{blockIdx.y} * tile_columns;
  float sums[4] = {0.0F, 0.0F, 0.0F, 0.0F};
  for (std::int64_t begin = 0; begin < a.k; begin += 2 * half) {
    std::uint32_t a_registers[4], b_registers[2];
    for (int r = 0; r < 4; ++r) {
      const std::int64_t line = row + 8 * (r & 1);
      const std::int64_t k = begin + half * (r >> 1) + member * per_register;
      if constexpr (unit == MatrixUnit::tf32)
        a_registers[r] = __float_as_uint(element(a, line, k));
      else
        a_registers[r] = pair_of<unit>(a, line, k);
    }
    for (int r = 0; r < 2; ++r) {
      const std::int64_t k = begin + half * r + member * per_register;
      if constexpr (unit == MatrixUnit::tf32)
        b_registers[r] = __float_as_uint(element(b, column + group, k));
      else
        b_registers[r] = pair_of<unit>(b, column + group, k);
    }
    if constexpr (unit == MatrixUnit::tf32)
      multiply_add_tf32(sums, a_registers, b_registers);
    else
      multiply_add(sums, a_registers, b_registers, unit == MatrixUnit::fp16);
  }
  for (int r = 0; r < 4; ++r) {
    const std::int64_t i = row + 8 * (r >> 1), j = column + 2 * member + (r & 1);
    if (i < a.lines && j < b.lines) d[i * b.lines + j] = sums[r];
  }
}

}  // namespace

void multiply(MatrixUnit unit, const OperandView& a, const OperandView& b, float* d) {
  const dim3 tiles(static_cast<unsigned>((a.lines + tile_rows - 1) / tile_rows),
                   static_cast<unsigned>((b.lines + tile_columns - 1) / tile_columns));
  switch (unit) {
    case MatrixUnit::fp16: multiply_kernel<MatrixUnit::fp16><<<tiles, lanes>>>(a, b, d); break;
    case MatrixUnit::bf16: multiply_kernel<MatrixUnit::bf16><<<tiles, lanes>>>(a, b, d); break;
    case MatrixUnit::tf32: multiply_kernel<MatrixUnit::tf32><<<tiles, lanes>>>(a, b, d); break;
  }
  gpu::check_cuda(cudaGetLastError(), "gpu train");
}

}  // namespace guardbit::tools::training
