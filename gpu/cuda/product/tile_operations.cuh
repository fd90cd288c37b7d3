#pragma once

// What the kernel of multiply.cuh asks of the hardware: matrix multiply-adds, copies of whole
// stages into shared memory, and codes of C and D as FP64.

#include <cuda_fp16.h>

#include <cstddef>
#include <cstdint>

#include "gpu/model/offset_accumulator.hpp"

namespace guardbit::gpu {

// ---- Matrix multiply-adds; fragments as in the PTX ISA ----

template <int regs>
__device__ inline void add_weights(float (&s)[4], const std::uint32_t* a, const std::uint32_t* b) {
  if constexpr (regs == 4) {
    asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
        : "+f"(s[0]), "+f"(s[1]), "+f"(s[2]), "+f"(s[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
  } else {
    asm("mma.sync.aligned.m16n8k8.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5}, {%6}, {%0,%1,%2,%3};"
        : "+f"(s[0]), "+f"(s[1]), "+f"(s[2]), "+f"(s[3])
        : "r"(a[0]), "r"(a[1]), "r"(b[0]));
  }
}

template <int regs>
__device__ inline void count_signs(int (&n)[4], const std::uint32_t* a, const std::uint32_t* b) {
  if constexpr (regs == 4) {
    asm("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
        : "+r"(n[0]), "+r"(n[1]), "+r"(n[2]), "+r"(n[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
  } else {
    asm("mma.sync.aligned.m16n8k16.row.col.s32.s8.s8.s32 {%0,%1,%2,%3}, {%4,%5}, {%6}, {%0,%1,%2,%3};"
        : "+r"(n[0]), "+r"(n[1]), "+r"(n[2]), "+r"(n[3])
        : "r"(a[0]), "r"(a[1]), "r"(b[0]));
  }
}

/// Four products per lane and call (of 16 k) at most; each is rounded down on its own.
template <int k>
__device__ inline void add_products(double (&d)[4], const double* a, const double* b) {
#if __CUDA_ARCH__ >= 900
  if constexpr (k == 16) {
    asm("mma.sync.aligned.m16n8k16.row.col.f64.f64.f64.f64.rm {%0,%1,%2,%3}, {%4,%5,%6,%7,%8,%9,%10,%11}, {%12,%13,%14,%15}, {%0,%1,%2,%3};"
        : "+d"(d[0]), "+d"(d[1]), "+d"(d[2]), "+d"(d[3])
        : "d"(a[0]), "d"(a[1]), "d"(a[2]), "d"(a[3]), "d"(a[4]), "d"(a[5]), "d"(a[6]), "d"(a[7]),
          "d"(b[0]), "d"(b[1]), "d"(b[2]), "d"(b[3]));
  } else if constexpr (k == 8) {
    asm("mma.sync.aligned.m16n8k8.row.col.f64.f64.f64.f64.rm {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
        : "+d"(d[0]), "+d"(d[1]), "+d"(d[2]), "+d"(d[3])
        : "d"(a[0]), "d"(a[1]), "d"(a[2]), "d"(a[3]), "d"(b[0]), "d"(b[1]));
  } else {
    asm("mma.sync.aligned.m16n8k4.row.col.f64.f64.f64.f64.rm {%0,%1,%2,%3}, {%4,%5}, {%6}, {%0,%1,%2,%3};"
        : "+d"(d[0]), "+d"(d[1]), "+d"(d[2]), "+d"(d[3])
        : "d"(a[0]), "d"(a[1]), "d"(b[0]));
  }
#else
  for (int half = 0; half < 2; ++half) {
    for (int i = 0; i < k / 4; ++i) {
      asm("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64.rm {%0,%1}, {%2}, {%3}, {%0,%1};"
          : "+d"(d[2 * half]), "+d"(d[2 * half + 1])
          : "d"(a[2 * i + half]), "d"(b[i]));
    }
  }
#endif
}

__device__ inline double multiply_add_down(double a, double b, double c) {
  return __fma_rd(a, b, c);
}

// ---- Copies of whole stages (PTX ISA, cp.async.bulk and mbarrier) ----

__device__ inline std::uint32_t shared_address(const void* p) {
  return static_cast<std::uint32_t>(__cvta_generic_to_shared(p));
}
__device__ inline void make_barrier(std::uint64_t* barrier, int arrivals) {
  asm volatile("mbarrier.init.shared.b64 [%0], %1;" ::"r"(shared_address(barrier)), "r"(arrivals)
               : "memory");
}
__device__ inline void arrive(std::uint64_t* barrier) {
  asm volatile("{\n.reg .b64 state;\nmbarrier.arrive.shared.b64 state, [%0];\n}" ::"r"(
                   shared_address(barrier))
               : "memory");
}
__device__ inline void wait_for(std::uint64_t* barrier, int parity) {
  asm volatile(
      "{\n.reg .pred done;\n"
      "again:\n"
#if __CUDA_ARCH__ >= 900
      "mbarrier.try_wait.parity.shared.b64 done, [%0], %1;\n"
#else
      "mbarrier.test_wait.parity.shared.b64 done, [%0], %1;\n"
#endif
      "@!done bra again;\n}" ::"r"(shared_address(barrier)),
      "r"(parity)
      : "memory");
}

/// One thread fills a slot with two runs of bytes and completes a phase of the barrier.
struct Run {
  const std::byte* from;
  int bytes;
};
__device__ inline void fill_slot(std::byte* to, const Run& first, const Run& second,
                                 std::uint64_t* filled) {
#if __CUDA_ARCH__ >= 900
  asm volatile(
      "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(shared_address(filled)),
      "r"(first.bytes + second.bytes)
      : "memory");
#endif
  for (const Run& run : {first, second}) {
#if __CUDA_ARCH__ >= 900
    asm volatile(
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::
            "r"(shared_address(to)),
        "l"(run.from), "r"(run.bytes), "r"(shared_address(filled))
        : "memory");
#else
    for (int at = 0; at < run.bytes; at += 16)
      *reinterpret_cast<uint4*>(to + at) = *reinterpret_cast<const uint4*>(run.from + at);
#endif
    to += run.bytes;
  }
#if __CUDA_ARCH__ < 900
  arrive(filled);
#endif
}

// ---- Codes of C and D ----

template <Accumulated kind>
__device__ inline double addend_of_code(std::uint64_t code) {
  double c = 0;
  if constexpr (kind == Accumulated::fp16) {
    c = __half2float(__ushort_as_half(static_cast<unsigned short>(code)));
  } else {
    // Bits below E8M13's are below every grid this addend can meet.
    const std::uint32_t kept = kind == Accumulated::e8m13 ? 0xFFFFFC00U : ~0U;
    const auto bits = static_cast<std::uint32_t>(code);
    const bool special = (bits & 0x7F800000U) == 0x7F800000U;
    c = __uint_as_float(special ? bits : bits & kept);
  }
  return c == 0 ? 0 : c;  // of either sign
}

template <Accumulated kind>
__device__ inline std::uint32_t code_of_result(double d) {
  if constexpr (kind == Accumulated::fp16)
    return d != d ? 0x7FFF : __half_as_ushort(__double2half(d));
  return d != d ? 0x7FFFFFFF : __float_as_uint(static_cast<float>(d));
}

__device__ inline std::uint64_t load_code(const std::byte* codes, const formats::Format& f,
                                          std::size_t index) {
  switch (formats::container_bits(f)) {
    case 8: return reinterpret_cast<const std::uint8_t*>(codes)[index];
    case 16: return reinterpret_cast<const std::uint16_t*>(codes)[index];
    default:
      return reinterpret_cast<const std::uint32_t*>(codes)[index] >> formats::container_shift(f);
  }
}

}  // namespace guardbit::gpu
