#include "gpu/operands/packing.hpp"

#include <cstddef>
#include <string>
#include <vector>

#include "gpu/inputs/inputs.hpp"
#include "gpu/operands/plain_form.hpp"
#include "gpu/operands/register_words.hpp"
#include "tests/catch.hpp"

namespace {

using namespace guardbit::gpu;

constexpr std::uint64_t seed = 7;

/// One element read bit by bit.
std::uint64_t bits_at(const std::vector<std::byte>& bytes, std::int64_t bit, int count) {
  std::uint64_t word = 0;
  for (int i = 0; i < count; ++i) {
    const std::int64_t at = bit + i;
    const auto byte = std::to_integer<std::uint64_t>(bytes.at(static_cast<std::size_t>(at / 8)));
    word |= (byte >> (at % 8) & 1) << i;
  }
  return word;
}

void require_packed(const std::vector<std::byte>& bytes, const std::vector<std::int64_t>& offsets,
                    int image_bytes, const ImageLayout& layout,
                    const std::vector<std::uint64_t>& words, const Format& type) {
  const std::size_t elements =
      offsets.size() / static_cast<std::size_t>(layout.executions_per_image);
  for (std::size_t i = 0; i < words.size(); ++i) {
    const auto execution = static_cast<int>(i / elements);
    const int image = execution / layout.executions_per_image,
              slot = execution % layout.executions_per_image;
    const std::int64_t bit = std::int64_t{image} * image_bytes * 8 +
                             offsets[static_cast<std::size_t>(slot) * elements + i % elements];
    REQUIRE(bits_at(bytes, bit, word_bits(type)) == words[i]);
  }
}

const TensorCoreInstruction& plain(const std::string& name) {
  const TensorCoreInstruction* instruction = find_plain(name);
  REQUIRE(instruction != nullptr);
  return *instruction;
}

/// The forms of this build with few columns, and what only sm_120 has: kinds and scales.
std::vector<TensorCoreInstruction> small_instructions() {
  std::vector<TensorCoreInstruction> instructions;
  for (const TensorCoreInstruction& instruction : tensor_core_instructions())
    if (instruction.n <= 32) instructions.push_back(instruction);
  for (const TensorCoreInstruction& instruction : tensor_core_instructions("sm_120"))
    if (instruction.group == "mma_kind") instructions.push_back(instruction);
  return instructions;
}

}  // namespace

TEST_CASE("packed operands hold every element at its place") {
  for (const TensorCoreInstruction& instruction : small_instructions()) {
    INFO(std::string(instruction.arch)
         << " " << std::string(instruction.name) << " " << std::string(instruction.variant));
    constexpr int executions = 3;  // not a multiple of the quad-pair instruction's four
    const Batch batch = make_mixed_rows(instruction, executions, seed);
    const ImageLayout layout = layout_images(instruction);
    const PackedOperands packed = pack(instruction, layout, batch);
    require_packed(packed.a, layout.a, layout.a_bytes, layout, batch.a, instruction.a);
    require_packed(packed.b, layout.b, layout.b_bytes, layout, batch.b, instruction.b);
    require_packed(packed.c, layout.c, layout.c_bytes, layout, batch.c, instruction.c);
    if (instruction.scale.count != 0) {
      const Format& type = instruction.scale.format;
      require_packed(packed.a_scale, layout.a_scale, 128, layout, batch.a_scale, type);
      require_packed(packed.b_scale, layout.b_scale, 128, layout, batch.b_scale, type);
    }
    if (instruction.c != instruction.d) continue;
    Batch results(instruction, executions);
    unpack_results(instruction, layout, packed.c, results);
    REQUIRE(results.d == batch.c);
  }
}

TEST_CASE("metadata bits name the positions in the order of the stored values") {
  const SparseGroup of_four{.stored = 2, .positions = 4, .span = 4};
  for (unsigned first = 0; first < 4; ++first)
    for (unsigned second = 0; second < 4; ++second) {
      const std::uint8_t positions[] = {static_cast<std::uint8_t>(first),
                                        static_cast<std::uint8_t>(second)};
      REQUIRE(metadata_bits(of_four, positions) == first + 4 * second);
    }
  const SparseGroup of_pairs{.stored = 4, .positions = 4, .span = 8};
  const std::uint8_t pairs[] = {1, 1, 3, 3};
  REQUIRE(metadata_bits(of_pairs, pairs) == 1 + 4 * 3);
  const SparseGroup of_two{.stored = 1, .positions = 2, .span = 2};
  const std::uint8_t low = 0, high = 1;
  REQUIRE(metadata_bits(of_two, &low) == 0b0100);
  REQUIRE(metadata_bits(of_two, &high) == 0b1110);
}

