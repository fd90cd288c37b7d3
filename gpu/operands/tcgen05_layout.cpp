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
void layout_a(const TensorCoreInstruction& row, ImageLayout& layout) {
  const int container = container_bits(row.stored_k()), bits = word_bits(row.a);
  if (row.a_from_tensor_memory && bits < container)
    throw formats::Error(std::string(row.name), "no known layout of its A in tensor memory");
  layout.a_bytes = (row.a_from_tensor_memory ? lanes : row.m) * row_bytes;
  for (int r = 0; r < row.m; ++r)
    for (int k = 0; k < row.stored_k(); ++k)
      layout.a.push_back(
          row.a_from_tensor_memory
              ? image_bit({lane_of_row(row.m, r), k * container}, row_bytes * 8 / column_bits)
              : shared_bit(row.m, container, bits, row.a_column_major, r, k));
}

/// FP16 accumulators lie in the lower halves of their columns.
Offsets accumulator(const TensorCoreInstruction& row) {
  Offsets offsets;
  for (int r = 0; r < row.m; ++r)
    for (int n = 0; n < row.n; ++n)
      offsets.push_back(image_bit({lane_of_row(row.m, r), n * column_bits}, row.n));
  return offsets;
}

void layout_metadata(const TensorCoreInstruction& row, ImageLayout& layout) {
  const int container = container_bits(row.stored_k()),
            groups = row.stored_k() / sparse_group(row).stored;
  for (int r = 0; r < row.m; ++r)
    for (int group = 0; group < groups; ++group)
      layout.e.push_back(
          image_bit(metadata_place(row.m, container, r, group, row.selector), metadata_columns));
  layout.e_bytes = lanes * metadata_columns * column_bits / 8;
}

void layout_scales(const TensorCoreInstruction& row, ImageLayout& layout) {
  const int a_columns = scale_columns(row.m), b_columns = scale_columns(row.n),
            scale_lanes = lanes / 4;
  for (int r = 0; r < row.m; ++r)
    for (int s = 0; s < row.scale.count; ++s)
      layout.a_scale.push_back(image_bit(scale_place(r, s), a_columns));
  for (int s = 0; s < row.scale.count; ++s)
    for (int n = 0; n < row.n; ++n)
      layout.b_scale.push_back(image_bit(scale_place(n, s), b_columns));
  layout.a_scale_bytes = scale_lanes * a_columns * column_bits / 8;
  layout.b_scale_bytes = scale_lanes * b_columns * column_bits / 8;
}

}  // namespace

ImageLayout layout_images(const TensorCoreInstruction& row) {
  const int container = container_bits(row.stored_k());
  ImageLayout layout{};
  layout.executions_per_image = 1;
  layout_a(row, layout);
  for (int k = 0; k < row.k; ++k)
    for (int n = 0; n < row.n; ++n)
      layout.b.push_back(shared_bit(row.n, container, word_bits(row.b), row.b_row_major, n, k));
  layout.b_bytes = row.n * row_bytes * (row.sparse ? 2 : 1);
  layout.c = layout.d = accumulator(row);
  layout.c_bytes = layout.d_bytes = lanes * row.n * column_bits / 8;
  if (row.sparse) layout_metadata(row, layout);
  if (row.scale.count != 0) layout_scales(row, layout);
  return layout;
}

}  // namespace guardbit::gpu::tcgen05
