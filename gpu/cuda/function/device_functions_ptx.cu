#include "gpu/cuda/function/device_functions.cuh"

namespace guardbit::gpu {

// asm takes its text from literals alone.
#define GUARDBIT_FP32(name)                            \
  unary(#name, [] __device__(float x) {                \
    float y = 0;                                       \
    asm volatile(#name " %0, %1;" : "=f"(y) : "f"(x)); \
    return y;                                          \
  })
#define GUARDBIT_FP32_PAIR(name)                                   \
  binary(#name, [] __device__(float x, float y) {                  \
    float z = 0;                                                   \
    asm volatile(#name " %0, %1, %2;" : "=f"(z) : "f"(x), "f"(y)); \
    return z;                                                      \
  })
#define GUARDBIT_BITS16(name)                                         \
  device_function(#name, 16, 1, [] __device__(std::uint64_t number) { \
    unsigned short y = 0;                                             \
    const auto x = static_cast<unsigned short>(number);               \
    asm volatile(#name " %0, %1;" : "=h"(y) : "h"(x));                \
    return static_cast<std::uint32_t>(y);                             \
  })
#define GUARDBIT_FP64(name)                            \
  of_high_word(#name, [] __device__(double x) {        \
    double y = 0;                                      \
    asm volatile(#name " %0, %1;" : "=d"(y) : "d"(x)); \
    return y;                                          \
  })

std::vector<DeviceFunction> ptx_functions() {
  return {
      GUARDBIT_FP32(ex2.approx.f32),
      GUARDBIT_FP32(ex2.approx.ftz.f32),
      GUARDBIT_FP32(lg2.approx.f32),
      GUARDBIT_FP32(lg2.approx.ftz.f32),
      GUARDBIT_FP32(rcp.approx.f32),
      GUARDBIT_FP32(rcp.approx.ftz.f32),
      GUARDBIT_FP32(rsqrt.approx.f32),
      GUARDBIT_FP32(rsqrt.approx.ftz.f32),
      GUARDBIT_FP32(sqrt.approx.f32),
      GUARDBIT_FP32(sqrt.approx.ftz.f32),
      GUARDBIT_FP32(sin.approx.f32),
      GUARDBIT_FP32(sin.approx.ftz.f32),
      GUARDBIT_FP32(cos.approx.f32),
      GUARDBIT_FP32(cos.approx.ftz.f32),
      GUARDBIT_FP32(tanh.approx.f32),
      GUARDBIT_FP32(rcp.rn.f32),
      GUARDBIT_FP32(rcp.rz.f32),
      GUARDBIT_FP32(rcp.rm.f32),
      GUARDBIT_FP32(rcp.rp.f32),
      GUARDBIT_FP32(rcp.rn.ftz.f32),
      GUARDBIT_FP32(rcp.rz.ftz.f32),
      GUARDBIT_FP32(rcp.rm.ftz.f32),
      GUARDBIT_FP32(rcp.rp.ftz.f32),
      GUARDBIT_FP32(sqrt.rn.f32),
      GUARDBIT_FP32(sqrt.rz.f32),
      GUARDBIT_FP32(sqrt.rm.f32),
      GUARDBIT_FP32(sqrt.rp.f32),
      GUARDBIT_FP32(sqrt.rn.ftz.f32),
      GUARDBIT_FP32(sqrt.rz.ftz.f32),
      GUARDBIT_FP32(sqrt.rm.ftz.f32),
      GUARDBIT_FP32(sqrt.rp.ftz.f32),
      GUARDBIT_FP32_PAIR(div.approx.f32),
      GUARDBIT_FP32_PAIR(div.approx.ftz.f32),
      GUARDBIT_FP32_PAIR(div.full.f32),
      GUARDBIT_FP32_PAIR(div.full.ftz.f32),
      GUARDBIT_FP32_PAIR(div.rn.f32),
      GUARDBIT_FP32_PAIR(div.rz.f32),
      GUARDBIT_FP32_PAIR(div.rm.f32),
      GUARDBIT_FP32_PAIR(div.rp.f32),
      GUARDBIT_FP32_PAIR(div.rn.ftz.f32),
      GUARDBIT_FP32_PAIR(div.rz.ftz.f32),
      GUARDBIT_FP32_PAIR(div.rm.ftz.f32),
      GUARDBIT_FP32_PAIR(div.rp.ftz.f32),
      GUARDBIT_BITS16(ex2.approx.f16),
      GUARDBIT_BITS16(tanh.approx.f16),
      GUARDBIT_BITS16(ex2.approx.ftz.bf16),
      GUARDBIT_BITS16(tanh.approx.bf16),
      GUARDBIT_FP64(rcp.approx.ftz.f64),
      GUARDBIT_FP64(rsqrt.approx.f64),
      GUARDBIT_FP64(rsqrt.approx.ftz.f64),
  };
}

}  // namespace guardbit::gpu
