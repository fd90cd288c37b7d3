#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "gpu/batch.hpp"
#include "gpu/image_layout.hpp"

namespace guardbit::gpu {

/// The operands of a batch as the kernel reads them, image after image. `e` is empty for dense
/// rows, the scales for rows without block scaling.
struct PackedOperands {
  int images = 0;
  std::vector<std::byte> a, b, c, e, a_scale, b_scale;
};
PackedOperands pack(const TensorCoreInstruction& row, const ImageLayout& layout,
                    const Batch& batch);

/// Reads batch.d from images that the kernel wrote.
void unpack_results(const TensorCoreInstruction& row, const ImageLayout& layout,
                    const std::vector<std::byte>& images, Batch& batch);

/// The four metadata bits of a group whose stored values have these positions.
unsigned metadata_bits(const SparseGroup& group, const std::uint8_t* positions);

}  // namespace guardbit::gpu
