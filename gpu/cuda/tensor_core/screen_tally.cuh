#pragma once
#include <cstdint>

#include "gpu/cuda/tensor_core/note_entry.cuh"
#include "gpu/cuda/tensor_core/tensor_core_kernels.hpp"

// Results compared with the expected ones where they are made, and faults put between the two.
namespace guardbit::gpu {

#ifdef GUARDBIT_FAULTS
inline constexpr bool injects_faults = true;
#else
inline constexpr bool injects_faults = false;
#endif

__device__ inline std::uint32_t this_processor() {
  std::uint32_t processor;
  asm volatile("mov.u32 %0, %%smid;" : "=r"(processor));
  return processor;
}
/// Warps go to the four processing blocks of a multiprocessor by their number.
__device__ inline std::uint32_t this_block() {
  std::uint32_t warp;
  asm volatile("mov.u32 %0, %%warpid;" : "=r"(warp));
  return warp % processor_blocks;
}

/// Notes a wrong word. Every field but the words is the thread's own.
__device__ inline void note_mismatch(ScreenLog* log, std::size_t image, std::uint32_t lane,
                                     std::uint32_t word, std::uint32_t expected,
                                     std::uint32_t got) {
  note_entry(log, {static_cast<std::uint32_t>(image), lane, word, this_processor(), this_block(),
                   expected, got});
}

/// What one thread found; the warp counts its executions together.
class ScreenTally {
 public:
  __device__ explicit ScreenTally(const DeviceImages& images)
      : log_(images.log),
        counted_(images.quarter < 0 || threadIdx.x / 32 == static_cast<unsigned>(images.quarter)) {}

  /// Every thread of the warp takes part. `expected` are as many words.
  template <int words, class Word>
  __device__ void compare(const Word (&got)[words], const Word (&expected)[words],
                          std::size_t image, std::uint32_t lane) {
    Word different = 0;
#pragma unroll
    for (int i = 0; i < words; ++i) different |= got[i] ^ expected[i];
    count(different != 0);
    if (different == 0) return;
    constexpr int parts = sizeof(Word) / 4;
    int first = 0;
    unsigned wrong = 0;
    Word wanted = 0, found = 0;
#pragma unroll
    for (int i = words - 1; i >= 0; --i) {
      if (got[i] == expected[i]) continue;
      ++wrong;
      first = i;
      wanted = expected[i];
      found = got[i];
    }
    atomicAdd(&log_->mismatches, static_cast<unsigned long long>(wrong));
    const bool high =
        parts == 2 && static_cast<std::uint32_t>(wanted) == static_cast<std::uint32_t>(found);
    const int shift = high ? 32 * (parts - 1) : 0;
    note_mismatch(log_, image, lane, static_cast<std::uint32_t>(first * parts + (high ? 1 : 0)),
                  static_cast<std::uint32_t>(wanted >> shift),
                  static_cast<std::uint32_t>(found >> shift));
  }

  /// One more execution by the whole warp; the thread says whether its part is wrong.
  __device__ void count(bool is_wrong) {
    ++executions_;
    if (__any_sync(0xFFFFFFFFU, is_wrong)) ++failures_;
  }

  /// Adds the warp's executions to the log.
  __device__ void report() const {
    if (log_ == nullptr || !counted_ || threadIdx.x % 32 != 0) return;
    const std::uint32_t processor = this_processor(), block = this_block();
    if (processor >= most_processors) return;
    atomicAdd(&log_->executions[processor][block], static_cast<unsigned long long>(executions_));
    if (failures_ != 0)
      atomicAdd(&log_->failures[processor][block], static_cast<unsigned long long>(failures_));
  }

 private:
  ScreenLog* log_;
  bool counted_;
  unsigned executions_ = 0, failures_ = 0;
};

/// A fault as one warp sees it: asked for once, as a warp stays where it is.
struct WarpFault {
  Fault fault{};
  /// the warp is at the fault's place; all of its threads agree
  bool here = false;

  __device__ explicit WarpFault(const DeviceImages& images) {
    if constexpr (injects_faults) {
      fault = *images.fault;
      here = __any_sync(0xFFFFFFFFU,
                        fault.place != Fault::Place::none &&
                            this_processor() == static_cast<std::uint32_t>(fault.processor) &&
                            this_block() == static_cast<std::uint32_t>(fault.block)) != 0;
    }
  }

  /// Does it strike this execution of its place, in one thread?
  __device__ bool strikes(Fault::Place place) const {
    return here && fault.place == place && happens_in_lane();
  }
  __device__ bool happens_in_lane() const {
    return threadIdx.x % 32 == static_cast<unsigned>(fault.lane) && happens();
  }
  __device__ bool happens() const {
    if (fault.chance == ~0U) return true;
    std::uint64_t x = static_cast<std::uint64_t>(clock64()) * 0x9E3779B97F4A7C15ULL;
    x = (x ^ (x >> 31)) * 0xBF58476D1CE4E5B9ULL;
    return static_cast<std::uint32_t>(x >> 32) < fault.chance;
  }
};

template <class Word>
__device__ inline Word with_fault(const Fault& fault, Word word) {
  const Word bit = Word{1} << (static_cast<unsigned>(fault.bit) % (8 * sizeof(Word)));
  if (fault.effect == Fault::Effect::flip) return word ^ bit;
  return fault.effect == Fault::Effect::stuck_at_1 ? word | bit : word & ~bit;
}

template <int words, class Word>
__device__ inline void damage(const Fault& fault, Word (&registers)[words]) {
#pragma unroll
  for (int i = 0; i < words; ++i)
    if (i == fault.word % words) registers[i] = with_fault(fault, registers[i]);
}

}  // namespace guardbit::gpu
