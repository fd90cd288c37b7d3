#pragma once
#include <cstdint>

#include "gpu/cuda/tensor_core/screen_tally.cuh"
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
inline unsigned blocks_for(const DeviceImages& images, int per_block) {
  const int workers = images.expected != nullptr ? images.workers : images.images;
  const int needed = (workers + per_block - 1) / per_block;
  return static_cast<unsigned>(needed < most_blocks ? needed : most_blocks);
}

/// The images that a warp or warpgroup takes in turn: its share of them, or in a screening all,
/// from another one on than its neighbours.
struct Turns {
  std::int64_t worker, workers, images;
  bool all;

  __device__ Turns(const DeviceImages& x, int per_block)
      : worker(std::int64_t{blockIdx.x} * per_block + (per_block > 1 ? threadIdx.x / 32 : 0)),
        workers(std::int64_t{gridDim.x} * per_block),
        images(x.images),
        all(x.expected != nullptr) {}
  __device__ std::int64_t count() const {
    return all ? images : (images - worker + workers - 1) / workers;
  }
  __device__ std::size_t image(std::int64_t turn) const {
    return static_cast<std::size_t>(all ? (worker + turn) % images : worker + turn * workers);
  }
};

/// Runs the instruction, with the fault where the warp is at its place.
template <class Instruction>
__device__ void run_with_fault(Registers<Instruction>& r, const WarpFault& warp) {
  if constexpr (injects_faults) {
    if (warp.here) {
      const Fault& fault = warp.fault;
      const bool struck = warp.happens_in_lane();
      Registers<Instruction> damaged = r;
      if (struck && fault.place == Fault::Place::b) damage(fault, damaged.b);
      if (struck && fault.place == Fault::Place::addend) damage(fault, damaged.c);
      // The multipliers of one thread's results alone have the fault, or all that the operand
      // reaches.
      if (struck && (fault.place == Fault::Place::a || fault.place == Fault::Place::product))
        damage(fault, damaged.a);
      Instruction::run(damaged);
      if (fault.place == Fault::Place::product) {
        Instruction::run(r);
        if (!struck) return;
      }
      memcpy(r.d, damaged.d, sizeof r.d);
      if (struck && fault.place == Fault::Place::result) damage(fault, r.d);
      return;
    }
  }
  Instruction::run(r);
}

/// One warp per image; lane-major register images.
template <class Instruction>
__global__ void __launch_bounds__(warps_per_block * 32) run_warp_registers(DeviceImages images) {
  const Turns turns(images, warps_per_block);
  const WarpFault fault(images);
  ScreenTally tally(images);
  for (std::int64_t turn = 0; turn < turns.count(); ++turn) {
    const std::size_t image = turns.image(turn);
    const std::size_t lane = image * 32 + threadIdx.x % 32;
    Registers<Instruction> r;
    load_registers(r.a, images.a, lane);
    load_registers(r.b, images.b, lane);
    load_registers(r.c, images.c, lane);
    r.e = load_word(images.e, lane);
    r.a_scale = load_word(images.a_scale, lane);
    r.b_scale = load_word(images.b_scale, lane);
    if (images.expected == nullptr) {
      run_with_fault<Instruction>(r, fault);
      store_registers(r.d, images.d, lane);
      continue;
    }
    typename Instruction::Word expected[Instruction::d];
    load_registers(expected, images.expected, lane);
    for (int i = 0; i < images.repetitions; ++i) {
      run_with_fault<Instruction>(r, fault);
      tally.compare(r.d, expected, image, threadIdx.x % 32);
    }
  }
  tally.report();
}

template <class Instruction>
void launch_warp_registers(const DeviceImages& images) {
  run_warp_registers<Instruction>
      <<<blocks_for(images, warps_per_block), warps_per_block * 32>>>(images);
}

/// Puts a fault into a warp's results in memory.
__device__ inline void damage_memory(const WarpFault& warp, std::uint32_t* results, int bytes) {
  if (!injects_faults || !warp.here) return;
  __syncwarp();
  if (warp.strikes(Fault::Place::result)) {
    std::uint32_t& word = results[(warp.fault.word * 32 + warp.fault.lane) % (bytes / 4)];
    word = with_fault(warp.fault, word);
  }
}

/// Compares a warp's results in memory with the expected ones.
__device__ inline void compare_memory(ScreenTally& tally, const DeviceImages& images,
                                      const std::uint32_t* got, std::size_t image) {
  const auto* const expected =
      static_cast<const std::uint32_t*>(images.expected) + image * (images.d_bytes / 4);
  __syncwarp();
  bool is_wrong = false;
  for (int word = static_cast<int>(threadIdx.x % 32); word < images.d_bytes / 4; word += 32) {
    if (got[word] == expected[word]) continue;
    is_wrong = true;
    atomicAdd(&images.log->mismatches, 1ULL);
    note_mismatch(images.log, image, threadIdx.x % 32, static_cast<std::uint32_t>(word),
                  expected[word], got[word]);
  }
  tally.count(is_wrong);
  __syncwarp();
}

