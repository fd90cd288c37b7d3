#include "gpu/image_layout.hpp"

#include <string>

#include "formats/catalogue.hpp"
#include "formats/error.hpp"
#include "gpu/batch.hpp"
#include "gpu/fragments.hpp"
#include "gpu/tcgen05_layout.hpp"
#include "gpu/words.hpp"

namespace guardbit::gpu {

namespace {

using Offsets = std::vector<std::int64_t>;

int register_bits(const TensorCoreInstruction& row) { return row.a == formats::fp64 ? 64 : 32; }

bool quad_pairs(const TensorCoreInstruction& row) {
  return row.unit == Unit::mma && row.a == formats::fp16 && row.m == 8;
}

/// Places every element that `locate(lane, reg, element)` names. Returns the image's bytes.
template <class Locate>
int place(Offsets& offsets, const TensorCoreInstruction& row, const Format& type, int rows,
          int columns, int executions, int lanes, Locate locate) {
  offsets.assign(element_index(rows, columns, executions, 0, 0), -1);
  const int width = register_bits(row), per_register = width / word_bits(type);
  const int registers = executions * rows * columns / lanes / per_register;
  for (int lane = 0; lane < lanes; ++lane)
    for (int reg = 0; reg < registers; ++reg)
      for (int element = 0; element < per_register; ++element) {
        const Coordinates at = locate(lane, reg, element);
        auto& offset = offsets.at(element_index(rows, columns, at.execution, at.row, at.column));
        if (offset >= 0)
          throw formats::Error(std::string(row.name), "its fragment map names an element twice");
        offset = (std::int64_t{lane} * registers + reg) * width + element * word_bits(type);
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

void layout_mma(const TensorCoreInstruction& row, ImageLayout& layout) {
  const int per_a = register_bits(row) / word_bits(row.a),
            per_c = register_bits(row) / word_bits(row.c),
            per_d = register_bits(row) / word_bits(row.d);
  if (quad_pairs(row)) {
    layout.executions_per_image = 4;
    layout.a_bytes = place(layout.a, row, row.a, 8, 4, 4, 32, [&](int lane, int reg, int i) {
      return quad_a_fragment(row.a_column_major, lane, reg * 2 + i);
    });
    layout.b_bytes = place(layout.b, row, row.b, 4, 8, 4, 32, [&](int lane, int reg, int i) {
      return quad_b_fragment(row.b_row_major, lane, reg * 2 + i);
    });
    const auto accumulator = [](const Format& type) {
      return [wide = type == formats::fp32](int lane, int reg, int i) {
        return wide ? quad_f32_accumulator_fragment(lane, reg)
                    : quad_f16_accumulator_fragment(lane, reg * 2 + i);
      };
    };
    layout.c_bytes = place(layout.c, row, row.c, 8, 8, 4, 32, accumulator(row.c));
    layout.d_bytes = place(layout.d, row, row.d, 8, 8, 4, 32, accumulator(row.d));
    return;
  }
  layout.a_bytes =
      place(layout.a, row, row.a, row.m, row.stored_k(), 1, 32,
            [&](int lane, int reg, int i) { return a_fragment(row.m, per_a, lane, reg, i); });
  layout.b_bytes = place(layout.b, row, row.b, row.k, row.n, 1, 32,
                         [&](int lane, int reg, int i) { return b_fragment(per_a, lane, reg, i); });
  layout.c_bytes = place(layout.c, row, row.c, row.m, row.n, 1, 32, [&](int lane, int reg, int i) {
    return accumulator_fragment(row.m, lane, reg * per_c + i);
  });
  layout.d_bytes = place(layout.d, row, row.d, row.m, row.n, 1, 32, [&](int lane, int reg, int i) {
    return accumulator_fragment(row.m, lane, reg * per_d + i);
  });
}

/// Where element k of row `r` (of A, or column of B) lies in shared memory.
std::int64_t shared_bit(const Format& type, int rows, int r, int k, bool k_strided) {
  const int width = word_bits(type);
  if (k_strided) return std::int64_t{strided_core_matrix_offset(rows, r * width / 8, k)} * 8;
  return std::int64_t{core_matrix_offset(rows, r, k * width / 8)} * 8 + k * width % 8;
}

void layout_wgmma(const TensorCoreInstruction& row, ImageLayout& layout) {
  const auto warp_row = [](int lane, Coordinates at) {
    return Coordinates{at.row + lane / 32 * 16, at.column};
  };
  if (row.a_from_registers) {
    layout.a_bytes =
        place(layout.a, row, row.a, row.m, row.stored_k(), 1, 128, [&](int lane, int reg, int i) {
          return warp_row(lane, a_fragment(16, 32 / word_bits(row.a), lane % 32, reg, i));
        });
  } else {
    for (int r = 0; r < row.m; ++r)
      for (int k = 0; k < row.stored_k(); ++k)
        layout.a.push_back(shared_bit(row.a, row.m, r, k, row.a_column_major));
    layout.a_bytes = row.m * row.stored_k() * word_bits(row.a) / 8;
  }
  for (int k = 0; k < row.k; ++k)
    for (int n = 0; n < row.n; ++n)
      layout.b.push_back(shared_bit(row.b, row.n, n, k, row.b_row_major));
  layout.b_bytes = row.n * row.k * word_bits(row.b) / 8;
  layout.c_bytes = place(layout.c, row, row.c, row.m, row.n, 1, 128, [&](int lane, int reg, int i) {
    return warp_row(lane, accumulator_fragment(16, lane % 32, reg * (32 / word_bits(row.c)) + i));
  });
  layout.d = layout.c;
  layout.d_bytes = layout.c_bytes;
}

void layout_metadata(const TensorCoreInstruction& row, ImageLayout& layout) {
  const int groups = row.stored_k() / sparse_group(row).stored;
  for (int r = 0; r < row.m; ++r)
    for (int g = 0; g < groups; ++g) {
      const MetadataPlace place = metadata_place(word_bits(row.a), r % 16, g);
      const int lane = place.lane + row.selector * metadata_lanes(word_bits(row.a), groups);
      layout.e.push_back(std::int64_t{r / 16 * 32 + lane} * 32 + place.bit);
    }
  layout.e_bytes = (row.unit == Unit::wgmma ? 128 : 32) * 4;
}

}  // namespace

ImageLayout layout_images(const TensorCoreInstruction& row) {
  if (row.unit == Unit::tcgen05) return tcgen05::layout_images(row);
  ImageLayout layout{};
  layout.executions_per_image = 1;
  if (row.unit == Unit::mma) layout_mma(row, layout);
  if (row.unit == Unit::wgmma) layout_wgmma(row, layout);
  if (row.unit == Unit::wmma) {
    layout.a_bytes = place_dense(layout.a, row.a, row.m, row.k, row.a_column_major);
    layout.b_bytes = place_dense(layout.b, row.b, row.k, row.n, !row.b_row_major);
    layout.c_bytes = place_dense(layout.c, row.c, row.m, row.n, false);
    layout.d_bytes = place_dense(layout.d, row.d, row.m, row.n, false);
  }
  if (row.sparse) layout_metadata(row, layout);
  return layout;
}

}  // namespace guardbit::gpu
