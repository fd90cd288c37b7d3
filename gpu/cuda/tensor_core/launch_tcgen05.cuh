#pragma once

#include <cstdint>

#include "gpu/cuda/tensor_core/tensor_core_kernels.hpp"
#include "gpu/operands/tcgen05_descriptors.hpp"
#include "gpu/operands/tcgen05_layout.hpp"

// The kernel of tcgen05.mma (sm_100a) on images of shared and tensor memory; the host lays them out
// (tcgen05_layout.hpp), the kernel only copies them. Synchronisation follows PTX ISA, "Memory
// Consistency Model for 5th generation of TensorCore operations".
//
// These wrappers have only been compiled (nvcc 13.0, sm_100a), never run. What no source confirms:
// - sparsity metadata of M = 64 (metadata_place: CUTLASS has M = 128 only);
// - A of f8f6f4 with FP6 or FP4 in tensor memory: no layout is known, so layout_images refuses it;
// - FP16 D of f8f6f4, taken to lie as that of f16 does, in the lower halves of the columns;
// - 8-bit operands with M or N contiguous in shared memory without swizzle;
// - scales written to tensor memory with tcgen05.st, where published kernels use tcgen05.cp;
// - bytes of the scale columns that no scale factor ID names are zero, taken not to matter.
namespace guardbit::gpu {

/// What a wrapper's one instruction takes: addresses of tensor memory and descriptors.
struct Tcgen05Operands {
  std::uint32_t d, a, metadata, a_scale, b_scale;
  std::uint64_t a_descriptor, b_descriptor;
};

namespace tcgen05 {

__device__ inline std::uint32_t shared_address(const void* generic) {
  return static_cast<std::uint32_t>(__cvta_generic_to_shared(generic));
}

/// Allocates `columns` of tensor memory for the CTA; one warp calls it, and the address of the
/// first column arrives in shared memory.
__device__ inline void allocate(std::uint32_t* address, std::uint32_t columns) {
  asm volatile("tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%0], %1;"
               :
               : "r"(shared_address(address)), "r"(columns)
               : "memory");
  asm volatile("tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;" ::: "memory");
}

__device__ inline void deallocate(std::uint32_t address, std::uint32_t columns) {
  asm volatile("tcgen05.dealloc.cta_group::1.sync.aligned.b32 %0, %1;"
               :
               : "r"(address), "r"(columns)
               : "memory");
}

/// Stores one column of the warp's 32 lanes.
__device__ inline void store_column(std::uint32_t address, std::uint32_t value) {
  asm volatile("tcgen05.st.sync.aligned.32x32b.x1.b32 [%0], {%1};"
               :
               : "r"(address), "r"(value)
               : "memory");
}

/// Loads eight columns of the warp's 32 lanes; they are there after wait_for_loads.
__device__ inline void load_columns(std::uint32_t (&w)[8], std::uint32_t address) {
  asm volatile("tcgen05.ld.sync.aligned.32x32b.x8.b32 {%0, %1, %2, %3, %4, %5, %6, %7}, [%8];"
               : "=r"(w[0]), "=r"(w[1]), "=r"(w[2]), "=r"(w[3]), "=r"(w[4]), "=r"(w[5]), "=r"(w[6]),
                 "=r"(w[7])
               : "r"(address)
               : "memory");
}

__device__ inline void wait_for_stores() {
  asm volatile("tcgen05.wait::st.sync.aligned;" ::: "memory");
}

__device__ inline void wait_for_loads() {
  asm volatile("tcgen05.wait::ld.sync.aligned;" ::: "memory");
}

/// A barrier of the CTA that also orders the tcgen05 operations before and after it.
__device__ inline void synchronize() {
  asm volatile("tcgen05.fence::before_thread_sync;" ::: "memory");
  __syncthreads();
  asm volatile("tcgen05.fence::after_thread_sync;" ::: "memory");
}

__device__ inline void initialize(std::uint64_t* barrier) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;"
               :
               : "r"(shared_address(barrier))
               : "memory");
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}

/// Lets the barrier complete when all that this thread issued has.
__device__ inline void commit(std::uint64_t* barrier) {
  asm volatile("tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%0];"
               :
               : "r"(shared_address(barrier))
               : "memory");
}

/// Waits for the barrier's first phase.
__device__ inline void wait(std::uint64_t* barrier) {
  std::uint32_t done = 0;
  while (done == 0) {
    asm volatile(
        "{\n.reg .pred p;\n"
        "mbarrier.try_wait.parity.shared::cta.b64 p, [%1], 0;\n"
        "selp.u32 %0, 1, 0, p;\n}\n"
        : "=r"(done)
        : "r"(shared_address(barrier))
        : "memory");
  }
  __syncwarp();
  asm volatile("tcgen05.fence::after_thread_sync;" ::: "memory");
}

/// Copies one image of shared memory; all threads call it.
template <std::size_t Bytes>
__device__ void copy_to_shared(unsigned char (&shared)[Bytes], const void* images) {
  const auto* image = static_cast<const unsigned char*>(images) + blockIdx.x * Bytes;
  for (std::size_t i = threadIdx.x; i < Bytes; i += lanes) shared[i] = image[i];
}

