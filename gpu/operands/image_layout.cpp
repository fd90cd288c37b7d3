#include "gpu/operands/image_layout.hpp"

#include <string>

#include "formats/format_catalogue.hpp"
#include "formats/support/error.hpp"
#include "gpu/operands/fragments.hpp"
#include "gpu/operands/register_words.hpp"
#include "gpu/operands/shared_operand.hpp"
#include "gpu/operands/tcgen05_layout.hpp"
#include "gpu/operands/tensor_core_batch.hpp"

namespace guardbit::gpu {

namespace {

using Offsets = std::vector<std::int64_t>;

int register_bits(const TensorCoreInstruction& row) { return row.a == formats::fp64 ? 64 : 32; }

bool quad_pairs(const TensorCoreInstruction& row) {
  return row.unit == Unit::mma && row.a == formats::fp16 && row.m == 8;
}

/// Where the elements of an operand lie in registers.
struct RegisterShape {
  int rows, columns, executions, lanes;
  int element_bits;
  int padding = 0;  ///< zero bits below an element
};

/// Places every element that `locate(lane, reg, element)` names. Returns the image's bytes.
template <class Locate>
int place(Offsets& offsets, const TensorCoreInstruction& row, const RegisterShape& shape,
          Locate locate) {
  const auto [rows, columns, executions, lanes, element_bits, padding] = shape;
  offsets.assign(element_index(rows, columns, executions, 0, 0), -1);
  const int width = register_bits(row), per_register = width / element_bits;
  const int registers = executions * rows * columns / lanes / per_register;
  for (int lane = 0; lane < lanes; ++lane)
    for (int reg = 0; reg < registers; ++reg)
      for (int element = 0; element < per_register; ++element) {
        const Coordinates at = locate(lane, reg, element);
        auto& offset = offsets.at(element_index(rows, columns, at.execution, at.row, at.column));
        if (offset >= 0)
          throw formats::Error(std::string(row.name), "its fragment map names an element twice");
        offset = (std::int64_t{lane} * registers + reg) * width + element * element_bits + padding;
      }
  return lanes * registers * width / 8;
}

int place_dense(Offsets& offsets, const Format& type, int rows, int columns, bool column_major) {
  offsets.resize(element_index(rows, columns, 1, 0, 0));
  for (int r = 0; r < rows; ++r)
    for (int c = 0; c < columns; ++c)
      offsets[element_index(rows, columns, 0, r, c)] =
          std::int64_t{column_major ? c * rows + r : r * columns + c} * word_bits(type);
  return rows * columns * word_bits(type) / 8;
}

RegisterShape shape_of_a(const TensorCoreInstruction& row, int lanes) {
  return {row.m, row.stored_k(), 1, lanes, operand_bits(row, row.a), padding_below(row, row.a)};
}
RegisterShape shape_of_b(const TensorCoreInstruction& row, int lanes) {
  return {row.k, row.n, 1, lanes, operand_bits(row, row.b), padding_below(row, row.b)};
}
RegisterShape shape_of_sums(const TensorCoreInstruction& row, const Format& type, int lanes) {
  return {row.m, row.n, 1, lanes, word_bits(type)};
}

void layout_quad_pairs(const TensorCoreInstruction& row, ImageLayout& layout) {
  layout.executions_per_image = 4;
  layout.a_bytes = place(layout.a, row, {8, 4, 4, 32, 16}, [&](int lane, int reg, int i) {
    return quad_a_fragment(row.a_column_major, lane, reg * 2 + i);
  });
  layout.b_bytes = place(layout.b, row, {4, 8, 4, 32, 16}, [&](int lane, int reg, int i) {
    return quad_b_fragment(row.b_row_major, lane, reg * 2 + i);
  });
  const auto place_sums = [&](Offsets& offsets, const Format& type) {
    const bool wide = type == formats::fp32;
    return place(offsets, row, {8, 8, 4, 32, word_bits(type)}, [&](int lane, int reg, int i) {
      return wide ? quad_f32_accumulator_fragment(lane, reg)
                  : quad_f16_accumulator_fragment(lane, reg * 2 + i);
    });
  };
  layout.c_bytes = place_sums(layout.c, row.c);
  layout.d_bytes = place_sums(layout.d, row.d);
}

void layout_mma(const TensorCoreInstruction& row, ImageLayout& layout) {
  const int width = register_bits(row);
  layout.a_bytes = place(layout.a, row, shape_of_a(row, 32), [&](int lane, int reg, int i) {
    return a_fragment(row.m, width / operand_bits(row, row.a), lane, reg, i);
  });
  layout.b_bytes = place(layout.b, row, shape_of_b(row, 32), [&](int lane, int reg, int i) {
    return b_fragment(width / operand_bits(row, row.b), lane, reg, i);
  });
  const auto place_sums = [&](Offsets& offsets, const Format& type) {
    const int per_register = width / word_bits(type);
    return place(offsets, row, shape_of_sums(row, type, 32), [&](int lane, int reg, int i) {
      return accumulator_fragment(row.m, lane, reg * per_register + i);
    });
  };
  layout.c_bytes = place_sums(layout.c, row.c);
  layout.d_bytes = place_sums(layout.d, row.d);
}

void layout_wgmma(const TensorCoreInstruction& row, ImageLayout& layout) {
  const auto warp_row = [](int lane, Coordinates at) {
    return Coordinates{at.row + lane / 32 * 16, at.column};
  };
  if (row.a_from_registers) {
    layout.a_bytes = place(layout.a, row, shape_of_a(row, 128), [&](int lane, int reg, int i) {
      return warp_row(lane, a_fragment(16, 32 / word_bits(row.a), lane % 32, reg, i));
    });
  } else {
    const SharedOperand a = {.rows = row.m,
                             .k = row.stored_k(),
                             .bits = word_bits(row.a),
                             .k_strided = row.a_column_major,
                             .swizzle = row.a_swizzle};
    for (int r = 0; r < a.rows; ++r)
      for (int k = 0; k < a.k; ++k) layout.a.push_back(a.bit(r, k));
    layout.a_bytes = a.bytes();
  }
  const SharedOperand b = {.rows = row.n,
                           .k = row.k,
                           .bits = word_bits(row.b),
                           .k_strided = row.b_row_major,
                           .swizzle = row.b_swizzle};
  for (int k = 0; k < b.k; ++k)
    for (int n = 0; n < b.rows; ++n) layout.b.push_back(b.bit(n, k));
  layout.b_bytes = b.bytes();
  layout.c_bytes =
      place(layout.c, row, shape_of_sums(row, row.c, 128), [&](int lane, int reg, int i) {
        return warp_row(lane,
                        accumulator_fragment(16, lane % 32, reg * (32 / word_bits(row.c)) + i));
      });
  layout.d = layout.c;
  layout.d_bytes = layout.c_bytes;
}

void layout_metadata(const TensorCoreInstruction& row, ImageLayout& layout) {
  const int groups = row.stored_k() / sparse_group(row).stored, bits = operand_bits(row, row.a);
  for (int r = 0; r < row.m; ++r)
    for (int g = 0; g < groups; ++g) {
      const MetadataPlace place = metadata_place(bits, r % 16, g);
      const int lane = place.lane + row.selector * metadata_lanes(bits, groups);
      layout.e.push_back(std::int64_t{r / 16 * 32 + lane} * 32 + place.bit);
    }
  layout.e_bytes = (row.unit == Unit::wgmma ? 128 : 32) * 4;
}

void layout_scales(const TensorCoreInstruction& row, ImageLayout& layout) {
  const auto bit = [](const ScalePlace& place) {
    return std::int64_t{place.lane} * 32 + place.bit;
  };
  for (int r = 0; r < row.m; ++r)
    for (int s = 0; s < row.scale.count; ++s)
      layout.a_scale.push_back(
          bit(a_scale_place(row.scale.ids.pair_a, row.scale.ids.byte_a, r, s)));
  for (int s = 0; s < row.scale.count; ++s)
    for (int n = 0; n < row.n; ++n)
      layout.b_scale.push_back(
          bit(b_scale_place(row.scale.ids.lane_b, row.scale.ids.byte_b, n, s)));
  layout.a_scale_bytes = layout.b_scale_bytes = 32 * 4;
}

}  // namespace

ImageLayout layout_images(const TensorCoreInstruction& row) {
  if (row.unit == Unit::tcgen05) return tcgen05::layout_images(row);
  ImageLayout layout{};
  layout.executions_per_image = 1;
  if (row.unit == Unit::mma)
    quad_pairs(row) ? layout_quad_pairs(row, layout) : layout_mma(row, layout);
  if (row.unit == Unit::wgmma) layout_wgmma(row, layout);
  if (row.unit == Unit::wmma) {
    layout.a_bytes = place_dense(layout.a, row.a, row.m, row.k, row.a_column_major);
    layout.b_bytes = place_dense(layout.b, row.b, row.k, row.n, !row.b_row_major);
    layout.c_bytes = place_dense(layout.c, row.c, row.m, row.n, false);
    layout.d_bytes = place_dense(layout.d, row.d, row.m, row.n, false);
  }
  if (row.sparse) layout_metadata(row, layout);
  if (row.scale.count != 0) layout_scales(row, layout);
  return layout;
}

}  // namespace guardbit::gpu
