#pragma once

#include <cstddef>
#include <span>
#include <string_view>

// Eigen's vectorised functions of float, which ours are measured beside. The same code compiled for
// several instruction sets; a CPU must have those of the one that is called.
namespace guardbit::tools {

struct EigenFunction {
  std::string_view name;
  void (*run)(const float* x, float* results, std::size_t count);
};

namespace functions_avx512 {  // AVX-512 F, BW, DQ, VL
std::span<const EigenFunction> all();
}
namespace functions_avx2 {  // AVX2 and FMA
std::span<const EigenFunction> all();
}
namespace functions_baseline {  // what every CPU of the architecture has
std::span<const EigenFunction> all();
}

}  // namespace guardbit::tools
