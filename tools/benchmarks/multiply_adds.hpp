#pragma once

#include <cstdint>

// Multiply-adds in registers, which no product of this CPU can outrun. The same code compiled for
// several instruction sets; a CPU must have those of the one that is called.
namespace guardbit::tools {

// All return the operations that `rounds` rounds take, two for each multiply-add.

namespace functions_avx512 {
double multiply_adds_fp32(std::int64_t rounds);
double multiply_adds_fp64(std::int64_t rounds);
}  // namespace functions_avx512
namespace functions_avx2 {
double multiply_adds_fp32(std::int64_t rounds);
double multiply_adds_fp64(std::int64_t rounds);
}  // namespace functions_avx2
namespace functions_baseline {
double multiply_adds_fp32(std::int64_t rounds);
double multiply_adds_fp64(std::int64_t rounds);
}  // namespace functions_baseline

}  // namespace guardbit::tools
