#pragma once

#include <bit>
#include <cstdint>

#include "emulator/functions/unit/special_function_forms.hpp"
#include "formats/rounding.hpp"

// FP32 numbers on a device's own units: what ReferenceNumber has. Sums and products are intrinsics,
// which no compiler option changes; the special function unit is asked by its instructions, which
// are compared with their models on all inputs (ptx_validation.hpp).
namespace guardbit::gpu {

/// What only a device computes; hosts compile programs, and never call them.
namespace on_device {

#if defined(__CUDA_ARCH__)
#define GUARDBIT_ON_DEVICE(expression) expression
#else
#define GUARDBIT_ON_DEVICE(expression) 0
#endif

__host__ __device__ inline float sum(float x, float y) {
  return GUARDBIT_ON_DEVICE(__fadd_rn(x, y));
}
__host__ __device__ inline float product(float x, float y) {
  return GUARDBIT_ON_DEVICE(__fmul_rn(x, y));
}
__host__ __device__ inline float quotient(float x, float y) {
  return GUARDBIT_ON_DEVICE(__fdiv_rn(x, y));
}
__host__ __device__ inline float quotient_toward_zero(float x, float y) {
  return GUARDBIT_ON_DEVICE(__fdiv_rz(x, y));
}
__host__ __device__ inline float quotient_upward(float x, float y) {
  return GUARDBIT_ON_DEVICE(__fdiv_ru(x, y));
}
__host__ __device__ inline float quotient_downward(float x, float y) {
  return GUARDBIT_ON_DEVICE(__fdiv_rd(x, y));
}
__host__ __device__ inline float root(float x) { return GUARDBIT_ON_DEVICE(__fsqrt_rn(x)); }
__host__ __device__ inline float fused(float x, float y, float z) {
  return GUARDBIT_ON_DEVICE(__fmaf_rn(x, y, z));
}
__host__ __device__ inline float nearest_integer(float x) { return GUARDBIT_ON_DEVICE(::rintf(x)); }
__host__ __device__ inline float cut_integer(float x) { return GUARDBIT_ON_DEVICE(::truncf(x)); }
__host__ __device__ inline std::int32_t integer(float x) {
  return GUARDBIT_ON_DEVICE(__float2int_rz(x));
}
__host__ __device__ inline float of_integer(std::int32_t n) {
  return GUARDBIT_ON_DEVICE(__int2float_rn(n));
}

#undef GUARDBIT_ON_DEVICE

}  // namespace on_device

class DeviceNumber {
 public:
  using Word = std::uint32_t;
  using Mask = bool;

  constexpr DeviceNumber() = default;
  constexpr DeviceNumber(float x) : number_(x) {}  // NOLINT(google-explicit-constructor): constants
  __host__ __device__ static DeviceNumber of(Word code) { return std::bit_cast<float>(code); }
  __host__ __device__ static DeviceNumber of_integer(Word n) {
    return on_device::of_integer(static_cast<std::int32_t>(n));
  }

  __host__ __device__ float number() const { return number_; }
  friend __host__ __device__ Word bits(DeviceNumber x) { return std::bit_cast<Word>(x.number_); }

