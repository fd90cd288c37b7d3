#pragma once

// Fragments of warp-level instructions: which element lies in which register of which lane.
namespace guardbit::gpu {

/// Where one element of an operand lives: matrix coordinates, and which of the four independent
/// multiplications of a quad-pair instruction (mma.m8n8k4 f16) it belongs to.
struct Coordinates {
  int row, column;
  int execution = 0;
};

// Source of the maps: PTX ISA, "Matrix fragments for mma" and "wgmma register fragments". All
// warp-level shapes but m8n8k4 f16 follow one rule: lanes form eight groups of four; a group owns a
// row of A (and row + 8) or a column of B.

/// A operand, m rows (8 or 16), `per_register` elements in one register. A sparse A uses its stored
/// columns.
constexpr Coordinates a_fragment(int m, int per_register, int lane, int reg, int element) {
  const int group = lane / 4, in_group = lane % 4;
  const int row_blocks = m / 8;
  return {group + 8 * (reg % row_blocks),
          in_group * per_register + (reg / row_blocks) * 4 * per_register + element};
}

/// B operand: (k, column).
constexpr Coordinates b_fragment(int per_register, int lane, int reg, int element) {
  return {(lane % 4) * per_register + reg * 4 * per_register + element, lane / 4};
}

/// C and D of mma and wgmma (any number of columns); `index` counts the lane's elements in register
/// order.
constexpr Coordinates accumulator_fragment(int m, int lane, int index) {
  const int group = lane / 4, in_group = lane % 4;
  if (m == 8) return {group, in_group * 2 + index};
  return {group + 8 * ((index / 2) % 2), (index / 4) * 8 + in_group * 2 + index % 2};
}

/// Lanes 4q..4q+3 and 16+4q..16+4q+3 are quad-pair q and run a multiplication of their own.
constexpr int quad_pair(int lane) { return (lane % 16) / 4; }

/// A of mma.m8n8k4 (f16): four elements per lane.
constexpr Coordinates quad_a_fragment(bool column_major, int lane, int index) {
  const int half = lane >= 16 ? 4 : 0;
  if (column_major) return {index + half, lane % 4, quad_pair(lane)};
  return {lane % 4 + half, index, quad_pair(lane)};
}

constexpr Coordinates quad_b_fragment(bool row_major, int lane, int index) {
  const int half = lane >= 16 ? 4 : 0;
  if (row_major) return {lane % 4, index + half, quad_pair(lane)};
  return {index, lane % 4 + half, quad_pair(lane)};
}

constexpr Coordinates quad_f16_accumulator_fragment(int lane, int index) {
  return {lane % 4 + (lane >= 16 ? 4 : 0), index, quad_pair(lane)};
}

constexpr Coordinates quad_f32_accumulator_fragment(int lane, int index) {
  return {(lane & 1) + (index & 2) + (lane >= 16 ? 4 : 0), (index & 4) + (lane & 2) + (index & 1),
          quad_pair(lane)};
}

/// Sparsity metadata with selector 0: four bits describe one group of A; `group_in_row` counts them
/// along a row. Returns the lane and the first bit of its 32-bit metadata register. Measured on an
/// H200 with one-hot A: a register describes two rows where elements have 16 bits or more, and one
/// row where they have 8 or 4.
struct MetadataPlace {
  int lane, bit;
};

constexpr MetadataPlace metadata_place(int element_bits, int row, int group_in_row) {
  const int first_lane = (row % 8) * 4, half = row / 8;
  if (element_bits >= 16)
    return {first_lane + group_in_row / 4, half * 16 + (group_in_row % 4) * 4};
  return {first_lane + (group_in_row / 8) * 2 + half, (group_in_row % 8) * 4};
}

/// Lanes of each four that hold the metadata of `groups_in_row` groups; the selector counts in
/// steps of them.
constexpr int metadata_lanes(int element_bits, int groups_in_row) {
  return element_bits >= 16 ? groups_in_row / 4 : groups_in_row / 8 * 2;
}

/// Lanes and bits of scale factors (PTX ISA, "Block scaling for mma.sync"): the even lane of a pair
/// serves row g of A, the odd one row g + 8; a column of B has one lane. Successive scales along K
/// lie in successive bytes.
struct ScalePlace {
  int lane, bit;
};
constexpr ScalePlace a_scale_place(int pair, int first_byte, int row, int scale) {
  return {row % 8 * 4 + pair * 2 + row / 8, (first_byte + scale) * 8};
}
constexpr ScalePlace b_scale_place(int lane_in_group, int first_byte, int column, int scale) {
  return {column * 4 + lane_in_group, (first_byte + scale) * 8};
}

}  // namespace guardbit::gpu
