#pragma once

// The layout of operands that the tuned kernel reads.
namespace guardbit::gpu {

/// Where the packed form of an operand lies. Lines (rows of A, columns of B) come in panels of 16
/// or 8. A record is one panel's block of `terms` products, as the lanes of a warp take it: words
/// in planes of four per lane (high words of FP64, then weights, then signs; see
/// offset_accumulator.hpp), then per line its exponent and the mask of its nonzero factors. Records
/// are ordered by tile, stage, panel, block in the stage, so that a thread block copies a stage in
/// one piece.
struct PackedShape {
  int terms;
  bool is_a;
  /// of a tile
  int panels;
  /// of a stage
  int blocks;

  static constexpr int lines_of(bool is_a) { return is_a ? 16 : 8; }
  /// 32-bit words per lane.
  static constexpr int words(int terms, bool is_a) {
    return (terms < 8 ? 8 : terms) / (is_a ? 1 : 2);
  }
  static constexpr int weight_words(int terms, bool is_a) {
    return (terms < 8 ? 8 : terms) / (is_a ? 4 : 8);
  }
  static constexpr int lines_offset(int terms, bool is_a) { return words(terms, is_a) * 128; }

  constexpr int lines() const { return lines_of(is_a); }
  constexpr int exponents_offset() const { return lines_offset(terms, is_a); }
  constexpr int masks_offset() const { return exponents_offset() + 4 * lines(); }
  constexpr int record_bytes() const { return masks_offset() + 8 * lines(); }
  constexpr int stage_bytes() const { return record_bytes() * panels * blocks; }
};

}  // namespace guardbit::gpu