  friend __host__ __device__ DeviceNumber operator+(DeviceNumber x, DeviceNumber y) {
    return on_device::sum(x.number_, y.number_);
  }
  friend __host__ __device__ DeviceNumber operator-(DeviceNumber x, DeviceNumber y) {
    return on_device::sum(x.number_, -y.number_);
  }
  friend __host__ __device__ DeviceNumber operator*(DeviceNumber x, DeviceNumber y) {
    return on_device::product(x.number_, y.number_);
  }
  friend __host__ __device__ DeviceNumber operator/(DeviceNumber x, DeviceNumber y) {
    return on_device::quotient(x.number_, y.number_);
  }
  /// To nearest even, toward zero, upward or downward.
  friend __host__ __device__ DeviceNumber divide(DeviceNumber x, DeviceNumber y,
                                                 formats::Rounding rounding) {
    using formats::Rounding;
    return rounding == Rounding::toward_zero ? on_device::quotient_toward_zero(x.number_, y.number_)
           : rounding == Rounding::upward    ? on_device::quotient_upward(x.number_, y.number_)
           : rounding == Rounding::downward  ? on_device::quotient_downward(x.number_, y.number_)
                                             : on_device::quotient(x.number_, y.number_);
  }
  friend __host__ __device__ DeviceNumber operator-(DeviceNumber x) { return -x.number_; }
  friend __host__ __device__ DeviceNumber square_root(DeviceNumber x) {
    return on_device::root(x.number_);
  }
  friend __host__ __device__ DeviceNumber fma(DeviceNumber x, DeviceNumber y, DeviceNumber z) {
    return on_device::fused(x.number_, y.number_, z.number_);
  }
  friend __host__ __device__ DeviceNumber abs(DeviceNumber x) { return of(bits(x) & 0x7fffffff); }
  friend __host__ __device__ DeviceNumber copysign(DeviceNumber magnitude, DeviceNumber sign) {
    return of((bits(magnitude) & 0x7fffffff) | (bits(sign) & 0x80000000));
  }
  friend __host__ __device__ DeviceNumber flushed(DeviceNumber x) {
    return (bits(x) & 0x7fffffff) < 0x00800000 ? of(bits(x) & 0x80000000) : x;
  }
  friend __host__ __device__ DeviceNumber rint(DeviceNumber x) {
    return on_device::nearest_integer(x.number_);
  }
  friend __host__ __device__ DeviceNumber trunc(DeviceNumber x) {
    return on_device::cut_integer(x.number_);
  }
  friend __host__ __device__ Word integer(DeviceNumber x) {
    return static_cast<Word>(on_device::integer(x.number_));
  }

  friend __host__ __device__ Mask operator==(DeviceNumber x, DeviceNumber y) {
    return x.number_ == y.number_;
  }
  friend __host__ __device__ Mask operator<(DeviceNumber x, DeviceNumber y) {
    return x.number_ < y.number_;
  }
  friend __host__ __device__ Mask operator>(DeviceNumber x, DeviceNumber y) {
    return x.number_ > y.number_;
  }
  friend __host__ __device__ Mask operator<=(DeviceNumber x, DeviceNumber y) {
    return x.number_ <= y.number_;
  }
  friend __host__ __device__ Mask operator>=(DeviceNumber x, DeviceNumber y) {
    return x.number_ >= y.number_;
  }

  friend __host__ __device__ DeviceNumber select(Mask mask, DeviceNumber yes, DeviceNumber no) {
    return mask ? yes : no;
  }
  template <class Yes, class No>
  __host__ __device__ static DeviceNumber choose(Mask mask, const Yes& yes, const No& no) {
    return mask ? yes() : no();
  }

 private:
  float number_ = 0;
};

}  // namespace guardbit::gpu

// Programs find these before the templates of the same names.
namespace guardbit::emulator::mufu {

__host__ __device__ inline gpu::DeviceNumber ex2_approx_ftz(gpu::DeviceNumber x) {
  float y = 0;
#if defined(__CUDA_ARCH__)
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x.number()));
#endif
  return y;
}
__host__ __device__ inline gpu::DeviceNumber ex2_approx(gpu::DeviceNumber x) {
  float y = 0;
#if defined(__CUDA_ARCH__)
  asm("ex2.approx.f32 %0, %1;" : "=f"(y) : "f"(x.number()));
#endif
  return y;
}
__host__ __device__ inline gpu::DeviceNumber lg2_approx(gpu::DeviceNumber x) {
  float y = 0;
#if defined(__CUDA_ARCH__)
  asm("lg2.approx.f32 %0, %1;" : "=f"(y) : "f"(x.number()));
#endif
  return y;
}
__host__ __device__ inline gpu::DeviceNumber rcp_approx_ftz(gpu::DeviceNumber x) {
  float y = 0;
#if defined(__CUDA_ARCH__)
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x.number()));
#endif
  return y;
}
__host__ __device__ inline gpu::DeviceNumber rsqrt_approx(gpu::DeviceNumber x) {
  float y = 0;
#if defined(__CUDA_ARCH__)
  asm("rsqrt.approx.f32 %0, %1;" : "=f"(y) : "f"(x.number()));
#endif
  return y;
}

}  // namespace guardbit::emulator::mufu
