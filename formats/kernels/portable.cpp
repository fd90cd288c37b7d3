#include "formats/kernels/isa.hpp"
#include "formats/kernels/kernels_of.hpp"
#include "formats/kernels/lanes_portable.hpp"

namespace guardbit::formats::kernels {

constexpr Kernels portable_row = kernels_of<PortableLanes>("portable");
const Kernels* const portable = &portable_row;

}  // namespace guardbit::formats::kernels
