#include "formats/conversion/kernels/conversion_kernels.hpp"
#include "formats/conversion/kernels/kernels_of.hpp"
#include "formats/conversion/kernels/lanes_portable.hpp"

namespace guardbit::formats::kernels {

constexpr Kernels portable_row = kernels_of<PortableLanes>("portable");
const Kernels* const portable = &portable_row;

}  // namespace guardbit::formats::kernels
