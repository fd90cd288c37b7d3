#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "experiments/training/precision.hpp"
#include "formats/format_catalogue.hpp"

namespace guardbit::experiments::training {

/// What is done to a tensor's numbers before they are rounded into the operands' format.
struct Encoding {
  Format format = formats::fp32;
  OperandScaling scaling = OperandScaling::none;
  /// of the tensor; Transformer Engine's scale and scale_inv
  float encode = 1, decode = 1;
  /// OperandScaling::nvfp4
  float tensor_amax = 0;
  // NVFP4's recipe (arXiv 2509.25149): weights share scales in squares, gradients are rounded
  // stochastically, both operands of weights' gradients are mixed along K.
  bool square_blocks = false, stochastic = false;
  std::uint64_t random_seed = 0;
};

/// Lines with scales for their blocks, and the tensor's.
struct CodedLines {
  std::vector<std::byte> codes, scales;
  float decode = 1;
  std::int64_t underflow = 0;
};

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
