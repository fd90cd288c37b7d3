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

int register_bits(const TensorCoreInstruction& instruction) {
  return instruction.a == formats::fp64 ? 64 : 32;
}

bool quad_pairs(const TensorCoreInstruction& instruction) {
  return instruction.unit == Unit::mma && instruction.a == formats::fp16 && instruction.m == 8;
}

/// Where the elements of an operand lie in registers.
struct RegisterShape {
  int rows, columns, executions, lanes;
  int element_bits;
  /// zero bits below an element
  int padding = 0;
};

/// Places every element that `locate(lane, reg, element)` names. Returns the image's bytes.
template <class Locate>
int place(Offsets& offsets, const TensorCoreInstruction& instruction, const RegisterShape& shape,
          Locate locate) {
  const auto [rows, columns, executions, lanes, element_bits, padding] = shape;
  offsets.assign(element_index(rows, columns, executions, 0, 0), -1);
  const int width = register_bits(instruction), per_register = width / element_bits;
  const int registers = executions * rows * columns / lanes / per_register;
  for (int lane = 0; lane < lanes; ++lane)
    for (int reg = 0; reg < registers; ++reg)
      for (int element = 0; element < per_register; ++element) {
        const Coordinates at = locate(lane, reg, element);
        auto& offset = offsets.at(element_index(rows, columns, at.execution, at.row, at.column));
        if (offset >= 0)
          throw formats::Error(std::string(instruction.name),
                               "its fragment map names an element twice");
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

RegisterShape shape_of_a(const TensorCoreInstruction& instruction, int lanes) {
  return {instruction.m,
          instruction.stored_k(),
          1,
          lanes,
          operand_bits(instruction, instruction.a),
          padding_below(instruction, instruction.a)};
}
RegisterShape shape_of_b(const TensorCoreInstruction& instruction, int lanes) {
  return {instruction.k,
          instruction.n,
          1,
          lanes,
          operand_bits(instruction, instruction.b),
          padding_below(instruction, instruction.b)};
}
RegisterShape shape_of_sums(const TensorCoreInstruction& instruction, const Format& type,
                            int lanes) {
  return {instruction.m, instruction.n, 1, lanes, word_bits(type)};
}

void layout_quad_pairs(const TensorCoreInstruction& instruction, ImageLayout& layout) {
  layout.executions_per_image = 4;
  layout.a_bytes = place(layout.a, instruction, {8, 4, 4, 32, 16}, [&](int lane, int reg, int i) {
    return quad_a_fragment(instruction.a_column_major, lane, reg * 2 + i);
  });
  layout.b_bytes = place(layout.b, instruction, {4, 8, 4, 32, 16}, [&](int lane, int reg, int i) {
    return quad_b_fragment(instruction.b_row_major, lane, reg * 2 + i);
  });
  const auto place_sums = [&](Offsets& offsets, const Format& type) {
    const bool wide = type == formats::fp32;
    return place(offsets, instruction, {8, 8, 4, 32, word_bits(type)},
                 [&](int lane, int reg, int i) {
                   return wide ? quad_f32_accumulator_fragment(lane, reg)
                               : quad_f16_accumulator_fragment(lane, reg * 2 + i);
                 });
  };
  layout.c_bytes = place_sums(layout.c, instruction.c);
  layout.d_bytes = place_sums(layout.d, instruction.d);
}

void layout_mma(const TensorCoreInstruction& instruction, ImageLayout& layout) {
  const int width = register_bits(instruction);
  layout.a_bytes =
      place(layout.a, instruction, shape_of_a(instruction, 32), [&](int lane, int reg, int i) {
        return a_fragment(instruction.m, width / operand_bits(instruction, instruction.a), lane,
                          reg, i);
      });
  layout.b_bytes =
      place(layout.b, instruction, shape_of_b(instruction, 32), [&](int lane, int reg, int i) {
        return b_fragment(width / operand_bits(instruction, instruction.b), lane, reg, i);
      });
  const auto place_sums = [&](Offsets& offsets, const Format& type) {
    const int per_register = width / word_bits(type);
    return place(offsets, instruction, shape_of_sums(instruction, type, 32),
                 [&](int lane, int reg, int i) {
                   return accumulator_fragment(instruction.m, lane, reg * per_register + i);
                 });
  };
  layout.c_bytes = place_sums(layout.c, instruction.c);
  layout.d_bytes = place_sums(layout.d, instruction.d);
}

void layout_wgmma(const TensorCoreInstruction& instruction, ImageLayout& layout) {
  const auto in_warp = [](int lane, Coordinates at) {
    return Coordinates{at.row + lane / 32 * 16, at.column};
  };
  if (instruction.a_from_registers) {
    layout.a_bytes =
        place(layout.a, instruction, shape_of_a(instruction, 128), [&](int lane, int reg, int i) {
          return in_warp(lane, a_fragment(16, 32 / word_bits(instruction.a), lane % 32, reg, i));
        });
  } else {
    const SharedOperand a = {.rows = instruction.m,
                             .k = instruction.stored_k(),
                             .bits = word_bits(instruction.a),
                             .k_strided = instruction.a_column_major,
                             .swizzle = instruction.a_swizzle};
    for (int r = 0; r < a.rows; ++r)
      for (int k = 0; k < a.k; ++k) layout.a.push_back(a.bit(r, k));
    layout.a_bytes = a.bytes();
  }
  const SharedOperand b = {.rows = instruction.n,
                           .k = instruction.k,
                           .bits = word_bits(instruction.b),
                           .k_strided = instruction.b_row_major,
                           .swizzle = instruction.b_swizzle};
  for (int k = 0; k < b.k; ++k)
    for (int n = 0; n < b.rows; ++n) layout.b.push_back(b.bit(n, k));
  layout.b_bytes = b.bytes();
  layout.c_bytes = place(
      layout.c, instruction, shape_of_sums(instruction, instruction.c, 128),
      [&](int lane, int reg, int i) {
        return in_warp(
            lane, accumulator_fragment(16, lane % 32, reg * (32 / word_bits(instruction.c)) + i));
      });
  layout.d = layout.c;
  layout.d_bytes = layout.c_bytes;
}

void layout_metadata(const TensorCoreInstruction& instruction, ImageLayout& layout) {
  const int groups = instruction.stored_k() / sparse_group(instruction).stored,
            bits = operand_bits(instruction, instruction.a);
  for (int r = 0; r < instruction.m; ++r)
    for (int g = 0; g < groups; ++g) {
      const MetadataPlace place = metadata_place(bits, r % 16, g);
      const int lane = place.lane + instruction.selector * metadata_lanes(bits, groups);
      layout.e.push_back(std::int64_t{r / 16 * 32 + lane} * 32 + place.bit);
    }
  layout.e_bytes = (instruction.unit == Unit::wgmma ? 128 : 32) * 4;
}

void layout_scales(const TensorCoreInstruction& instruction, ImageLayout& layout) {
  const auto bit = [](const ScalePlace& place) {
    return std::int64_t{place.lane} * 32 + place.bit;
  };
  for (int r = 0; r < instruction.m; ++r)
    for (int s = 0; s < instruction.scale.count; ++s)
      layout.a_scale.push_back(
          bit(a_scale_place(instruction.scale.ids.pair_a, instruction.scale.ids.byte_a, r, s)));
  for (int s = 0; s < instruction.scale.count; ++s)
    for (int n = 0; n < instruction.n; ++n)
      layout.b_scale.push_back(
          bit(b_scale_place(instruction.scale.ids.lane_b, instruction.scale.ids.byte_b, n, s)));
  layout.a_scale_bytes = layout.b_scale_bytes = 32 * 4;
}

}  // namespace

ImageLayout layout_images(const TensorCoreInstruction& instruction) {
  if (instruction.unit == Unit::tcgen05) return tcgen05::layout_images(instruction);
  ImageLayout layout{};
  layout.executions_per_image = 1;
  if (instruction.unit == Unit::mma)
    quad_pairs(instruction) ? layout_quad_pairs(instruction, layout)
                            : layout_mma(instruction, layout);
  if (instruction.unit == Unit::wgmma) layout_wgmma(instruction, layout);
  if (instruction.unit == Unit::wmma) {
    layout.a_bytes = place_dense(layout.a, instruction.a, instruction.m, instruction.k,
                                 instruction.a_column_major);
    layout.b_bytes = place_dense(layout.b, instruction.b, instruction.k, instruction.n,
                                 !instruction.b_row_major);
    layout.c_bytes = place_dense(layout.c, instruction.c, instruction.m, instruction.n, false);
    layout.d_bytes = place_dense(layout.d, instruction.d, instruction.m, instruction.n, false);
  }
  if (instruction.sparse) layout_metadata(instruction, layout);
  if (instruction.scale.count != 0) layout_scales(instruction, layout);
  return layout;
}

}  // namespace guardbit::gpu
