#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <span>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "emulator/functions/kernels/large_angles.hpp"
#include "emulator/functions/kernels/unit_tables.hpp"
#include "emulator/operators/kernels/adam_kernel.hpp"
#include "emulator/operators/kernels/operator_kernels.hpp"
#include "formats/rounding.hpp"

#if defined(__x86_64__)

#include <immintrin.h>

// Whatever is defined from here on is compiled for AVX-512; all else that the headers need is
// included above.
#if !defined(__clang__)
// GCC 12's own headers leave the operand of _mm512_undefined unset, and warn of it.
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif
#if defined(__clang__)
#pragma clang attribute push(                                                                \
    __attribute__((                                                                          \
        target("avx512f,avx512bw,avx512dq,avx512vl,avx512bitalg,avx512vpopcntdq,avx512vbmi," \
               "avx2,fma,f16c"))),                                                           \
    apply_to = function)
#else
#pragma GCC target( \
    "avx512f,avx512bw,avx512dq,avx512vl,avx512bitalg,avx512vpopcntdq,avx512vbmi,avx2,fma,f16c")
#endif

#if !defined(__clang__)
// GCC 12 warns of the ABI of lambdas, all of which are inlined.
#pragma GCC diagnostic ignored "-Wpsabi"
#endif

#include "emulator/functions/kernels/coefficient_lookup_avx512.hpp"
#include "emulator/operators/kernels/vector_adam.hpp"
#include "emulator/operators/kernels/vector_expressions.hpp"

namespace guardbit::emulator::operators::kernels {

namespace {
constexpr auto kernels = pointwise_kernels_of<formats::vectors::Avx512>();
}  // namespace
const std::span<const PointwiseKernel> avx512 = kernels;
const AdamKernel adam_avx512 = run_adam<formats::vectors::Avx512>;

}  // namespace guardbit::emulator::operators::kernels

#if defined(__clang__)
#pragma clang attribute pop
#endif
// GCC instantiates templates at the end of the file, lambdas in them by the options in force there.

#else

namespace guardbit::emulator::operators::kernels {
const std::span<const PointwiseKernel> avx512;
const AdamKernel adam_avx512 = nullptr;
}  // namespace guardbit::emulator::operators::kernels

#endif
