#include "gpu/operands/tcgen05_layout.hpp"

#include <string>

#include "formats/support/error.hpp"
#include "gpu/operands/register_words.hpp"

namespace guardbit::gpu::tcgen05 {

namespace {

using Offsets = std::vector<std::int64_t>;

/// Bit offset of a place in an image of `columns` columns.
std::int64_t image_bit(const TensorMemoryPlace& place, int columns) {
  return std::int64_t{place.lane} * columns * column_bits + place.bit;
}

/// A in tensor memory is packed without padding. FP6 and FP4 of the f8f6f4 kinds are refused: PTX
/// ISA only draws where their bits lie in a byte of tensor memory, and no second source says it.
void layout_a(const TensorCoreInstruction& instruction, ImageLayout& layout) {
  const int container = container_bits(instruction.stored_k()), bits = word_bits(instruction.a);
  if (instruction.a_from_tensor_memory && bits < container)
    throw formats::Error(std::string(instruction.name),
                         "no known layout of its A in tensor memory");
  layout.a_bytes = (instruction.a_from_tensor_memory ? lanes : instruction.m) * row_bytes;
  for (int r = 0; r < instruction.m; ++r)
    for (int k = 0; k < instruction.stored_k(); ++k)
      layout.a.push_back(
          instruction.a_from_tensor_memory
              ? image_bit({lane_of_row(instruction.m, r), k * container},
                          row_bytes * 8 / column_bits)
              : shared_bit(instruction.m, container, bits, instruction.a_column_major, r, k));
}

/// FP16 accumulators lie in the lower halves of their columns.
Offsets accumulator(const TensorCoreInstruction& instruction) {
  Offsets offsets;
  for (int r = 0; r < instruction.m; ++r)
    for (int n = 0; n < instruction.n; ++n)
      offsets.push_back(image_bit({lane_of_row(instruction.m, r), n * column_bits}, instruction.n));
  return offsets;
}

void layout_metadata(const TensorCoreInstruction& instruction, ImageLayout& layout) {
  const int container = container_bits(instruction.stored_k()),
            groups = instruction.stored_k() / sparse_group(instruction).stored;
  for (int r = 0; r < instruction.m; ++r)
    for (int group = 0; group < groups; ++group)
      layout.e.push_back(
          image_bit(metadata_place(instruction.m, container, r, group, instruction.selector),
                    metadata_columns));
  layout.e_bytes = lanes * metadata_columns * column_bits / 8;
}

void layout_scales(const TensorCoreInstruction& instruction, ImageLayout& layout) {
  const int a_columns = scale_columns(instruction.m), b_columns = scale_columns(instruction.n),
            scale_lanes = lanes / 4;
  for (int r = 0; r < instruction.m; ++r)
    for (int s = 0; s < instruction.scale.count; ++s)
      layout.a_scale.push_back(image_bit(scale_place(r, s), a_columns));
  for (int s = 0; s < instruction.scale.count; ++s)
    for (int n = 0; n < instruction.n; ++n)
      layout.b_scale.push_back(image_bit(scale_place(n, s), b_columns));
  layout.a_scale_bytes = scale_lanes * a_columns * column_bits / 8;
  layout.b_scale_bytes = scale_lanes * b_columns * column_bits / 8;
}

}  // namespace

ImageLayout layout_images(const TensorCoreInstruction& instruction) {
  const int container = container_bits(instruction.stored_k());
  ImageLayout layout{};
  layout.executions_per_image = 1;
  layout_a(instruction, layout);
  for (int k = 0; k < instruction.k; ++k)
    for (int n = 0; n < instruction.n; ++n)
      layout.b.push_back(shared_bit(instruction.n, container, word_bits(instruction.b),
                                    instruction.b_row_major, n, k));
  layout.b_bytes = instruction.n * row_bytes * (instruction.sparse ? 2 : 1);
  layout.c = layout.d = accumulator(instruction);
  layout.c_bytes = layout.d_bytes = lanes * instruction.n * column_bits / 8;
  if (instruction.sparse) layout_metadata(instruction, layout);
  if (instruction.scale.count != 0) layout_scales(instruction, layout);
  return layout;
}

}  // namespace guardbit::gpu::tcgen05