/// One warp per image; the wrapper loads and stores its own fragments.
template <class Instruction>
__global__ void __launch_bounds__(warps_per_block * 32) run_warp_memory(DeviceImages images) {
  const Turns turns(images, warps_per_block);
  const WarpFault fault(images);
  ScreenTally tally(images);
  for (std::int64_t turn = 0; turn < turns.count(); ++turn) {
    const std::size_t image = turns.image(turn);
    char* const d = static_cast<char*>(images.d) +
                    (turns.all ? static_cast<std::size_t>(turns.worker) : image) * images.d_bytes;
    for (int i = 0; i < images.repetitions; ++i) {
      Instruction::run(static_cast<const char*>(images.a) + image * images.a_bytes,
                       static_cast<const char*>(images.b) + image * images.b_bytes,
                       static_cast<const char*>(images.c) + image * images.c_bytes, d);
      auto* const results = reinterpret_cast<std::uint32_t*>(d);
      damage_memory(fault, results, images.d_bytes);
      if (turns.all) compare_memory(tally, images, results, image);
    }
  }
  tally.report();
}

template <class Instruction>
void launch_warp_memory(const DeviceImages& images) {
  run_warp_memory<Instruction>
      <<<blocks_for(images, warps_per_block), warps_per_block * 32>>>(images);
}

/// Copies one image to shared memory with all 128 threads; images are multiples of 16 bytes.
__device__ inline void copy_to_shared(unsigned char* shared, const void* images, std::size_t image,
                                      int bytes) {
  const uint4* const from = static_cast<const uint4*>(images) + image * (bytes / 16);
  for (int i = static_cast<int>(threadIdx.x); i < bytes / 16; i += 128)
    reinterpret_cast<uint4*>(shared)[i] = from[i];
}

/// Puts an operand's fault into its words of shared memory; every thread of the warpgroup calls it.
__device__ inline void damage_shared(const WarpFault& warp, Fault::Place place,
                                     unsigned char* shared, int bytes) {
  __syncthreads();
  if (warp.here && warp.fault.place == place && threadIdx.x % 32 == 0 && warp.happens()) {
    std::uint32_t& word = reinterpret_cast<std::uint32_t*>(
        shared)[(warp.fault.word * 32 + warp.fault.lane) % (bytes / 4)];
    word = with_fault(warp.fault, word);
  }
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
  const Turns turns(images, 1);
  const WarpFault fault(images);
  ScreenTally tally(images);
  for (std::int64_t turn = 0; turn < turns.count(); ++turn) {
    const std::size_t image = turns.image(turn);
    const std::size_t lane = image * 128 + threadIdx.x;
    WarpgroupRegisters<Instruction> r;
    if constexpr (Instruction::a_from_registers)
      load_registers(r.a, images.a, lane);
    else
      copy_to_shared(shared, images.a, image, a_bytes);
    copy_to_shared(shared + b_begin, images.b, image, b_bytes);
    r.e = load_word(images.e, lane);
    if constexpr (injects_faults) {
      if constexpr (!Instruction::a_from_registers)
        damage_shared(fault, Fault::Place::a, shared, a_bytes);
      else if (fault.strikes(Fault::Place::a))
        damage(fault.fault, r.a);
      damage_shared(fault, Fault::Place::b, shared + b_begin, b_bytes);
    }
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    __syncthreads();
    r.a_descriptor = a.descriptor(address);
    r.b_descriptor = b.descriptor(address + b_begin);
    for (int i = 0; i < images.repetitions; ++i) {
      load_registers(r.d, images.c, lane);
      if constexpr (injects_faults)
        if (fault.strikes(Fault::Place::addend)) damage(fault.fault, r.d);
      asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
      Instruction::run(r);
      asm volatile("wgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;" ::
                       : "memory");
      if constexpr (injects_faults)
        if (fault.strikes(Fault::Place::result)) damage(fault.fault, r.d);
      if (images.expected == nullptr) {
        store_registers(r.d, images.d, lane);
        continue;
      }
      std::uint32_t expected[Instruction::d];
      load_registers(expected, images.expected, lane);
      tally.compare(r.d, expected, image, threadIdx.x);
    }
    __syncthreads();  // the next image overwrites what other warps may still read
  }
  tally.report();
}

template <class Instruction>
void launch_warpgroup(const DeviceImages& images) {
  run_warpgroup<Instruction><<<blocks_for(images, 1), 128>>>(images);
}

}  // namespace guardbit::gpu
