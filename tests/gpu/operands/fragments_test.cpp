// Where the operands of the warp-level instructions lie in registers, against the formulas of the
// PTX ISA ("Matrix Fragments for mma", "Register Fragments for wgmma") written out here shape by
// shape.

#include <string>
#include <string_view>
#include <vector>

#include "gpu/operands/image_layout.hpp"
#include "gpu/operands/register_words.hpp"
#include "tests/catch.hpp"

namespace {

using namespace guardbit::gpu;

struct Place {
  int row, column;
  bool operator==(const Place&) const = default;
};

/// Compares a map from element to bit offset with a formula from (lane, element in the lane) to
/// matrix place.
template <class Formula>
void require_places(const std::vector<std::int64_t>& offsets, int columns, int bits, int bytes,
                    int lanes, Formula formula) {
  const int lane_bits = bytes * 8 / lanes;
  for (std::size_t at = 0; at < offsets.size(); ++at) {
    const auto offset = static_cast<int>(offsets[at]);
    const int lane = offset / lane_bits, i = offset % lane_bits / bits;
    const Place expected = formula(lane, i);
    const Place place{static_cast<int>(at) / columns, static_cast<int>(at) % columns};
    INFO("lane " << lane << " element " << i << " row " << place.row << " column " << place.column);
    REQUIRE(place == expected);
  }
}

template <class A, class B, class C>
void require_fragments(const std::string& name, A a, B b, C c) {
  INFO(name);
  const TensorCoreInstruction* instruction = find_plain(name);
  REQUIRE(instruction != nullptr);
  const ImageLayout layout = layout_images(*instruction);
  require_places(layout.a, instruction->k, word_bits(instruction->a), layout.a_bytes, 32, a);
  require_places(layout.b, instruction->n, word_bits(instruction->b), layout.b_bytes, 32, b);
  require_places(layout.c, instruction->n, word_bits(instruction->c), layout.c_bytes, 32, c);
  require_places(layout.d, instruction->n, word_bits(instruction->d), layout.d_bytes, 32, c);
}

int group(int lane) { return lane >> 2; }
int in_group(int lane) { return lane % 4; }

Place accumulator(int lane, int i) {
  return {i < 2 ? group(lane) : group(lane) + 8, in_group(lane) * 2 + (i & 1)};
}
Place accumulator_of_eight_rows(int lane, int i) { return {group(lane), in_group(lane) * 2 + i}; }

}  // namespace

TEST_CASE("fragments of 16-bit operands are those of the PTX ISA") {
  require_fragments(
      "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32",
      [](int lane, int i) {
        const bool upper = i < 2 || (i >= 4 && i < 6);
        return Place{upper ? group(lane) : group(lane) + 8,
                     in_group(lane) * 2 + (i & 1) + (i < 4 ? 0 : 8)};
      },
      [](int lane, int i) {
        return Place{in_group(lane) * 2 + (i & 1) + (i < 2 ? 0 : 8), group(lane)};
      },
      accumulator);
  require_fragments(
      "mma.sync.aligned.m16n8k8.row.col.f16.f16.f16.f16",
      [](int lane, int i) {
        return Place{i < 2 ? group(lane) : group(lane) + 8, in_group(lane) * 2 + (i & 1)};
      },
      [](int lane, int i) {
        return Place{in_group(lane) * 2 + i, group(lane)};
      },
      accumulator);
}

