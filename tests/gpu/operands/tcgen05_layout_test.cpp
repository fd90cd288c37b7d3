#include "gpu/operands/tcgen05_layout.hpp"

#include <algorithm>
#include <string>
#include <vector>

#include "formats/support/error.hpp"
#include "gpu/operands/image_staging.hpp"
#include "gpu/operands/packing.hpp"
#include "gpu/operands/register_words.hpp"
#include "tests/catch.hpp"

namespace {

using namespace guardbit::gpu;
namespace formats = guardbit::formats;

TensorCoreInstruction make_instruction(const Format& a, const Format& b, const Format& d, int m,
                                       int n, int k, bool sparse) {
  TensorCoreInstruction instruction{};
  instruction.name = "tcgen05.mma";
  instruction.unit = Unit::tcgen05;
  instruction.m = m, instruction.n = n, instruction.k = sparse ? 2 * k : k;
  instruction.a = a, instruction.b = b, instruction.c = instruction.d = d;
  instruction.sparse = sparse;
  instruction.byte_containers = k == 32;
  return instruction;
}

/// Every kind and element width with every place that its operands can take.
std::vector<TensorCoreInstruction> all_instructions() {
  using namespace formats;
  std::vector<TensorCoreInstruction> instructions;
  for (const bool sparse : {false, true})
    for (const int m : {64, 128})
      for (const int n : {8, 16, 256}) {
        const auto add = [&](const Format& a, const Format& b, const Format& d, int k) {
          instructions.push_back(make_instruction(a, b, d, m, n, k, sparse));
        };
        add(fp16, fp16, fp32, 16);
        add(bf16, bf16, fp32, 16);
        add(fp16, fp16, fp16, 16);
        add(tf32, tf32, fp32, 8);
        add(e4m3, e5m2, fp32, 32);
        add(e3m2, e2m1, fp16, 32);
        add(e2m1, e2m3, fp32, 32);
        add(int8, uint8, int32, 32);
        add(e2m1, e2m1, fp32, 64);
      }
  const std::vector<TensorCoreInstruction> plain = instructions;
  for (TensorCoreInstruction instruction : plain) {
    const int container = tcgen05::container_bits(instruction.stored_k());
    if (word_bits(instruction.a) == container) {
      instruction.a_from_tensor_memory = true;
      instructions.push_back(instruction);
      instruction.a_from_tensor_memory = false;
    }
    if (container == 8 || container == 16) {
      instruction.a_column_major = true;
      instruction.b_row_major = instruction.n >= 16;
      instructions.push_back(instruction);
      instruction.a_column_major = instruction.b_row_major = false;
    }
    if (instruction.sparse && container >= 16) {
      instruction.selector = 1;
      instructions.push_back(instruction);
    }
  }
  return instructions;
}

/// Elements of `width` bits lie inside the image and apart from each other.
void require_disjoint(std::vector<std::int64_t> offsets, int width, int bytes) {
  std::sort(offsets.begin(), offsets.end());
  REQUIRE(offsets.front() >= 0);
  REQUIRE(offsets.back() + width <= std::int64_t{bytes} * 8);
  for (std::size_t i = 1; i < offsets.size(); ++i) REQUIRE(offsets[i] - offsets[i - 1] >= width);
}

std::string description(const TensorCoreInstruction& instruction) {
  return "m" + std::to_string(instruction.m) + "n" + std::to_string(instruction.n) + "k" +
         std::to_string(instruction.k) + " A of " + std::to_string(word_bits(instruction.a)) +
         " bits";
}

}  // namespace

TEST_CASE("tcgen05 images hold every element once") {
  std::vector<TensorCoreInstruction> tested = all_instructions();
  for (const TensorCoreInstruction& instruction : tensor_core_instructions("sm_100"))
    if (instruction.unit == Unit::tcgen05) tested.push_back(instruction);
  for (const TensorCoreInstruction& instruction : tested) {
    INFO(description(instruction));
    const ImageLayout layout = layout_images(instruction);
    const auto elements = [](int rows, int columns) {
      return static_cast<std::size_t>(rows) * static_cast<std::size_t>(columns);
    };
    REQUIRE(layout.executions_per_image == 1);
    REQUIRE(layout.a.size() == elements(instruction.m, instruction.stored_k()));
    REQUIRE(layout.b.size() == elements(instruction.k, instruction.n));
    REQUIRE(layout.c.size() == elements(instruction.m, instruction.n));
    require_disjoint(layout.a, word_bits(instruction.a), layout.a_bytes);
    require_disjoint(layout.b, word_bits(instruction.b), layout.b_bytes);
    require_disjoint(layout.c, tcgen05::column_bits, layout.c_bytes);
    REQUIRE(layout.d == layout.c);
    REQUIRE(layout.b_bytes == instruction.n * tcgen05::row_bytes * (instruction.sparse ? 2 : 1));
    REQUIRE(layout.a_bytes ==
            (instruction.a_from_tensor_memory ? 128 : instruction.m) * tcgen05::row_bytes);
    REQUIRE(layout.d_bytes == 128 * instruction.n * 4);
    if (!instruction.sparse) continue;
    REQUIRE(layout.e.size() * static_cast<std::size_t>(sparse_group(instruction).stored) ==
            layout.a.size());
    require_disjoint(layout.e, 4, layout.e_bytes);
  }
}

