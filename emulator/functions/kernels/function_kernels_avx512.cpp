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

#include "emulator/functions/kernels/function_kernels.hpp"
#include "emulator/functions/kernels/large_angles.hpp"
#include "emulator/functions/kernels/unit_tables.hpp"
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
#include "emulator/functions/kernels/vector_kernels.hpp"

namespace guardbit::emulator::kernels {

namespace {
constexpr auto kernels = all_kernels_of<Avx512>();
}  // namespace
const std::span<const FunctionKernel> avx512 = kernels;

}  // namespace guardbit::emulator::kernels

#if defined(__clang__)
#pragma clang attribute pop
#endif
// GCC instantiates templates at the end of the file, lambdas in them by the options in force there.

#else

namespace guardbit::emulator::kernels {
const std::span<const FunctionKernel> avx512;
}  // namespace guardbit::emulator::kernels

#endif