TEST_CASE("fragments of TF32 and FP64 operands are those of the PTX ISA") {
  require_fragments(
      "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32",
      [](int lane, int i) {
        return Place{i == 0 || i == 2 ? group(lane) : group(lane) + 8,
                     in_group(lane) + (i < 2 ? 0 : 4)};
      },
      [](int lane, int i) {
        return Place{in_group(lane) + (i == 0 ? 0 : 4), group(lane)};
      },
      accumulator);
  require_fragments(
      "mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64",
      [](int lane, int) {
        return Place{group(lane), in_group(lane)};
      },
      [](int lane, int) {
        return Place{in_group(lane), group(lane)};
      },
      accumulator_of_eight_rows);
  require_fragments(
      "mma.sync.aligned.m16n8k16.row.col.f64.f64.f64.f64",
      [](int lane, int i) {
        return Place{i % 2 == 0 ? group(lane) : group(lane) + 8, i / 2 * 4 + in_group(lane)};
      },
      [](int lane, int i) {
        return Place{i * 4 + in_group(lane), group(lane)};
      },
      accumulator);
}

TEST_CASE("fragments of integer and one-bit operands are those of the PTX ISA") {
  require_fragments(
      "mma.sync.aligned.m8n8k16.row.col.s32.s8.s8.s32",
      [](int lane, int i) {
        return Place{group(lane), in_group(lane) * 4 + i};
      },
      [](int lane, int i) {
        return Place{in_group(lane) * 4 + i, group(lane)};
      },
      accumulator_of_eight_rows);
  require_fragments(
      "mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32",
      [](int lane, int i) {
        const bool upper = i < 4 || (i >= 8 && i < 12);
        return Place{upper ? group(lane) : group(lane) + 8,
                     in_group(lane) * 4 + (i & 3) + (i < 8 ? 0 : 16)};
      },
      [](int lane, int i) {
        return Place{in_group(lane) * 4 + (i & 3) + (i < 4 ? 0 : 16), group(lane)};
      },
      accumulator);
  require_fragments(
      "mma.sync.aligned.m16n8k64.row.col.s32.s4.s4.s32",
      [](int lane, int i) {
        const bool upper = i < 8 || (i >= 16 && i < 24);
        return Place{upper ? group(lane) : group(lane) + 8,
                     in_group(lane) * 8 + (i & 7) + (i < 16 ? 0 : 32)};
      },
      [](int lane, int i) {
        return Place{in_group(lane) * 8 + (i & 7) + (i < 8 ? 0 : 32), group(lane)};
      },
      accumulator);
  require_fragments(
      "mma.sync.aligned.m16n8k256.row.col.s32.b1.b1.s32.and.popc",
      [](int lane, int i) {
        const bool upper = i < 32 || (i >= 64 && i < 96);
        return Place{upper ? group(lane) : group(lane) + 8,
                     in_group(lane) * 32 + (i & 31) + (i < 64 ? 0 : 128)};
      },
      [](int lane, int i) {
        return Place{in_group(lane) * 32 + (i & 31) + (i < 32 ? 0 : 128), group(lane)};
      },
      accumulator);
}

TEST_CASE("the quad-pair instruction's fragments are those of the PTX ISA") {
  // Four multiplications side by side: lanes 4q .. 4q+3 and 16+4q .. 16+4q+3 hold the q-th.
  const auto require_quads = [](const std::string& layouts, const std::string& types, auto a,
                                auto b, auto c) {
    const std::string name = "mma.sync.aligned.m8n8k4." + layouts + "." + types;
    INFO(name);
    const TensorCoreInstruction* instruction = find_plain(name);
    REQUIRE(instruction != nullptr);
    const ImageLayout layout = layout_images(*instruction);
    REQUIRE(layout.executions_per_image == 4);
    const auto in_quad = [](auto formula, int rows) {
      return [=](int lane, int i) {
        const Place place = formula(lane, i);
        return Place{place.row + lane % 16 / 4 * rows, place.column};
      };
    };
    require_places(layout.a, 4, 16, layout.a_bytes, 32, in_quad(a, 8));
    require_places(layout.b, 8, 16, layout.b_bytes, 32, in_quad(b, 4));
    require_places(layout.c, 8, word_bits(instruction->c), layout.c_bytes, 32, in_quad(c, 8));
  };
  const auto half = [](int lane) { return lane < 16 ? 0 : 4; };
  const auto a_row = [=](int lane, int i) { return Place{lane % 4 + half(lane), i}; };
  const auto a_column = [=](int lane, int i) { return Place{i % 4 + half(lane), lane % 4}; };
  const auto b_row = [=](int lane, int i) { return Place{lane % 4, i + half(lane)}; };
  const auto b_column = [=](int lane, int i) { return Place{i, lane % 4 + half(lane)}; };
  const auto c16 = [=](int lane, int i) { return Place{lane % 4 + half(lane), i}; };
  const auto c32 = [=](int lane, int i) {
    return Place{(lane & 1) + (i & 2) + half(lane), (i & 4) + (lane & 2) + (i & 1)};
  };
  require_quads("row.col", "f16.f16.f16.f16", a_row, b_column, c16);
  require_quads("col.row", "f16.f16.f16.f16", a_column, b_row, c16);
  require_quads("row.row", "f32.f16.f16.f32", a_row, b_row, c32);
  require_quads("col.col", "f32.f16.f16.f32", a_column, b_column, c32);
}

