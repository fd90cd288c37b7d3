#include "gpu/cuda/function/device_functions.cuh"

// Compiled once for each of nvcc's options, GUARDBIT_CUDA_FUNCTIONS the name of the list.
namespace guardbit::gpu {

#define GUARDBIT_OF_ONE(name) unary(#name, [] __device__(float x) { return name(x); })
#define GUARDBIT_OF_TWO(name) binary(#name, [] __device__(float x, float y) { return name(x, y); })
#define GUARDBIT_OF_HALF(name) of_half(#name "(half)", [] __device__(__half x) { return name(x); })
#define GUARDBIT_OF_BFLOAT16(name) \
  of_bfloat16(#name "(bfloat16)", [] __device__(__nv_bfloat16 x) { return name(x); })

#define GUARDBIT_OF_THREE(name)                                           \
  of_tuple(#name, 3, [] __device__(emulator::ArgumentTuple t) {           \
    return code_of(name(number_of(t.x), number_of(t.y), number_of(t.z))); \
  })
#define GUARDBIT_OF_FOUR(name)                                                            \
  of_tuple(#name, 4, [] __device__(emulator::ArgumentTuple t) {                           \
    return code_of(name(number_of(t.x), number_of(t.y), number_of(t.z), number_of(t.w))); \
  })
// Of a number and an integer, in the order of the function's parameters.
#define GUARDBIT_OF_NUMBER_AND_INTEGER(name)                                                 \
  of_tuple(#name, 2, [] __device__(emulator::ArgumentTuple t) {                              \
    return code_of(name(number_of(t.x), static_cast<int>(emulator::integer_argument(t.y)))); \
  })
#define GUARDBIT_OF_INTEGER_AND_NUMBER(name)                                                       \
  of_tuple(#name, 2, [] __device__(emulator::ArgumentTuple t) {                                    \
    return code_of(name(static_cast<int>(emulator::small_integer_argument(t.x)), number_of(t.y))); \
  })
