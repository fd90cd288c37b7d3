#pragma once

// A tile of D over blocks of groups: products of E2M1 are summed exactly in groups of 16, a group's
// sum takes the product of its two scales, and the four of them and the addend c make a fused block
// of F = 35 (NUMERICS 1.6; group_term in terms.hpp). The method, and why it is exact.
//
// E2M1's values are halves of integers up to 12. A's are bytes 2a, B's unsigned bytes 2b + 12; a
// group's dot products of bytes (VPDPBUSD, or pairs summed in 16 bits first: eight quads stay below
// 2^13) begin at -12 sum(2a), so that they come to 4 times the exact sum, S, an integer below
// 2^11.2. They also begin at the bits of 1.5 * 2^20 in FP64's high word, whose last place is 1: the
// sum in a high word, zeros below it, *is* the number 1.5 * 2^20 + S.
//
//   S * B = fma(1.5 * 2^20 + S, B, -1.5 * 2^20 * B),   group = (S * B) * A
//
// with A the row's scale and B a quarter of the column's, numbers of one bit (E8M0) or four
// (UE4M3). Nothing is rounded: S * B has at most 16 bits, S * B * A 20. With e the scales'
// exponents together, a group is a multiple of 2^(e-f), f = 2 for E8M0 and 8 for UE4M3, and below
// 2^(e+11).
//
// A block cuts its terms to multiples of u = 2^(E-35), toward zero.
//
//   Claim 1. Cut terms of a block and all their partial sums are FP64 numbers. Proof. They are
//   multiples of u, and four groups and c stay below 4 * 2^(E+11) + 2^(E+1) < 2^(E+14) = 2^49 u.
//
//   Claim 2. Let the exponents of all groups that count (products not all zero, scales not zero) be
//   in [l, h] with f - 149 <= l and h <= l + 35 - f, and c be special, zero or |c| in [2^(h-12),
//   2^(l+36-f)). Then no term is cut, so that the block's result is the sum of c and the groups as
//   they are, rounded once. Proof. E <= l + 35 - f: by h's bound if a group is the largest, by c's
//   if c is, and because of -126 < l + 35 - f if c is subnormal. So u divides every group. If
//   E <= h, u <= 2^(h-35), which divides c, whose last place is 23 below its first. Else E is c's
//   exponent, 35 places above u.
//
//   Claim 3. If f - 149 <= l, h <= 112 and |c| < 2^126, then, whatever is cut, clearing all but the
//   first 23 fraction bits of the sum in FP64 is the rounding to FP32. Proof. The sum is below
//   2^125 + 2^126 and a multiple of 2^-149, as its terms are: below 2^-126 these are FP32's own
//   numbers, of 23 bits at most, and above it FP32 has 23 fraction bits.
//
// Blocks that claim 2 covers are uncut; the others find E and cut every term as fused_tile.hpp
// does: an accumulator begins at X = 1.5 * 2^(E+17), whose last place is u, fma(S * B, A, it)
// rounded down cuts and adds, A and c being nudged by 1 + 2^-47 so that of negative terms exactly
// one step of the grid is missing, which X begins with (claim 1 there, of terms of 24 bits below
// 2^46 u). A group is negative if S is, since scales are not: then the third byte of the high word
// of 1.5 * 2^20 + S is one less than of 1.5 * 2^20, and its differences count them. Where every
// group that counts has an exponent of -126 at least, a block needs no other care for subnormal
// addends and zeros than E >= -126: a column without such groups is c alone, which is not cut.
//
// Infinities and NaNs of c and the scales are left to IEEE arithmetic, which makes of them what the
// unit makes, and become canonical when they are stored.

#include <cstddef>
#include <cstdint>

namespace guardbit::emulator::groups {

inline constexpr int tile_rows = 4, tile_columns = 32;
inline constexpr int groups_of_block = 4, kept_fraction_bits = 35, zero_exponent = -139;
/// B's scales are quarters
inline constexpr int scale_of_b_exponent = -2;
/// FP64's
inline constexpr int exponent_bias = 1023;
/// high word of 1.5 * 2^20
inline constexpr std::int32_t first_sum = 0x41380000;
inline constexpr double first_sum_value = 0x1.8p20;

/// Exponents of the scales of a panel's groups that count, over a block; none: lowest > highest.
struct ExponentRange {
  std::int32_t lowest = 1000, highest = -1000;
};

/// A panel of A (4 rows) or B (32 columns), of which the tile reads, group by group:
///   elements  quads of k's, 4 bytes a line
///   scales    FP64, one a line; B's, and behind its group's, the same times -1.5 * 2^20
///   starts    A: what dot products begin at, 32 bits a line
///   nonzero   32 bits a line: bit q of byte i is set if element i of quad q is not zero
///   exponents of the scales, 32 bits a line, A's plus 1023, where a bit of `nonzero` is set
/// and block by block a range. Lines whose scale is zero hold zeros alone. Lines of B's scales come
/// as `Functions::columns_together` says.
struct Panel {
  const std::byte *elements = nullptr, *scales = nullptr, *starts = nullptr, *nonzero = nullptr,
                  *exponents = nullptr;
  const ExponentRange* ranges = nullptr;
};

/// Numbers of a scale format.
struct ScaleRule {
  /// of a group below its scales' exponents: f
  int fraction_bits = 0;
};

/// to = from + products, over so many blocks; `from` may be null, which counts as zeros. Strides in
/// bytes.
using Tile = void (*)(const ScaleRule& rule, const Panel& a, const Panel& b, std::int64_t blocks,
                      const std::byte* from, std::int64_t from_stride, std::byte* to,
                      std::int64_t to_stride);

/// Four lines of a group, quad by quad in memory so many bytes apart.
struct GroupLines {
  std::byte* elements = nullptr;
  std::ptrdiff_t quad_step = 0;
  int quads = 0;
};

/// Replaces E2M1's codes by the bytes that the table has for them; finds the words of `nonzero` and
/// the sum of each line's bytes, as signed ones, which must be one itself byte by byte.
using Convert = void (*)(const GroupLines& lines, const std::byte* table, std::uint32_t* nonzero,
                         std::int32_t* sums);

struct Functions {
  Tile tile = nullptr;
  Convert convert = nullptr;
  /// columns whose scales stand together, first those of even ones, then those of odd ones
  int columns_together = 0;
};

/// For groups of 16 or, of sparse instructions, 32 places. Null where the CPU has not the
/// instructions.
Functions functions_avx512(int places_of_group);
Functions functions_avx2(int places_of_group);
/// and dot products of bytes
Functions functions_neon(int places_of_group);

}  // namespace guardbit::emulator::groups
