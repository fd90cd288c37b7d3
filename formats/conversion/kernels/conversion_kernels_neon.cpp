#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "formats/conversion/kernels/conversion_kernels.hpp"
#include "formats/conversion/kernels/kernels_of.hpp"
#include "formats/conversion/kernels/lanes_vectors.hpp"
#include "formats/support/vectors/neon.hpp"

namespace guardbit::formats::kernels {

constexpr Kernels neon_row = kernels_of<VectorLanes<vectors::Neon>>("neon");
const Kernels* const neon = &neon_row;

}  // namespace guardbit::formats::kernels
