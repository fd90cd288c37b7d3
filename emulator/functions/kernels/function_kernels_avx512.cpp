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
#include "emulator/functions/kernels/single_lanes.hpp"
#include "emulator/functions/kernels/unit_tables.hpp"
#include "formats/rounding.hpp"

#if defined(__x86_64__)

#include <immintrin.h>

// Whatever is defined from here on is compiled for AVX-512,
#include "emulator/functions/kernels/kernels_begin_avx512.inc"
// these headers too; all else that they need is included above.
#include "emulator/functions/kernels/coefficient_lookup_avx512.hpp"
#include "emulator/functions/kernels/truncated_square_avx512.hpp"
#include "emulator/functions/kernels/vector_kernels.hpp"

namespace guardbit::emulator::kernels {

namespace {
constexpr auto kernels = all_kernels_of<Avx512>();
}  // namespace
const std::span<const FunctionKernel> avx512 = kernels;

}  // namespace guardbit::emulator::kernels

#include "emulator/functions/kernels/kernels_end.inc"

#else

namespace guardbit::emulator::kernels {
const std::span<const FunctionKernel> avx512;
}  // namespace guardbit::emulator::kernels

#endif