TEST_CASE("accumulators of wgmma are those of the PTX ISA") {
  for (const char* name : {"wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16",
                           "wgmma.mma_async.sync.aligned.m64n32k16.f16.f16.f16",
                           "wgmma.mma_async.sync.aligned.m64n256k32.s32.s8.s8"}) {
    INFO(name);
    const TensorCoreInstruction* instruction = find_plain(name);
    REQUIRE(instruction != nullptr);
    const ImageLayout layout = layout_images(*instruction);
    require_places(layout.d, instruction->n, word_bits(instruction->d), layout.d_bytes, 128,
                   [](int lane, int i) {
                     return Place{lane / 32 * 16 + lane % 32 / 4 + (i / 2 % 2) * 8,
                                  i / 4 * 8 + lane % 4 * 2 + i % 2};
                   });
  }
}

TEST_CASE("every operand of every instruction has its own bits in the image") {
  for (const std::string_view arch : wrapped_architectures()) {
    for (const TensorCoreInstruction& instruction : tensor_core_instructions(arch)) {
      if (instruction.unit == Unit::tcgen05)
        continue;  // tcgen05_layout_test.cpp: with bits between
      INFO(std::string(arch) << " " << std::string(instruction.name) << " "
                             << std::string(instruction.variant));
      const ImageLayout layout = layout_images(instruction);
      const auto require_bijection = [](const std::vector<std::int64_t>& offsets, int bits,
                                        int padding, int bytes) {
        std::vector<bool> seen(static_cast<std::size_t>(bytes * 8 / bits));
        std::int64_t twice = 0, outside = 0;
        for (const std::int64_t offset : offsets) {
          if (offset < 0 || offset % bits != padding || offset / 8 >= bytes) {
            ++outside;
            continue;
          }
          const auto at = static_cast<std::size_t>(offset / bits);
          twice += seen[at];
          seen[at] = true;
        }
        REQUIRE(outside == 0);
        REQUIRE(twice == 0);
        REQUIRE(bytes % 16 == 0);  // the kernels move vectors
      };
      // Only lines of a swizzle that are longer than the operand leave bits unused.
      const auto require_full = [](const std::vector<std::int64_t>& offsets, int bits, int bytes) {
        REQUIRE(static_cast<std::int64_t>(offsets.size()) * bits == std::int64_t{bytes} * 8);
      };
      const int a_bits = operand_bits(instruction, instruction.a),
                b_bits = operand_bits(instruction, instruction.b);
      require_bijection(layout.a, a_bits, padding_below(instruction, instruction.a),
                        layout.a_bytes);
      require_bijection(layout.b, b_bits, padding_below(instruction, instruction.b),
                        layout.b_bytes);
      require_bijection(layout.c, word_bits(instruction.c), 0, layout.c_bytes);
      require_bijection(layout.d, word_bits(instruction.d), 0, layout.d_bytes);
      if (instruction.a_swizzle == 0) require_full(layout.a, a_bits, layout.a_bytes);
      if (instruction.b_swizzle == 0) require_full(layout.b, b_bits, layout.b_bytes);
      require_full(layout.c, word_bits(instruction.c), layout.c_bytes);
      require_full(layout.d, word_bits(instruction.d), layout.d_bytes);
      // Metadata and scales may leave lanes unused.
      if (instruction.sparse) require_bijection(layout.e, 4, 0, layout.e_bytes);
      if (instruction.scale.count == 0) continue;
      require_bijection(layout.a_scale, 8, 0, layout.a_scale_bytes);
      require_bijection(layout.b_scale, 8, 0, layout.b_scale_bytes);
    }
  }
}

