#pragma once

#include "emulator/functions/cuda/cuda_double_functions.hpp"
#include "emulator/functions/cuda/cuda_powers.hpp"
#include "emulator/functions/numbers/host_number.hpp"

// x^y of numbers of FP32 and FP64.
namespace guardbit::emulator::operators {

inline float power_of(float x, float y) {
  return cuda_math::powf(HostNumber(x), HostNumber(y)).number();
}
inline double power_of(double x, double y) { return cuda_math::pow(x, y); }

}  // namespace guardbit::emulator::operators
