#pragma once
#include <cstdint>

#include "gpu/cuda/tensor_core/tensor_core_kernels.hpp"
#include "gpu/operands/shared_operand.hpp"

// The kernels around generated wrappers: they bring operands from packed images to the instruction
// and its results back.
namespace guardbit::gpu {

/// Registers of one lane of a warp-level instruction.
template <class Instruction>
struct Registers {
  typename Instruction::Word a[Instruction::a], b[Instruction::b], c[Instruction::c],
      d[Instruction::d];
  std::uint32_t e, a_scale, b_scale;
};

/// Registers of one lane of a warpgroup-level instruction; d holds the addend on entry.
template <class Instruction>
struct WarpgroupRegisters {
  std::uint32_t a[4], d[Instruction::d], e;
  std::uint64_t a_descriptor, b_descriptor;
};

/// A vector of `bytes` bytes that moves in one instruction.
template <int bytes>
struct Vector;
template <>
struct Vector<4> {
  using Type = std::uint32_t;
};
template <>
struct Vector<8> {
  using Type = uint2;
};
template <>
struct Vector<16> {
  using Type = uint4;
};

/// The widest vector that divides `words` words.
template <class Word, int words>
using WidestVector = typename Vector<words * sizeof(Word) % 16 == 0  ? 16
                                     : words * sizeof(Word) % 8 == 0 ? 8
                                                                     : 4>::Type;

/// A lane's registers from and to a lane-major image.
template <int words, class Word>
__device__ inline void load_registers(Word (&registers)[words], const void* images,
                                      std::size_t lane) {
  using Type = WidestVector<Word, words>;
  constexpr int count = words * sizeof(Word) / sizeof(Type);
#pragma unroll
  for (int i = 0; i < count; ++i) {
    const Type vector = static_cast<const Type*>(images)[lane * count + i];
    memcpy(&registers[i * (sizeof(Type) / sizeof(Word))], &vector, sizeof(Type));
  }
}
template <int words, class Word>
__device__ inline void store_registers(const Word (&registers)[words], void* images,
                                       std::size_t lane) {
  using Type = WidestVector<Word, words>;
  constexpr int count = words * sizeof(Word) / sizeof(Type);
#pragma unroll
  for (int i = 0; i < count; ++i) {
    Type vector;
    memcpy(&vector, &registers[i * (sizeof(Type) / sizeof(Word))], sizeof(Type));
    static_cast<Type*>(images)[lane * count + i] = vector;
  }
}
__device__ inline std::uint32_t load_word(const void* images, std::size_t lane) {
  return images == nullptr ? 0 : static_cast<const std::uint32_t*>(images)[lane];
}

/// Several warps share a block, since a multiprocessor holds few blocks; blocks take one image per
/// warp after another.
inline constexpr int warps_per_block = 4, most_blocks = 1 << 16;
inline unsigned blocks_for(int images, int per_block) {
  const int needed = (images + per_block - 1) / per_block;
  return static_cast<unsigned>(needed < most_blocks ? needed : most_blocks);
}

/// One warp per image; lane-major register images.
template <class Instruction>
__global__ void __launch_bounds__(warps_per_block * 32) run_warp_registers(DeviceImages images) {
  const std::size_t stride = std::size_t{gridDim.x} * warps_per_block;
  std::size_t image = std::size_t{blockIdx.x} * warps_per_block + threadIdx.x / 32;
  for (; image < static_cast<std::size_t>(images.images); image += stride) {
    const std::size_t lane = image * 32 + threadIdx.x % 32;
    Registers<Instruction> r;
    load_registers(r.a, images.a, lane);
    load_registers(r.b, images.b, lane);
    load_registers(r.c, images.c, lane);
    r.e = load_word(images.e, lane);
    r.a_scale = load_word(images.a_scale, lane);
    r.b_scale = load_word(images.b_scale, lane);
    Instruction::run(r);
    store_registers(r.d, images.d, lane);
  }
}

template <class Instruction>
void launch_warp_registers(const DeviceImages& images) {
  run_warp_registers<Instruction>
      <<<blocks_for(images.images, warps_per_block), warps_per_block * 32>>>(images);
}

/// One warp per image; the wrapper loads and stores its own fragments.
template <class Instruction>
__global__ void __launch_bounds__(warps_per_block * 32) run_warp_memory(DeviceImages images) {
  const std::size_t stride = std::size_t{gridDim.x} * warps_per_block;
  std::size_t image = std::size_t{blockIdx.x} * warps_per_block + threadIdx.x / 32;
  for (; image < static_cast<std::size_t>(images.images); image += stride)
    Instruction::run(static_cast<const char*>(images.a) + image * images.a_bytes,
                     static_cast<const char*>(images.b) + image * images.b_bytes,
                     static_cast<const char*>(images.c) + image * images.c_bytes,
                     static_cast<char*>(images.d) + image * images.d_bytes);
}

template <class Instruction>
void launch_warp_memory(const DeviceImages& images) {
  run_warp_memory<Instruction>
      <<<blocks_for(images.images, warps_per_block), warps_per_block * 32>>>(images);
}

/// Copies one image to shared memory with all 128 threads; images are multiples of 16 bytes.
__device__ inline void copy_to_shared(unsigned char* shared, const void* images, std::size_t image,
                                      int bytes) {
  const uint4* const from = static_cast<const uint4*>(images) + image * (bytes / 16);
  for (int i = static_cast<int>(threadIdx.x); i < bytes / 16; i += 128)
    reinterpret_cast<uint4*>(shared)[i] = from[i];
}

/// One warpgroup per image; A and B images are copies of shared memory (A: registers where the
/// instruction says so). Swizzled operands begin at multiples of 1024 bytes.
template <class Instruction>
__global__ void __launch_bounds__(128) run_warpgroup(DeviceImages images) {
  constexpr SharedOperand a = Instruction::a,
                          b = Instruction::b;  // device code knows no static members
  constexpr int a_bytes = Instruction::a_from_registers ? 0 : a.bytes(), b_bytes = b.bytes();
  constexpr int b_begin = (a_bytes + 1023) / 1024 * 1024;
  __shared__ __align__(1024) unsigned char shared[b_begin + b_bytes];
  const auto address = static_cast<std::uint32_t>(__cvta_generic_to_shared(shared));
  for (std::size_t image = blockIdx.x; image < static_cast<std::size_t>(images.images);
       image += gridDim.x) {
    const std::size_t lane = image * 128 + threadIdx.x;
    WarpgroupRegisters<Instruction> r;
    if constexpr (Instruction::a_from_registers)
      load_registers(r.a, images.a, lane);
    else
      copy_to_shared(shared, images.a, image, a_bytes);
    copy_to_shared(shared + b_begin, images.b, image, b_bytes);
    load_registers(r.d, images.c, lane);
    r.e = load_word(images.e, lane);
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    __syncthreads();
    r.a_descriptor = a.descriptor(address);
    r.b_descriptor = b.descriptor(address + b_begin);
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
    Instruction::run(r);
    asm volatile("wgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;" ::: "memory");
    store_registers(r.d, images.d, lane);
    __syncthreads();  // the next image overwrites what other warps may still read
  }
}

template <class Instruction>
void launch_warpgroup(const DeviceImages& images) {
  run_warpgroup<Instruction><<<blocks_for(images.images, 1), 128>>>(images);
}

}  // namespace guardbit::gpu