// The element strides of PTX ISA's examples of canonical layouts without swizzle.
TEST_CASE("tcgen05 shared memory is the canonical layout") {
  for (int r = 0; r < 16; ++r)
    for (int k = 0; k < 16; ++k) {
      // K-major TF32, 16 rows: ((8,2),(4,4)):((4,32),(1,64))
      REQUIRE(tcgen05::shared_bit(16, 32, 32, false, r, k) ==
              32 * (r % 8 * 4 + r / 8 * 32 + k % 4 + k / 4 * 64));
      // MN-major BF16, 16 columns: ((8,1,2),(8,2)):((1,8,64),(8,128))
      REQUIRE(tcgen05::shared_bit(16, 16, 16, true, r, k) ==
              16 * (r % 8 + r / 8 * 64 + k % 8 * 8 + k / 8 * 128));
    }
}

// cuda.h: CU_TENSOR_MAP_DATA_TYPE_16U4_ALIGN16B and 16U6_ALIGN16B, sixteen packed elements and
// padding in 16 bytes.
TEST_CASE("tcgen05 packs narrow elements sixteen by sixteen") {
  REQUIRE(tcgen05::shared_bit(128, 8, 4, false, 0, 15) == 60);
  REQUIRE(tcgen05::shared_bit(128, 8, 6, false, 0, 15) == 90);
  REQUIRE(tcgen05::shared_bit(128, 8, 6, false, 3, 17) == 128 * 128 + 3 * 128 + 6);
  REQUIRE(tcgen05::shared_bit(128, 4, 4, false, 0, 31) == 124);
  TensorCoreInstruction instruction =
      make_instruction(formats::e2m1, formats::e2m1, formats::fp32, 128, 8, 32, false);
  instruction.a_from_tensor_memory = true;
  REQUIRE_THROWS_AS(layout_images(instruction), formats::Error);
}

TEST_CASE("tcgen05 six-bit elements keep their neighbours when they are packed") {
  const TensorCoreInstruction instruction =
      make_instruction(formats::e3m2, formats::e2m3, formats::fp32, 128, 16, 32, false);
  Batch batch(instruction, 2);
  Random random(5);
  for (std::uint64_t& x : batch.a) x = random.bits() & 0x3F;
  const ImageLayout layout = layout_images(instruction);
  const std::vector<std::byte> packed = pack(instruction, layout, batch).a;
  for (std::size_t i = 0; i < batch.a.size(); ++i) {
    const std::size_t image = i / layout.a.size();
    std::uint64_t found = 0;
    for (int j = 0; j < 6; ++j) {
      const std::size_t bit = image * static_cast<std::size_t>(layout.a_bytes) * 8 +
                              static_cast<std::size_t>(layout.a[i % layout.a.size()] + j);
      found |= (std::to_integer<std::uint64_t>(packed.at(bit / 8)) >> (bit % 8) & 1) << j;
    }
    REQUIRE(found == batch.a[i]);
  }
  // Words of these images are not made of whole elements, so the device refuses to pack them.
  REQUIRE_THROWS_AS(invert(layout.a, layout.a_bytes, operand_bits(instruction, instruction.a)),
                    formats::Error);
}

TEST_CASE("tcgen05 accumulators of 64 rows use the lower half of each quarter") {
  REQUIRE(tcgen05::lane_of_row(64, 15) == 15);
  REQUIRE(tcgen05::lane_of_row(64, 16) == 32);
  REQUIRE(tcgen05::lane_of_row(64, 63) == 111);
  REQUIRE(tcgen05::lane_of_row(128, 63) == 63);
}

