#pragma once

#include <cstdint>
#include <vector>

#include "gpu/operands/image_layout.hpp"

// Layouts turned round, for a device that packs operands word by word.
namespace guardbit::gpu {

/// The inverse of an operand's offset table: for each 32-bit word of an image the elements that lie
/// in it, lowest bits first; -1 where none does. One thread of the device makes one word of it.
struct WordTable {
  /// of an image
  int words = 0;
  /// elements in a word; 1 for elements of 64 bits, which take two words
  int per_word = 1;
  /// of a place for one
  int element_bits = 32;
  /// zero bits below the element in its place
  int padding = 0;
  /// [words][per_word]
  std::vector<std::int32_t> elements;
};

/// Does every element lie in a place of its own width within a word? FP6 and FP4 of tcgen05 in
/// shared memory do not: those are packed sixteen by sixteen.
bool lies_in_words(const std::vector<std::int64_t>& offsets, int element_bits, int padding = 0);

/// `offsets` holds one bit offset per element, `bytes` is the image's size, a multiple of 4.
/// Elements have `element_bits` with the `padding` below them and whatever is above. formats::Error
/// unless `lies_in_words`.
WordTable invert(const std::vector<std::int64_t>& offsets, int bytes, int element_bits,
                 int padding = 0);

}  // namespace guardbit::gpu
