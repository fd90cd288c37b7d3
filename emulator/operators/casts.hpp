#pragma once

#include "emulator/operators/operator_tensor.hpp"

// Conversions of whole tensors.
namespace guardbit::emulator::operators {

/// Each element in another type, as PyTorch's copies convert on the GPU. Floating numbers are
/// rounded once to nearest even; past FP8's largest number they become a NaN (E4M3) or an infinity
/// (E5M2). Cut to integers they stop at the ends of 32 and 64 bits and wrap around below that.
Tensor converted(const Tensor& source, const formats::Format& type);

}  // namespace guardbit::emulator::operators