// CUTLASS states the layouts of metadata and scales as strides in a space of 128 lanes by columns
// of one unit: the unit is the metadata of one element of K, or one scale.
TEST_CASE("tcgen05 metadata lies where CUTLASS puts it") {
  for (int row = 0; row < 128; ++row)
    for (int group = 0; group < 8; ++group) {
      const auto place = tcgen05::metadata_place(128, 16, row, group, 0);
      const int k = 4 * group;  // one bit per element of 16 bits
      const int at = row % 8 + row / 8 % 2 * 2048 + row / 16 * 16 + k % 16 * 128 + k / 16 * 8;
      REQUIRE(place.lane == at % 128);
      REQUIRE(place.bit == at / 128);
      const auto tf32 = tcgen05::metadata_place(128, 32, row, group, 0);
      const int k32 = 2 * group;  // two bits per element
      const int at32 = row % 8 + row / 8 % 2 * 1024 + row / 16 * 16 + k32 % 8 * 128 + k32 / 8 * 8;
      REQUIRE(tf32.lane == at32 % 128);
      REQUIRE(tf32.bit == at32 / 128 * 2);
      REQUIRE(tcgen05::metadata_place(128, 16, row, group, 1).bit == place.bit + 32);
    }
  for (int row = 0; row < 128; ++row)
    for (int group = 0; group < 16; ++group)
      for (const int container : {8, 4}) {
        const auto place = tcgen05::metadata_place(128, container, row, group, 0);
        REQUIRE(place.lane == row);
        REQUIRE(place.bit == 4 * group);
      }
}

TEST_CASE("tcgen05 scales lie where CUTLASS puts them") {
  for (int row = 0; row < 256; ++row)
    for (int scale = 0; scale < 4; ++scale) {
      const auto place = tcgen05::scale_place(row, scale);
      const int at = row % 32 + row / 32 * 512 + scale * 128;
      REQUIRE(place.lane == at % 128);
      REQUIRE(place.bit == at / 128 * 8);
    }
  for (const int n : {8, 16, 128, 256})
    for (const int scales : {1, 2, 4}) {
      TensorCoreInstruction instruction =
          make_instruction(formats::e2m1, formats::e2m1, formats::fp32, 128, n, 64, false);
      instruction.scale = {.format = formats::e8m0, .count = scales};
      const ImageLayout layout = layout_images(instruction);
      REQUIRE(layout.a_scale.size() == static_cast<std::size_t>(128 * scales));
      REQUIRE(layout.b_scale.size() == static_cast<std::size_t>(n * scales));
      require_disjoint(layout.a_scale, 8, layout.a_scale_bytes);
      require_disjoint(layout.b_scale, 8, layout.b_scale_bytes);
      REQUIRE(layout.b_scale_bytes == 32 * 4 * (n > 128 ? 8 : 4));
      // Row 33 of A: the second lane of four columns, in the second.
      REQUIRE(layout.a_scale[static_cast<std::size_t>(33 * scales)] == (4 + 1) * 32);
      REQUIRE(layout.b_scale[static_cast<std::size_t>(n * (scales - 1))] == (scales - 1) * 8);
    }
}

TEST_CASE("tcgen05 operands in tensor memory do not overlap") {
  for (int n = 8; n <= 256; n += 8) {
    const tcgen05::TensorMemoryColumns x = tcgen05::tensor_memory_columns(n);
    REQUIRE(x.d + n <= x.a);
    REQUIRE(x.a + tcgen05::row_bytes * 8 / tcgen05::column_bits <= x.metadata);
    REQUIRE(x.metadata % 2 == 0);
    REQUIRE(x.metadata + tcgen05::metadata_columns <= x.a_scale);
    REQUIRE(x.a_scale + tcgen05::scale_columns(128) <= x.b_scale);
    REQUIRE(x.b_scale + tcgen05::scale_columns(n) <= x.allocated);
    REQUIRE(x.allocated >= 32);
    REQUIRE(x.allocated <= 512);
    REQUIRE((x.allocated & (x.allocated - 1)) == 0);
  }
}

TEST_CASE("only packed four-bit formats are sparse in pairs") {
  const auto group = [](const Format& f, int k) {
    return sparse_group(make_instruction(f, f, formats::fp32, 128, 16, k, true));
  };
  REQUIRE(group(formats::e2m1, 64).span == 8);
  REQUIRE(group(formats::e2m1, 32).span == 4);
  REQUIRE(group(formats::e2m1, 32).stored == 2);
  REQUIRE(group(formats::int4, 64).span == 8);
  REQUIRE(group(formats::tf32, 8).span == 2);
  const TensorCoreInstruction bytes =
      make_instruction(formats::e2m1, formats::e2m1, formats::fp32, 128, 16, 32, true);
  REQUIRE(dense_column(bytes, 3, 2) == 6);
}
