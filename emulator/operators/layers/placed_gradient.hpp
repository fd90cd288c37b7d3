#pragma once

#include <array>
#include <cstdint>

#include "emulator/operators/operator_tensor.hpp"

// cuDNN's gradients of images by one product for each place of the filter (dgrad2d_alg1_1).
namespace guardbit::emulator::operators {

/// The gradient of `input` [images, channels, rows, columns], which counts for its type and shape
/// alone. The output's pixels (`gradient` [images, outputs, rows, columns]) are taken in chunks of
/// `chunk` neighbours, row by row. Of each chunk the filter's places follow each other: for each
/// place a chain of FP32 multiply-adds over the outputs is added to what the chunk has given a
/// pixel of the image so far. The chunks' sums are added in ascending order, and rounded once.
/// Found from results of an H200 (docs/ATLAS.md). UnknownShape where shapes do not fit. `threads`:
/// of the CPU; 0: all.
Tensor placed_data_gradient(const Tensor& gradient, const Tensor& input, const Tensor& weight,
                            std::array<std::int64_t, 2> stride, std::array<std::int64_t, 2> padding,
                            std::int64_t chunk, int threads = 0);

}  // namespace guardbit::emulator::operators
