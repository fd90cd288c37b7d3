#pragma once

#include <cstdint>
#include <vector>

#include "gpu/operands/image_layout.hpp"
#include "gpu/operands/tcgen05_descriptors.hpp"

// Where tcgen05.mma with one CTA expects its operands: A and B in shared memory, and C, D, block
// scales, sparsity metadata and (if chosen) A in tensor memory, which has 128 lanes of 512 columns
// of 32 bits. Sources: PTX ISA 9.0, sections 9.7.16.2 to 9.7.16.10; what it only draws is taken
// from CUTLASS (cute/atom/mma_traits_sm100_frag.hpp). No layout here was checked on hardware;
// gpu/cuda/tensor_core/launch_tcgen05.cuh lists what no source confirms.
//
// An image of shared memory is its bytes; an image of tensor memory is lane after lane, each with
// the operand's columns.
namespace guardbit::gpu::tcgen05 {

inline constexpr int lanes = 128;
/// of one lane
inline constexpr int column_bits = 32;

/// Bytes of a row of A that one instruction takes, padding included. A column of B has as many, or
/// twice as many when A is sparse.
inline constexpr int row_bytes = 32;

/// Bits of shared memory per element of a row whose 32 bytes hold `stored_k` elements. FP6 and FP4
/// take eight in the f8f6f4 kinds, FP4 takes four in the mxf4 kinds.
constexpr int container_bits(int stored_k) { return row_bytes * 8 / stored_k; }

/// Where bit 0 of element k of row `r` of A (or column `r` of B, of `rows`) lies in the image of
/// shared memory. Narrow elements in eight-bit containers are packed sixteen by sixteen at the
/// start of 16 bytes and padded behind (PTX ISA, ".b4x16_p64" and ".b6x16_p32").
constexpr std::int64_t shared_bit(int rows, int container, int element_bits, bool k_strided, int r,
                                  int k) {
  const CoreMatrixStrides strides = core_matrix_strides(rows, container, k_strided);
  const int per_chunk = 128 / container;  // elements in the contiguous 16 bytes
  const int contiguous = k_strided ? r : k, across = k_strided ? k : r;
  const int chunk = contiguous / per_chunk,
            chunk_stride = k_strided ? strides.stride : strides.leading,
            eight_stride = k_strided ? strides.leading : strides.stride;
  const int byte = chunk * chunk_stride + across / 8 * eight_stride + across % 8 * 16;
  return std::int64_t{byte} * 8 + contiguous % per_chunk * element_bits;
}

/// The lane of row `r` of A, C and D: M = 128 fills all (layout D), M = 64 the lower half of each
/// quarter (layout F).
constexpr int lane_of_row(int m, int r) { return m == 64 ? r / 16 * 32 + r % 16 : r; }

struct TensorMemoryPlace {
  /// the bit counts through the lane's columns of this operand
  int lane, bit;
};

/// Sparsity metadata has two columns, the first at an even address; the selector of the instruction
/// descriptor chooses one where the operation needs only one.
inline constexpr int metadata_columns = 2;

/// The four bits that describe group `group` of row `r`. With containers of eight or four bits a
/// lane describes its own row; with wider ones each eight lanes describe one half of K of sixteen
/// rows, the second eight rows in the upper halves. CUTLASS has M = 128 only; M = 64
/// follows from the rule that metadata lies in the lanes of A and D.
constexpr TensorMemoryPlace metadata_place(int m, int container, int r, int group, int selector) {
  if (container <= 8) return {lane_of_row(m, r), group * 4};
  const int first_lane = lane_of_row(m, r / 16 * 16);
  return {first_lane + r % 8 + group / 4 * 8,
          selector * column_bits + r % 16 / 8 * 16 + group % 4 * 4};
}

/// Columns of the scales of `rows` rows of A (or columns of B), which come in tiles of 128.
constexpr int scale_columns(int rows) { return (rows + 127) / 128 * 4; }

/// Scale `scale` of row `r` within the first 32 lanes, which the other three quarters repeat: 32
/// rows per column, the row's scales byte after byte from factor ID 0 on.
constexpr TensorMemoryPlace scale_place(int r, int scale) {
  return {r % 32, r / 32 * column_bits + scale * 8};
}

/// First column of every operand in the tensor memory of the CTA, and how many columns to allocate
/// (a power of two from 32 on). Sixteen columns hold any operand but the accumulator.
struct TensorMemoryColumns {
  int d, a, metadata, a_scale, b_scale, allocated;
};

constexpr TensorMemoryColumns tensor_memory_columns(int n) {
  const int after_d = (n + 15) / 16 * 16;
  int allocated = 32;
  while (allocated < after_d + 64) allocated *= 2;
  return {.d = 0,
          .a = after_d,
          .metadata = after_d + 16,
          .a_scale = after_d + 32,
          .b_scale = after_d + 48,
          .allocated = allocated};
}

/// The images of an instruction's operands; those of scales have 32 lanes, those of other tensor
/// memory 128. formats::Error for FP6 or FP4 A in bytes of tensor memory.
ImageLayout layout_images(const TensorCoreInstruction& instruction);

}  // namespace guardbit::gpu::tcgen05
