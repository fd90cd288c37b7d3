#pragma once
#include <cstdint>

#include "gpu/cuda/kernels.hpp"

namespace guardbit::gpu {

/// Registers of one lane of a warp-level instruction.
template <class Row>
struct Registers {
  typename Row::Word a[Row::a], b[Row::b], c[Row::c], d[Row::d];
  std::uint32_t e;
};

/// Registers of one lane of a warpgroup-level instruction; d holds the addend on entry.
template <class Row>
struct WarpgroupRegisters {
  std::uint32_t a[4], d[Row::d], e;
  std::uint64_t a_descriptor, b_descriptor;
};

/// One warp per image; lane-major register images.
template <class Row>
__global__ void run_warp_registers(DeviceImages images) {
  using Word = typename Row::Word;
  const int lane = static_cast<int>(threadIdx.x);
  const std::size_t thread = blockIdx.x * std::size_t{32} + threadIdx.x;
  Registers<Row> r;
  for (int i = 0; i < Row::a; ++i) r.a[i] = static_cast<const Word*>(images.a)[thread * Row::a + i];
  for (int i = 0; i < Row::b; ++i) r.b[i] = static_cast<const Word*>(images.b)[thread * Row::b + i];
  for (int i = 0; i < Row::c; ++i) r.c[i] = static_cast<const Word*>(images.c)[thread * Row::c + i];
  r.e = images.e ? static_cast<const std::uint32_t*>(images.e)[blockIdx.x * 32 + lane] : 0;
  Row::run(r);
  for (int i = 0; i < Row::d; ++i) static_cast<Word*>(images.d)[thread * Row::d + i] = r.d[i];
}

template <class Row>
void launch_warp_registers(const DeviceImages& images) {
  run_warp_registers<Row><<<images.images, 32>>>(images);
}

/// One warp per image; the wrapper loads and stores its own fragments.
template <class Row>
__global__ void run_warp_memory(DeviceImages images) {
  const std::size_t image = blockIdx.x;
  Row::run(static_cast<const char*>(images.a) + image * images.a_bytes,
           static_cast<const char*>(images.b) + image * images.b_bytes,
           static_cast<const char*>(images.c) + image * images.c_bytes,
           static_cast<char*>(images.d) + image * images.d_bytes);
}

template <class Row>
void launch_warp_memory(const DeviceImages& images) {
  run_warp_memory<Row><<<images.images, 32>>>(images);
}

/// Matrix descriptor of an operand without swizzle (PTX ISA, "Matrix descriptor format"). Core
/// matrices lie as core_matrix_offset and strided_core_matrix_offset say: 128 bytes apart along M
/// or N, rows * 16 bytes along K.
__device__ inline std::uint64_t describe_shared(const void* operand, int rows) {
  const std::uint64_t address = static_cast<std::uint64_t>(__cvta_generic_to_shared(operand));
  const std::uint64_t leading = static_cast<std::uint64_t>(rows) * 16, stride = 128;
  return ((address & 0x3FFFF) >> 4) | ((leading >> 4) << 16) | ((stride >> 4) << 32);
}

/// One warpgroup per image; A and B images are copies of shared memory (A: registers where the row
/// says so).
template <class Row>
__global__ void __launch_bounds__(128) run_warpgroup(DeviceImages images) {
  constexpr int a_bytes = Row::m * Row::a_row_bytes, b_bytes = Row::n * Row::b_row_bytes;
  __shared__ __align__(1024) unsigned char a_shared[a_bytes], b_shared[b_bytes];
  const std::size_t image = blockIdx.x, thread = image * 128 + threadIdx.x;
  for (int i = static_cast<int>(threadIdx.x); i < a_bytes; i += 128)
    a_shared[i] = static_cast<const unsigned char*>(images.a)[image * a_bytes + i];
  for (int i = static_cast<int>(threadIdx.x); i < b_bytes; i += 128)
    b_shared[i] = static_cast<const unsigned char*>(images.b)[image * b_bytes + i];
  WarpgroupRegisters<Row> r;
  for (int i = 0; i < 4; ++i)
    r.a[i] =
        Row::a_from_registers ? static_cast<const std::uint32_t*>(images.a)[thread * 4 + i] : 0;
  for (int i = 0; i < Row::d; ++i)
    r.d[i] = static_cast<const std::uint32_t*>(images.c)[thread * Row::d + i];
  r.e = images.e ? static_cast<const std::uint32_t*>(images.e)[thread] : 0;
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  __syncthreads();
  r.a_descriptor = describe_shared(a_shared, Row::m);
  r.b_descriptor = describe_shared(b_shared, Row::n);
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
  Row::run(r);
  asm volatile("wgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;" ::: "memory");
  for (int i = 0; i < Row::d; ++i)
    static_cast<std::uint32_t*>(images.d)[thread * Row::d + i] = r.d[i];
}

template <class Row>
void launch_warpgroup(const DeviceImages& images) {
  run_warpgroup<Row><<<images.images, 128>>>(images);
}

}  // namespace guardbit::gpu