#define GUARDBIT_OF_EACH_ROUNDING(macro, name) \
  macro(name##_rn), macro(name##_rz), macro(name##_rd), macro(name##_ru)

namespace {

/// Functions of two results, which have a name each: sine and cosine, parts of a number, a
/// remainder and its quotient.
std::vector<DeviceFunction> functions_of_two_results() {
  using Tuple = emulator::ArgumentTuple;
  return {
      unary("sincosf",
            [] __device__(float x) {
              float sine = 0, cosine = 0;
              sincosf(x, &sine, &cosine);
              return sine;
            }),
      unary("sincosf d1",
            [] __device__(float x) {
              float sine = 0, cosine = 0;
              sincosf(x, &sine, &cosine);
              return cosine;
            }),
      unary("sincospif",
            [] __device__(float x) {
              float sine = 0, cosine = 0;
              sincospif(x, &sine, &cosine);
              return sine;
            }),
      unary("sincospif d1",
            [] __device__(float x) {
              float sine = 0, cosine = 0;
              sincospif(x, &sine, &cosine);
              return cosine;
            }),
      unary("__sincosf",
            [] __device__(float x) {
              float sine = 0, cosine = 0;
              __sincosf(x, &sine, &cosine);
              return sine;
            }),
      unary("__sincosf d1",
            [] __device__(float x) {
              float sine = 0, cosine = 0;
              __sincosf(x, &sine, &cosine);
              return cosine;
            }),
      unary("modff",
            [] __device__(float x) {
              float whole = 0;
              return modff(x, &whole);
            }),
      unary("modff d1",
            [] __device__(float x) {
              float whole = 0;
              modff(x, &whole);
              return whole;
            }),
      unary("frexpf",
            [] __device__(float x) {
              int exponent = 0;
              return frexpf(x, &exponent);
            }),
      device_function("frexpf d1", 32, 1,
                      [] __device__(std::uint64_t number) {
                        int exponent = 0;
                        frexpf(number_of(static_cast<std::uint32_t>(number)), &exponent);
                        return code_of(exponent);
                      }),
      of_tuple("remquof", 2,
               [] __device__(Tuple t) {
                 int quotient = 0;
                 return code_of(remquof(number_of(t.x), number_of(t.y), &quotient));
               }),
      of_tuple("remquof d1", 2,
               [] __device__(Tuple t) {
                 int quotient = 0;
                 remquof(number_of(t.x), number_of(t.y), &quotient);
                 return code_of(quotient);
               }),
  };
}

/// What rounds in one direction, takes three or four numbers, an integer, or is exact.
std::vector<DeviceFunction> further_functions() {
  return {
      GUARDBIT_OF_ONE(ceilf),
      GUARDBIT_OF_ONE(fabsf),
      GUARDBIT_OF_ONE(floorf),
      GUARDBIT_OF_ONE(truncf),
      device_function("ilogbf", 32, 1,
                      [] __device__(std::uint64_t number) {
                        return code_of(ilogbf(number_of(static_cast<std::uint32_t>(number))));
                      }),
      GUARDBIT_OF_EACH_ROUNDING(GUARDBIT_OF_ONE, __frcp),
      GUARDBIT_OF_EACH_ROUNDING(GUARDBIT_OF_ONE, __fsqrt),
      GUARDBIT_OF_TWO(copysignf),
      GUARDBIT_OF_TWO(fdividef),
      GUARDBIT_OF_TWO(fmaxf),
      GUARDBIT_OF_TWO(fminf),
      GUARDBIT_OF_TWO(nextafterf),
      GUARDBIT_OF_EACH_ROUNDING(GUARDBIT_OF_TWO, __fadd),
      GUARDBIT_OF_EACH_ROUNDING(GUARDBIT_OF_TWO, __fsub),
      GUARDBIT_OF_EACH_ROUNDING(GUARDBIT_OF_TWO, __fmul),
      GUARDBIT_OF_EACH_ROUNDING(GUARDBIT_OF_TWO, __fdiv),
      GUARDBIT_OF_NUMBER_AND_INTEGER(ldexpf),
      GUARDBIT_OF_NUMBER_AND_INTEGER(scalbnf),
      GUARDBIT_OF_INTEGER_AND_NUMBER(jnf),
      GUARDBIT_OF_INTEGER_AND_NUMBER(ynf),
      GUARDBIT_OF_THREE(fmaf),
      GUARDBIT_OF_EACH_ROUNDING(GUARDBIT_OF_THREE, __fmaf),
      GUARDBIT_OF_EACH_ROUNDING(GUARDBIT_OF_THREE, __fmaf_ieee),
      GUARDBIT_OF_THREE(norm3df),
      GUARDBIT_OF_THREE(rnorm3df),
      GUARDBIT_OF_FOUR(norm4df),
      GUARDBIT_OF_FOUR(rnorm4df),
  };
}

}  // namespace

std::vector<DeviceFunction> GUARDBIT_CUDA_FUNCTIONS() {
  std::vector<DeviceFunction> all = {
      GUARDBIT_OF_ONE(acosf),
      GUARDBIT_OF_ONE(acoshf),
      GUARDBIT_OF_ONE(asinf),
      GUARDBIT_OF_ONE(asinhf),
      GUARDBIT_OF_ONE(atanf),
      GUARDBIT_OF_ONE(atanhf),
      GUARDBIT_OF_ONE(cbrtf),
      GUARDBIT_OF_ONE(cosf),
      GUARDBIT_OF_ONE(coshf),
      GUARDBIT_OF_ONE(cospif),
      GUARDBIT_OF_ONE(cyl_bessel_i0f),
      GUARDBIT_OF_ONE(cyl_bessel_i1f),
      GUARDBIT_OF_ONE(erfcf),
      GUARDBIT_OF_ONE(erfcinvf),
      GUARDBIT_OF_ONE(erfcxf),
      GUARDBIT_OF_ONE(erff),
      GUARDBIT_OF_ONE(erfinvf),
      GUARDBIT_OF_ONE(exp10f),
      GUARDBIT_OF_ONE(exp2f),
      GUARDBIT_OF_ONE(expf),
      GUARDBIT_OF_ONE(expm1f),
      GUARDBIT_OF_ONE(j0f),
      GUARDBIT_OF_ONE(j1f),
      GUARDBIT_OF_ONE(lgammaf),
      GUARDBIT_OF_ONE(log10f),
      GUARDBIT_OF_ONE(log1pf),
      GUARDBIT_OF_ONE(log2f),
      GUARDBIT_OF_ONE(logbf),
      GUARDBIT_OF_ONE(logf),
      GUARDBIT_OF_ONE(nearbyintf),
      GUARDBIT_OF_ONE(normcdff),
      GUARDBIT_OF_ONE(normcdfinvf),
      GUARDBIT_OF_ONE(rcbrtf),
      GUARDBIT_OF_ONE(rintf),
      GUARDBIT_OF_ONE(roundf),
      GUARDBIT_OF_ONE(rsqrtf),
      GUARDBIT_OF_ONE(sinf),
      GUARDBIT_OF_ONE(sinhf),
      GUARDBIT_OF_ONE(sinpif),
      GUARDBIT_OF_ONE(sqrtf),
      GUARDBIT_OF_ONE(tanf),
      GUARDBIT_OF_ONE(tanhf),
      GUARDBIT_OF_ONE(tgammaf),
      GUARDBIT_OF_ONE(y0f),
      GUARDBIT_OF_ONE(y1f),
      GUARDBIT_OF_ONE(__cosf),
      GUARDBIT_OF_ONE(__exp10f),
      GUARDBIT_OF_ONE(__expf),
      GUARDBIT_OF_ONE(__log10f),
      GUARDBIT_OF_ONE(__log2f),
      GUARDBIT_OF_ONE(__logf),
      GUARDBIT_OF_ONE(__sinf),
      GUARDBIT_OF_ONE(__tanf),
      GUARDBIT_OF_ONE(__tanhf),
      GUARDBIT_OF_ONE(__frsqrt_rn),
      GUARDBIT_OF_ONE(__saturatef),
      GUARDBIT_OF_TWO(atan2f),
      GUARDBIT_OF_TWO(fdimf),
      GUARDBIT_OF_TWO(fmodf),
      GUARDBIT_OF_TWO(hypotf),
      GUARDBIT_OF_TWO(powf),
      GUARDBIT_OF_TWO(remainderf),
      GUARDBIT_OF_TWO(rhypotf),
      GUARDBIT_OF_TWO(__fdividef),
      GUARDBIT_OF_TWO(__powf),
      binary("x / y", [] __device__(float x, float y) { return x / y; }),
      unary("1 / x", [] __device__(float x) { return 1 / x; }),
      GUARDBIT_OF_HALF(hcos),
      GUARDBIT_OF_HALF(hexp),
      GUARDBIT_OF_HALF(hexp10),
      GUARDBIT_OF_HALF(hexp2),
      GUARDBIT_OF_HALF(hlog),
      GUARDBIT_OF_HALF(hlog10),
      GUARDBIT_OF_HALF(hlog2),
      GUARDBIT_OF_HALF(hrcp),
      GUARDBIT_OF_HALF(hrsqrt),
      GUARDBIT_OF_HALF(hsin),
      GUARDBIT_OF_HALF(hsqrt),
      GUARDBIT_OF_HALF(htanh),
      GUARDBIT_OF_HALF(htanh_approx),
      GUARDBIT_OF_BFLOAT16(hcos),
      GUARDBIT_OF_BFLOAT16(hexp),
      GUARDBIT_OF_BFLOAT16(hexp10),
      GUARDBIT_OF_BFLOAT16(hexp2),
      GUARDBIT_OF_BFLOAT16(hlog),
      GUARDBIT_OF_BFLOAT16(hlog10),
      GUARDBIT_OF_BFLOAT16(hlog2),
      GUARDBIT_OF_BFLOAT16(hrcp),
      GUARDBIT_OF_BFLOAT16(hrsqrt),
      GUARDBIT_OF_BFLOAT16(hsin),
      GUARDBIT_OF_BFLOAT16(hsqrt),
      GUARDBIT_OF_BFLOAT16(htanh),
      GUARDBIT_OF_BFLOAT16(htanh_approx),
  };
  for (const auto& more : {further_functions(), functions_of_two_results()})
    all.insert(all.end(), more.begin(), more.end());
  return all;
}

}  // namespace guardbit::gpu
