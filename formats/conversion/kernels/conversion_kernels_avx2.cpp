#include <immintrin.h>

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

// What follows is compiled for the instruction set,
#include "formats/support/vectors/target_avx2.inc"
// these templates among it.
#include "formats/conversion/kernels/kernels_of.hpp"
#include "formats/conversion/kernels/lanes_vectors.hpp"
#include "formats/support/vectors/avx2.hpp"

namespace guardbit::formats::kernels {
namespace {
constexpr Kernels row = kernels_of<VectorLanes<vectors::Avx2>>("avx2");
}  // namespace
const Kernels* const avx2 = &row;
}  // namespace guardbit::formats::kernels

#include "formats/support/vectors/target_end.inc"
