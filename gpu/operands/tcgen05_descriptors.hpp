#pragma once

#include <cstdint>

#include "formats/format.hpp"
#include "formats/format_catalogue.hpp"

// The two descriptors of tcgen05.mma, which carry what the instruction's name leaves open. Sources:
// PTX ISA 9.0, "Shared memory descriptor" (Table 40) and "Instruction descriptor" (Tables 42 to
// 44), each field compared with the bit fields of CUTLASS (cute/arch/mma_sm100_desc.hpp) and of
// JAX's Mosaic (mosaic/gpu/tcgen05.py).
namespace guardbit::gpu::tcgen05 {

using formats::Format;

/// The kinds of tcgen05.mma; the last three are scaled by blocks.
enum class Kind { f16, tf32, f8f6f4, i8, mxf8f6f4, mxf4, mxf4nvf4 };

constexpr bool is_block_scaled(Kind kind) {
  return kind == Kind::mxf8f6f4 || kind == Kind::mxf4 || kind == Kind::mxf4nvf4;
}

/// One multiplication as the instruction descriptor states it.
struct Operation {
  Kind kind;
  Format a, b, d;
  int m, n;
  /// of both scale matrices; block-scaled kinds only
  Format scale = formats::e8m0;
  bool sparse = false;
  /// i8 only
  bool saturate = false;
  bool negate_a = false, negate_b = false;
  bool a_m_major = false, b_n_major = false;
  /// 0 or 1: the metadata column of 16-bit and TF32 kinds
  int sparsity_selector = 0;
};

/// What no field can hold: a type that the kind does not take.
constexpr std::uint32_t no_code = 0xFF;

/// atype and btype (bits 7 and 10).
constexpr std::uint32_t operand_code(Kind kind, const Format& f) {
  switch (kind) {
    case Kind::f16: return f == formats::fp16 ? 0 : f == formats::bf16 ? 1 : no_code;
    case Kind::tf32: return f == formats::tf32 ? 2 : no_code;
    case Kind::i8: return f == formats::uint8 ? 0 : f == formats::int8 ? 1 : no_code;
    case Kind::f8f6f4:
    case Kind::mxf8f6f4:
      return f == formats::e4m3   ? 0
             : f == formats::e5m2 ? 1
             : f == formats::e2m3 ? 3
             : f == formats::e3m2 ? 4
             : f == formats::e2m1 ? 5
                                  : no_code;
    case Kind::mxf4:
    case Kind::mxf4nvf4: break;
  }
  return f == formats::e2m1 ? 1 : no_code;
}

/// dtype (bit 4) of the kinds without block scales; the others always have F32 and no field for it.
constexpr std::uint32_t result_code(Kind kind, const Format& f) {
  if (kind == Kind::i8) return f == formats::int32 ? 2 : no_code;
  if (f == formats::fp32) return 1;
  const bool may_be_fp16 = kind == Kind::f16 || kind == Kind::f8f6f4;
  return may_be_fp16 && f == formats::fp16 ? 0 : no_code;
}

/// The type of the scales (bit 23).
constexpr std::uint32_t scale_code(const Format& f) {
  return f == formats::ue4m3 ? 0 : f == formats::e8m0 ? 1 : no_code;
}

/// False for types, sizes and options that the kind does not have (PTX ISA, Tables 39, 51 and 54).
/// Transposed 32-bit operands need a swizzle that the kernels here do not use.
constexpr bool is_valid(const Operation& x) {
  const bool scaled = is_block_scaled(x.kind);
  const bool types =
      operand_code(x.kind, x.a) != no_code && operand_code(x.kind, x.b) != no_code &&
      (scaled ? x.d == formats::fp32 && scale_code(x.scale) != no_code
              : result_code(x.kind, x.d) != no_code) &&
      (x.scale == formats::e8m0 || x.kind == Kind::mxf4nvf4) &&
      (x.kind != Kind::f16 || (x.a == x.b && (x.a == formats::fp16 || x.d == formats::fp32)));
  const bool size = (x.m == 128 || (x.m == 64 && !scaled)) && x.n % 8 == 0 && x.n >= 8 &&
                    x.n <= 256 && (x.kind != Kind::i8 || x.n <= 32 || x.n % 16 == 0);
  const auto transposable = [](const Format& f) {
    return formats::bits(f) == 8 || formats::bits(f) == 16;
  };
  const bool transposes =
      (!x.a_m_major || transposable(x.a)) &&
      (!x.b_n_major || (transposable(x.b) && (formats::bits(x.b) == 16 || x.n % 16 == 0)));
  const bool options =
      (!x.saturate || x.kind == Kind::i8) && (!(x.negate_a || x.negate_b) || x.kind != Kind::i8) &&
      (x.sparsity_selector == 0 ||
       (x.sparsity_selector == 1 && x.sparse && (x.kind == Kind::f16 || x.kind == Kind::tf32)));
  return types && size && transposes && options;
}

/// The 32-bit instruction descriptor of a valid operation.
///
/// bit    without block scales             with block scales
///  0     sparsity selector                 -
///  2     sparse                            sparse
///  3     saturate (i8)                     -
///  4     type of D                         scale factor ID of B: byte 0 of a word here
///  7, 10 types of A, B                     types of A, B
/// 13, 14 negate A, B                       negate A, B
/// 15, 16 A is M-major, B is N-major        the same (never set for mxf4)
/// 17     N / 8                             N / 8
/// 23     -                                 type of the scales
/// 24     M / 16                            M / 128 at bit 27, which is M / 16 at bit 24
/// 29     -                                 scale factor ID of A: byte 0 of a word here
/// 30     largest shift (.ws only)          bit 31: K = 96 (sm_103a only)
constexpr std::uint32_t instruction_descriptor(const Operation& x) {
  const auto flag = [](bool set, int bit) { return std::uint32_t{set} << bit; };
  std::uint32_t bits =
      flag(x.sparse, 2) | operand_code(x.kind, x.a) << 7 | operand_code(x.kind, x.b) << 10 |
      flag(x.negate_a, 13) | flag(x.negate_b, 14) | flag(x.a_m_major, 15) | flag(x.b_n_major, 16) |
      static_cast<std::uint32_t>(x.n / 8) << 17 | static_cast<std::uint32_t>(x.m / 16) << 24;
  if (is_block_scaled(x.kind)) return bits | scale_code(x.scale) << 23;
  return bits | static_cast<std::uint32_t>(x.sparsity_selector) | flag(x.saturate, 3) |
         result_code(x.kind, x.d) << 4;
}

/// How the core matrices of an operand without swizzle follow each other in shared memory, in
/// bytes. A core matrix is 8 rows of 16 contiguous bytes (PTX ISA, "Canonical layouts").
struct CoreMatrixStrides {
  /// along K: to the next 16 bytes, or the next 8 k's where K is strided
  int leading;
  /// along M or N: to the next 8 rows, or the next 16 bytes where M or N is
  /// contiguous
  int stride;
};

/// `rows` of A (or columns of B) with elements in containers of `container_bits`; the core matrices
/// that differ in M or N lie side by side.
constexpr CoreMatrixStrides core_matrix_strides(int rows, int container_bits, bool k_strided) {
  return {.leading = rows * (k_strided ? container_bits : 16), .stride = 128};
}

/// The 64-bit shared-memory descriptor without swizzle: start address, leading and stride byte
/// offsets in units of 16 bytes at bits 0, 16 and 32, and the constant 1 at bit 46.
/// `shared_address` is a multiple of 16 in the shared state space.
constexpr std::uint64_t shared_memory_descriptor(std::uint32_t shared_address,
                                                 const CoreMatrixStrides& strides) {
  const auto encoded = [](std::uint64_t bytes) { return (bytes & 0x3FFFF) >> 4; };
  return encoded(shared_address) | encoded(static_cast<std::uint64_t>(strides.leading)) << 16 |
         encoded(static_cast<std::uint64_t>(strides.stride)) << 32 | std::uint64_t{1} << 46;
}

}  // namespace guardbit::gpu::tcgen05
