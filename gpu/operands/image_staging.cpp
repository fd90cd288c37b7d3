#include "gpu/operands/image_staging.hpp"

#include <algorithm>
#include <cstddef>
#include <string>

#include "formats/support/error.hpp"

namespace guardbit::gpu {

bool lies_in_words(const std::vector<std::int64_t>& offsets, int element_bits, int padding) {
  return std::ranges::all_of(offsets,
                             [&](std::int64_t offset) { return offset % element_bits == padding; });
}

WordTable invert(const std::vector<std::int64_t>& offsets, int bytes, int element_bits,
                 int padding) {
  constexpr int word_bits = 32;
  WordTable table;
  table.words = bytes * 8 / word_bits;
  table.per_word = std::max(1, word_bits / element_bits);
  table.element_bits = element_bits;
  table.padding = padding;
  table.elements.assign(static_cast<std::size_t>(table.words * table.per_word), -1);
  const int words_per_element = std::max(1, element_bits / word_bits);
  if (!lies_in_words(offsets, element_bits, padding))
    throw formats::Error("packing on the device",
                         "elements lie in no places of " + std::to_string(element_bits) + " bits");
  for (std::size_t i = 0; i < offsets.size(); ++i) {
    const auto word = static_cast<int>(offsets[i] / word_bits);
    const auto place = static_cast<int>(offsets[i] % word_bits) / element_bits;
    for (int part = 0; part < words_per_element; ++part)
      table.elements[static_cast<std::size_t>((word + part) * table.per_word + place)] =
          static_cast<std::int32_t>(i);
  }
  return table;
}

}  // namespace guardbit::gpu
