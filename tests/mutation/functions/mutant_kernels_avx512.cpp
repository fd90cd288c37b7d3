#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "emulator/functions/kernels/single_lanes.hpp"
#include "emulator/functions/kernels/unit_tables.hpp"
#include "formats/rounding.hpp"
#include "tests/mutation/functions/mutant_kernels.hpp"
#include "tests/mutation/functions/program_change.hpp"

#if defined(__x86_64__)

#include <immintrin.h>

// Whatever is defined from here on is compiled for AVX-512,
#include "emulator/functions/kernels/kernels_begin_avx512.inc"
// these headers too; all else that they need is included above.
#include "emulator/functions/kernels/coefficient_lookup_avx512.hpp"
#include "emulator/functions/kernels/truncated_square_avx512.hpp"
#include "tests/mutation/functions/vector_mutants.hpp"

namespace guardbit::tests {

namespace {
constexpr auto kernels = all_kernels_of<emulator::kernels::Avx512>();
}  // namespace
const std::span<const MutantKernel> kernels_of_avx512 = kernels;

}  // namespace guardbit::tests

#include "emulator/functions/kernels/kernels_end.inc"

#else

namespace guardbit::tests {
const std::span<const MutantKernel> kernels_of_avx512;
}  // namespace guardbit::tests

#endif