/// Copies one image of `image_lanes` lanes (128, or 32 that every quarter repeats) by `columns`
/// columns to tensor memory from `address`, the first lane of the thread's warp.
__device__ inline void copy_to_tensor_memory(std::uint32_t address, const void* images,
                                             int image_lanes, int columns) {
  const std::size_t lane = threadIdx.x % static_cast<unsigned>(image_lanes);
  const auto* image = static_cast<const std::uint32_t*>(images) +
                      (blockIdx.x * static_cast<std::size_t>(image_lanes) + lane) *
                          static_cast<std::size_t>(columns);
  for (int i = 0; i < columns; ++i) store_column(address + static_cast<std::uint32_t>(i), image[i]);
}

/// Fills the operands of tensor memory that the instruction has. `first_lane` is the address of
/// column 0 in the first lane of the thread's warp.
template <class Instruction>
__device__ void fill_tensor_memory(std::uint32_t first_lane, const TensorMemoryColumns& columns,
                                   const DeviceImages& images) {
  const auto at = [&](int column) { return first_lane + static_cast<std::uint32_t>(column); };
  constexpr Operation x = Instruction::operation;
  copy_to_tensor_memory(at(columns.d), images.c, lanes, x.n);
  if constexpr (Instruction::a_from_tensor_memory)
    copy_to_tensor_memory(at(columns.a), images.a, lanes, row_bytes * 8 / column_bits);
  if constexpr (x.sparse)
    copy_to_tensor_memory(at(columns.metadata), images.e, lanes, metadata_columns);
  if constexpr (Instruction::is_scaled) {
    copy_to_tensor_memory(at(columns.a_scale), images.a_scale, lanes / 4, scale_columns(x.m));
    copy_to_tensor_memory(at(columns.b_scale), images.b_scale, lanes / 4, scale_columns(x.n));
  }
  wait_for_stores();
}

/// The operands of the one thread that issues the instruction.
template <class Instruction>
__device__ Tcgen05Operands operands(std::uint32_t tensor_memory, const TensorMemoryColumns& columns,
                                    const void* a, const void* b) {
  constexpr Operation x = Instruction::operation;
  constexpr int container = container_bits(Instruction::stored_k);
  const auto at = [&](int column) { return tensor_memory + static_cast<std::uint32_t>(column); };
  return {.d = at(columns.d),
          .a = at(columns.a),
          .metadata = at(columns.metadata),
          .a_scale = at(columns.a_scale),
          .b_scale = at(columns.b_scale),
          .a_descriptor = shared_memory_descriptor(
              shared_address(a), core_matrix_strides(x.m, container, x.a_m_major)),
          .b_descriptor = shared_memory_descriptor(
              shared_address(b), core_matrix_strides(x.n, container, x.b_n_major))};
}

}  // namespace tcgen05

/// One CTA of four warps per image; thread t reads and writes lane t of tensor memory.
template <class Instruction>
__global__ void __launch_bounds__(tcgen05::lanes) run_tcgen05(DeviceImages images) {
  constexpr tcgen05::Operation x = Instruction::operation;
  static_assert(tcgen05::is_valid(x));
  constexpr tcgen05::TensorMemoryColumns columns = tcgen05::tensor_memory_columns(x.n);
  constexpr int b_row_bytes = tcgen05::row_bytes * (x.sparse ? 2 : 1);
  __shared__ __align__(128) unsigned char a[x.m * tcgen05::row_bytes], b[x.n * b_row_bytes];
  __shared__ std::uint64_t barrier;
  __shared__ std::uint32_t allocated;

  if (threadIdx.x < 32) tcgen05::allocate(&allocated, columns.allocated);
  if (threadIdx.x == 0) tcgen05::initialize(&barrier);
  if constexpr (!Instruction::a_from_tensor_memory) tcgen05::copy_to_shared(a, images.a);
  tcgen05::copy_to_shared(b, images.b);
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  tcgen05::synchronize();

  const std::uint32_t tensor_memory = allocated;
  const std::uint32_t first_lane = tensor_memory + (threadIdx.x / 32 * 32 << 16);
  tcgen05::fill_tensor_memory<Instruction>(first_lane, columns, images);
  tcgen05::synchronize();

  if (threadIdx.x == 0) {
    Instruction::run(tcgen05::operands<Instruction>(tensor_memory, columns, a, b));
    tcgen05::commit(&barrier);
  }
  __syncwarp();
  tcgen05::wait(&barrier);

  auto* d = static_cast<std::uint32_t*>(images.d) +
            (blockIdx.x * std::size_t{tcgen05::lanes} + threadIdx.x) * x.n;
  for (int i = 0; i < x.n; i += 8) {
    std::uint32_t values[8];
    tcgen05::load_columns(values, first_lane + static_cast<std::uint32_t>(columns.d + i));
    tcgen05::wait_for_loads();
    for (int j = 0; j < 8; ++j) d[i + j] = values[j];
  }
  tcgen05::synchronize();
  if (threadIdx.x < 32) tcgen05::deallocate(tensor_memory, columns.allocated);
}

template <class Instruction>
void launch_tcgen05(const DeviceImages& images) {
  run_tcgen05<Instruction><<<static_cast<unsigned>(images.images), tcgen05::lanes>>>(images);
}

}  // namespace guardbit::gpu
