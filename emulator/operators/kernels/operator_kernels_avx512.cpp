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

#include "emulator/functions/kernels/single_lanes.hpp"
#include "emulator/functions/kernels/unit_tables.hpp"
#include "emulator/operators/kernels/adam_kernel.hpp"
#include "emulator/operators/kernels/operator_kernels.hpp"
#include "formats/rounding.hpp"

#if defined(__x86_64__)

#include <immintrin.h>

// Whatever is defined from here on is compiled for AVX-512,
#include "emulator/functions/kernels/kernels_begin_avx512.inc"
// these headers too; all else that they need is included above.
#include "emulator/functions/kernels/coefficient_lookup_avx512.hpp"
#include "emulator/functions/kernels/truncated_square_avx512.hpp"
#include "emulator/operators/kernels/vector_adam.hpp"
#include "emulator/operators/kernels/vector_expressions.hpp"

namespace guardbit::emulator::operators::kernels {

namespace {
constexpr auto kernels = pointwise_kernels_of<formats::vectors::Avx512>();
}  // namespace
const std::span<const PointwiseKernel> avx512 = kernels;
const AdamKernel adam_avx512 = run_adam<formats::vectors::Avx512>;

}  // namespace guardbit::emulator::operators::kernels

#include "emulator/functions/kernels/kernels_end.inc"

#else

namespace guardbit::emulator::operators::kernels {
const std::span<const PointwiseKernel> avx512;
const AdamKernel adam_avx512 = nullptr;
}  // namespace guardbit::emulator::operators::kernels

#endif