TEST_CASE("scales lie in the lanes and bytes that the selectors name") {
  // PTX ISA, "Block scaling for mma.sync": lanes with %laneid % 4 of 0 and 1 (pair 0) or 2 and 3
  // (pair 1) hold the scales of A, the lane with %laneid % 4 == thread-id-b those of B.
  int scaled_forms = 0;
  for (const TensorCoreInstruction& instruction : tensor_core_instructions("sm_120a")) {
    if (instruction.scale.count == 0) continue;
    INFO(std::string(instruction.name) << " " << std::string(instruction.variant));
    ++scaled_forms;
    const ImageLayout layout = layout_images(instruction);
    const auto& ids = instruction.scale.ids;
    for (std::size_t at = 0; at < layout.a_scale.size(); ++at) {
      const auto bit = static_cast<int>(layout.a_scale[at]), lane = bit / 32;
      const auto r = static_cast<int>(at) / instruction.scale.count,
                 s = static_cast<int>(at) % instruction.scale.count;
      REQUIRE(r == group(lane) + (lane % 2 == 0 ? 0 : 8));
      REQUIRE(in_group(lane) / 2 == ids.pair_a);
      REQUIRE(bit % 32 / 8 == ids.byte_a + s);
    }
    for (std::size_t at = 0; at < layout.b_scale.size(); ++at) {
      const auto bit = static_cast<int>(layout.b_scale[at]), lane = bit / 32;
      REQUIRE(static_cast<int>(at) % instruction.n == group(lane));
      REQUIRE(in_group(lane) == ids.lane_b);
      REQUIRE(bit % 32 / 8 == ids.byte_b + static_cast<int>(at) / instruction.n);
    }
  }
  REQUIRE(scaled_forms > 60);
}

TEST_CASE("FP6 lies in the low bits of its byte and FP4 in the middle, or packed") {
  const auto table = tensor_core_instructions("sm_120a");
  const TensorCoreInstruction* mixed =
      find_plain(table, "mma.sync.aligned.m16n8k32.row.col.kind::f8f6f4.f32.e2m1.e3m2.f32");
  REQUIRE(mixed != nullptr);
  const ImageLayout layout = layout_images(*mixed);
  REQUIRE(layout.a_bytes == 16 * 32);
  REQUIRE(layout.a[0] == 2);
  REQUIRE(layout.a[1] == 10);
  REQUIRE(layout.b[0] == 0);
  REQUIRE(layout.b[8] == 8);  // the second k of column 0
  const TensorCoreInstruction* packed = find_plain(
      table,
      "mma.sync.aligned.m16n8k64.row.col.kind::mxf4.block_scale.scale_vec::2X.f32.e2m1.e2m1.f32.ue8m0");
  REQUIRE(packed != nullptr);
  require_places(layout_images(*packed).a, 64, 4, layout_images(*packed).a_bytes, 32,
                 [](int lane, int i) {
                   const bool upper = i < 8 || (i >= 16 && i < 24);
                   return Place{upper ? group(lane) : group(lane) + 8,
                                in_group(lane) * 8 + (i & 7) + (i < 16 ? 0 : 32)};
                 });
}
