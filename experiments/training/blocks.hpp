#pragma once

#include <cstdint>

#include "experiments/training/product_operands.hpp"

namespace guardbit::experiments::training {

/// Format of the scales of blocks, and how many a line of k elements has.
const Format& scale_format(const Encoding& encoding);
std::int64_t blocks_along(const Encoding& encoding, std::int64_t k);

/// Lines of k FP32 numbers as codes and scales, one per container: MXFP8 as cuBLAS and Transformer
/// Engine choose scales (MxMode::rceil), NVFP4 as Transformer Engine does.
CodedLines quantise_blocks(const Encoding& encoding, const float* values, std::int64_t lines,
                           std::int64_t k, int threads);

/// Each whole group of 16 numbers along a line through Hadamard's transform of 16 points, with
/// signs, divided by 4. The transform is orthogonal: products of two mixed operands are what they
/// were, but outliers are spread.
void mix_along(float* values, std::int64_t lines, std::int64_t k);

}  // namespace guardbit::experiments::training
