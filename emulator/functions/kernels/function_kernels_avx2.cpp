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

// Whatever is defined from here on is compiled for AVX2; all else that the headers need is included
// above.
#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx2,fma,f16c"))), apply_to = function)
#else
#pragma GCC target("avx2,fma,f16c")
#endif

#if !defined(__clang__)
// GCC 12 warns of the ABI of lambdas, all of which are inlined.
#pragma GCC diagnostic ignored "-Wpsabi"
#endif

#include "emulator/functions/kernels/coefficient_lookup_avx2.hpp"
#include "emulator/functions/kernels/vector_kernels.hpp"

namespace guardbit::emulator::kernels {

namespace {
constexpr auto kernels = all_kernels_of<Avx2>();
}  // namespace
const std::span<const FunctionKernel> avx2 = kernels;

}  // namespace guardbit::emulator::kernels

#if defined(__clang__)
#pragma clang attribute pop
#endif
// GCC instantiates templates at the end of the file, lambdas in them by the options in force there.

#else

namespace guardbit::emulator::kernels {
const std::span<const FunctionKernel> avx2;
}  // namespace guardbit::emulator::kernels

#endif