TEST_CASE("metadata lies in the lanes that the selector names") {
  // PTX ISA, "Matrix fragments for sparse mma": of every four lanes, m16n8k16 with 16-bit elements
  // reads one, which holds row g in its lower and row g + 8 in its upper half; m16n8k32 with 8-bit
  // elements reads two.
  for (const TensorCoreInstruction& instruction : tensor_core_instructions()) {
    if (instruction.unit != Unit::mma || !instruction.sparse) continue;
    const bool one_lane = word_bits(instruction.a) == 16 && instruction.k == 16;
    const bool two_lanes = word_bits(instruction.a) == 8 && instruction.k == 32;
    if (!one_lane && !two_lanes) continue;
    INFO(std::string(instruction.name) << " " << std::string(instruction.variant));
    const Batch batch = make_mixed_rows(instruction, 1, seed);
    const ImageLayout layout = layout_images(instruction);
    const PackedOperands packed = pack(instruction, layout, batch);
    REQUIRE(packed.e.size() == 128);
    const SparseGroup group = sparse_group(instruction);
    for (int r = 0; r < instruction.m; ++r)
      for (int g = 0; g < instruction.stored_k() / group.stored; ++g) {
        const std::size_t at =
            element_index(instruction.m, instruction.stored_k(), 0, r, g * group.stored);
        const int lane = one_lane ? r % 8 * 4 + instruction.selector
                                  : r % 8 * 4 + 2 * instruction.selector + r / 8;
        const int bit = one_lane ? r / 8 * 16 + g * 4 : g * 4;
        REQUIRE(bits_at(packed.e, lane * 32 + bit, 4) == metadata_bits(group, &batch.e[at]));
      }
  }
}

TEST_CASE("plain forms take the operands that the variant computes with") {
  const TensorCoreInstruction& wide = plain("wgmma.mma_async.sync.aligned.m64n24k16.f32.f16.f16");
  const TensorCoreInstruction& narrow = plain(std::string(wide.plain));
  REQUIRE(narrow.n == 8);
  Batch batch = make_mixed_rows(wide, 2, seed);
  Batch blocks = as_plain_form(wide, narrow, batch);
  REQUIRE(blocks.executions == 6);
  for (int t = 0; t < 2; ++t)
    for (int k = 0; k < wide.k; ++k)
      for (int j = 0; j < wide.n; ++j)
        REQUIRE(blocks.b[element_index(narrow.k, 8, t * 3 + j / 8, k, j % 8)] ==
                batch.b[element_index(wide.k, wide.n, t, k, j)]);

  blocks.d = blocks.c;
  batch.d = batch.c;
  REQUIRE(count_differences(wide, narrow, batch, blocks) == 0);
  batch.d[element_index(wide.m, wide.n, 1, 5, 17)] ^= 1;
  REQUIRE(count_differences(wide, narrow, batch, blocks) == 1);
}

TEST_CASE("a wider block-scaled form repeats the scales of A and splits those of B") {
  const auto table = tensor_core_instructions("sm_100");
  int forms = 0;
  for (const TensorCoreInstruction& wide : table) {
    if (wide.scale.count == 0 || wide.n != 256 || wide.sparse) continue;
    INFO(std::string(wide.name));
    const TensorCoreInstruction* narrow = find_plain(table, wide.plain);
    REQUIRE(narrow != nullptr);
    REQUIRE(narrow->n == 16);
    const int count = wide.scale.count;
    const Batch batch = make_mixed_rows(wide, 2, seed);
    const Batch blocks = as_plain_form(wide, *narrow, batch);
    REQUIRE(blocks.executions == 32);
    for (int t = 0; t < 32; ++t)
      for (int s = 0; s < count; ++s) {
        for (int i = 0; i < wide.m; ++i)
          REQUIRE(blocks.a_scale[element_index(wide.m, count, t, i, s)] ==
                  batch.a_scale[element_index(wide.m, count, t / 16, i, s)]);
        for (int j = 0; j < 16; ++j)
          REQUIRE(blocks.b_scale[element_index(count, 16, t, s, j)] ==
                  batch.b_scale[element_index(count, 256, t / 16, s, t % 16 * 16 + j)]);
      }
    ++forms;
  }
  REQUIRE(forms == 5);
}

TEST_CASE("sorting sparse positions keeps which product is taken") {
  for (const TensorCoreInstruction& instruction : tensor_core_instructions()) {
    if (!instruction.unordered) continue;
    INFO(std::string(instruction.name));
    const Batch batch = make_small_integers(instruction, 2, seed);
    const Batch sorted = as_plain_form(instruction, plain(std::string(instruction.plain)), batch);
    REQUIRE(sorted.e != batch.e);
    for (int i = 0; i < instruction.m; ++i)
      for (int j = 0; j < instruction.n; ++j)
        REQUIRE(exact_total(instruction, batch, 1, i, j) ==
                exact_total(instruction, sorted, 1, i, j));
    const auto stored = static_cast<std::size_t>(sparse_group(instruction).stored);
    for (std::size_t at = 0; at < sorted.e.size(); at += stored)
      REQUIRE(sorted.e[at] < sorted.e[at + stored / 2]);
  }
}
