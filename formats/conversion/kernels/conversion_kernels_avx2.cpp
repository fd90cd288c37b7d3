#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <type_traits>
#include <utility>

#include "formats/conversion/kernels/conversion_kernels.hpp"
#include "formats/conversion/kernels/philox_keys.hpp"

#if defined(__x86_64__)

#include <immintrin.h>

// Whatever is defined from here on is compiled for AVX2; all else that the two headers need is
// included above.
#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx2"))), apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx2")
#endif

#include "formats/conversion/kernels/kernels_of.hpp"
#include "formats/conversion/kernels/lanes_vectors.hpp"
#include "formats/support/vectors/avx2.hpp"

namespace guardbit::formats::kernels {
namespace {
constexpr Kernels row = kernels_of<VectorLanes<vectors::Avx2>>("avx2");
}  // namespace
const Kernels* const avx2 = &row;
}  // namespace guardbit::formats::kernels

#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif

#else

namespace guardbit::formats::kernels {
const Kernels* const avx2 = nullptr;
}  // namespace guardbit::formats::kernels

#endif
