#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "experiments/training/operands.hpp"

namespace guardbit::experiments::training {

/// Format of the scales of blocks, and how many a line of k elements has.
const Format& scale_format(const Encoding& encoding);
std::int64_t blocks_along(const Encoding& encoding, std::int64_t k);

/// Lines of k FP32 numbers as codes and scales, one per container: MXFP8 as cuBLAS and Transformer
/// Engine choose scales (MxMode::rceil), NVFP4 as Transformer Engine does. Returns how many numbers
/// other than zero became zero.
std::int64_t quantise_blocks(const Encoding& encoding, const float* values, std::int64_t lines,
                             std::int64_t k, std::vector<std::byte>& codes,
                             std::vector<std::byte>& scales, int threads);

}  // namespace guardbit::experiments::training
