#pragma once

#include <span>

#include "emulator/functions/function.hpp"

namespace guardbit::emulator {

/// The results of a function of FP32 numbers for arrays of equal length, by the fastest engine that
/// this CPU has. `results` may be one of the operands. NaNs have the code 0x7fffffff. Look
/// functions up once (function_catalogue.hpp), by their names: expf, tanhf, ex2.approx.ftz.f32.
void apply(const Function& function, std::span<const float> x, std::span<float> results);
void apply(const Function& function, std::span<const float> x, std::span<const float> y,
           std::span<float> results);

}  // namespace guardbit::emulator
