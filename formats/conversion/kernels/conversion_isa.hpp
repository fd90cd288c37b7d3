#pragma once

#include "formats/conversion/kernels/conversion_kernels.hpp"

// One row of kernels per translation unit; null where the CPU family has no such vectors.
namespace guardbit::formats::kernels {

extern const Kernels* const avx512;
extern const Kernels* const avx2;
extern const Kernels* const portable;

}  // namespace guardbit::formats::kernels
