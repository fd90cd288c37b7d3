#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "gpu/operands/image_layout.hpp"
#include "gpu/operands/tensor_core_batch.hpp"

// Packing of a batch into images, and unpacking of its results.
namespace guardbit::gpu {

/// The operands of a batch as the kernel reads them, image after image. `e` is empty for dense
/// instructions, the scales for those without block scaling.
struct PackedOperands {
  int images = 0;
  std::vector<std::byte> a, b, c, e, a_scale, b_scale;
};
PackedOperands pack(const TensorCoreInstruction& instruction, const ImageLayout& layout,
                    const Batch& batch);

/// batch.d as the kernel writes it, image after image.
std::vector<std::byte> pack_results(const TensorCoreInstruction& instruction,
                                    const ImageLayout& layout, const Batch& batch);

/// Reads batch.d from images that the kernel wrote.
void unpack_results(const TensorCoreInstruction& instruction, const ImageLayout& layout,
                    const std::vector<std::byte>& images, Batch& batch);

/// Metadata of lanes that the selector does not name: a valid pattern, so that reading them would
/// give wrong results but not undefined ones.
inline constexpr unsigned unused_metadata = 0x4;

/// The four metadata bits of a group whose stored values have these positions.
constexpr unsigned metadata_bits(const SparseGroup& group, const std::uint8_t* positions) {
  // One TF32 value of two stands for a pair of 16-bit halves: positions 0, 1 or 2, 3 (PTX ISA,
  // sparse matrix storage).
  if (group.positions == 2) return positions[0] != 0 ? 0b1110U : 0b0100U;
  return positions[0] | (unsigned{positions[group.stored / 2]} << 2U);
}

}  // namespace guardbit::gpu
