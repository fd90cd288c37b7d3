#include "gpu/operands/packing.hpp"

#include "gpu/operands/register_words.hpp"

namespace guardbit::gpu {

namespace {

/// Writes `width` bits (fewer than eight, which may cross bytes, or whole bytes) of a word at a bit
/// offset.
void put(std::byte* image, std::int64_t bit, std::uint64_t word, int width) {
  if (width < 8) {
    for (int i = 0; i < width; ++i) {
      std::byte& byte = image[(bit + i) / 8];
      const std::byte mask{static_cast<unsigned char>(1U << ((bit + i) % 8))};
      byte = (word >> i & 1) != 0 ? byte | mask : byte & ~mask;
    }
    return;
  }
  for (int i = 0; i < width / 8; ++i)
    image[bit / 8 + i] = static_cast<std::byte>((word >> (8 * i)) & 0xFF);
}

std::uint64_t get(const std::byte* image, std::int64_t bit, int width) {
  std::uint64_t word = 0;
  for (int i = 0; i < width / 8; ++i)
    word |= std::to_integer<std::uint64_t>(image[bit / 8 + i]) << (8 * i);
  return word;
}

/// Calls visit(element of the batch, image, bit offset in the image) for every element of an
/// operand.
template <class Visit>
void for_each_place(const std::vector<std::int64_t>& offsets, const ImageLayout& layout,
                    std::size_t elements, Visit visit) {
  const auto per_image = static_cast<std::size_t>(layout.executions_per_image);
  const std::size_t per_execution = offsets.size() / per_image;
  for (std::size_t i = 0; i < elements; ++i) {
    const std::size_t execution = i / per_execution, slot = execution % per_image;
    visit(i, execution / per_image, offsets[slot * per_execution + i % per_execution]);
  }
}

std::vector<std::byte> pack_operand(const std::vector<std::int64_t>& offsets, int bytes,
                                    const ImageLayout& layout, int images,
                                    const std::vector<std::uint64_t>& words, const Format& type) {
  const auto stride = static_cast<std::size_t>(bytes);
  std::vector<std::byte> packed(stride * static_cast<std::size_t>(images));
  for_each_place(offsets, layout, words.size(),
                 [&](std::size_t i, std::size_t image, std::int64_t bit) {
                   put(packed.data() + image * stride, bit, words[i], word_bits(type));
                 });
  return packed;
}

std::vector<std::byte> pack_metadata(const TensorCoreInstruction& instruction,
                                     const ImageLayout& layout, const Batch& batch) {
  const auto stride = static_cast<std::size_t>(layout.e_bytes);
  std::vector<std::byte> packed(stride * static_cast<std::size_t>(batch.executions),
                                std::byte{unused_metadata | unused_metadata << 4U});
  const SparseGroup group = sparse_group(instruction);
  const int groups = instruction.stored_k() / group.stored;
  for (int t = 0; t < batch.executions; ++t)
    for (int r = 0; r < instruction.m; ++r)
      for (int g = 0; g < groups; ++g)
        put(packed.data() + static_cast<std::size_t>(t) * stride,
            layout.e[element_index(instruction.m, groups, 0, r, g)],
            metadata_bits(group, &batch.e[element_index(instruction.m, instruction.stored_k(), t, r,
                                                        g * group.stored)]),
            4);
  return packed;
}

}  // namespace

PackedOperands pack(const TensorCoreInstruction& instruction, const ImageLayout& layout,
                    const Batch& batch) {
  const int per_image = layout.executions_per_image;
  PackedOperands packed;
  packed.images = (batch.executions + per_image - 1) / per_image;
  packed.a = pack_operand(layout.a, layout.a_bytes, layout, packed.images, batch.a, instruction.a);
  packed.b = pack_operand(layout.b, layout.b_bytes, layout, packed.images, batch.b, instruction.b);
  packed.c = pack_operand(layout.c, layout.c_bytes, layout, packed.images, batch.c, instruction.c);
  if (instruction.sparse) packed.e = pack_metadata(instruction, layout, batch);
  if (instruction.scale.count == 0) return packed;
  packed.a_scale = pack_operand(layout.a_scale, layout.a_scale_bytes, layout, packed.images,
                                batch.a_scale, instruction.scale.format);
  packed.b_scale = pack_operand(layout.b_scale, layout.b_scale_bytes, layout, packed.images,
                                batch.b_scale, instruction.scale.format);
  return packed;
}

std::vector<std::byte> pack_results(const TensorCoreInstruction& instruction,
                                    const ImageLayout& layout, const Batch& batch) {
  const int per_image = layout.executions_per_image;
  return pack_operand(layout.d, layout.d_bytes, layout,
                      (batch.executions + per_image - 1) / per_image, batch.d, instruction.d);
}

void unpack_results(const TensorCoreInstruction& instruction, const ImageLayout& layout,
                    const std::vector<std::byte>& images, Batch& batch) {
  const auto stride = static_cast<std::size_t>(layout.d_bytes);
  for_each_place(layout.d, layout, batch.d.size(),
                 [&](std::size_t i, std::size_t image, std::int64_t bit) {
                   batch.d[i] = get(images.data() + image * stride, bit, word_bits(instruction.d));
                 });
}

}  // namespace guardbit::gpu
