#pragma once

#include <cstdint>

// Operands of wgmma in shared memory.
namespace guardbit::gpu {

/// A or B of wgmma in shared memory: where its elements lie, and what the matrix descriptor says of
/// it (PTX ISA, "Shared Memory Matrix Layout" and "Matrix Descriptor Format"; T there is 16 bytes).
/// Memory consists of atoms: eight rows of `swizzle` bytes (16 without a swizzle) that run along K
/// for a K-major operand, or eight k's of as many bytes that run along M or N.
struct SharedOperand {
  /// M of A, N of B
  int rows;
  /// stored K
  int k;
  /// of an element
  int bits;
  /// MN-major: consecutive elements belong to consecutive rows (16-bit types only)
  bool k_strided;
  /// 0, 32, 64 or 128 bytes
  int swizzle;

  constexpr int line_bytes() const { return swizzle == 0 ? 16 : swizzle; }
  constexpr int atom_bytes() const { return 8 * line_bytes(); }
  /// Bytes along the direction in which atoms are lines.
  constexpr int extent_bytes() const { return (k_strided ? rows : k) * bits / 8; }
  constexpr int atoms_along_lines() const {
    return (extent_bytes() + line_bytes() - 1) / line_bytes();
  }

  /// Size of the memory; lines longer than the operand leave some of it unused.
  constexpr int bytes() const {
    return (k_strided ? k : rows) / 8 * atoms_along_lines() * atom_bytes();
  }

  /// Distance of neighbouring atoms across lines, and along them.
  constexpr int across() const {
    if (swizzle == 0) return k_strided ? atoms_along_lines() * atom_bytes() : atom_bytes();
    return atoms_along_lines() * atom_bytes();
  }
  constexpr int along() const {
    return swizzle == 0 && !k_strided ? rows / 8 * atom_bytes() : atom_bytes();
  }

  /// First bit of an element. A swizzle exchanges the 16-byte pieces of a line: bits 4 to 6 of an
  /// address, as many as the line has, are XORed with bits 7 to 9.
  constexpr std::int64_t bit(int row, int at_k) const {
    const int line = k_strided ? at_k : row;
    const int in_line_bits = (k_strided ? row : at_k) * bits, in_line = in_line_bits / 8;
    int byte = line / 8 * across() + in_line / line_bytes() * along() + line % 8 * line_bytes() +
               in_line % line_bytes();
    if (swizzle != 0) byte ^= (byte >> 7 & (swizzle / 16 - 1)) << 4;
    return std::int64_t{byte} * 8 + in_line_bits % 8;
  }

  /// The descriptor of an operand at a shared address, which a swizzle wants to be a multiple of
  /// 1024. The leading dimension of a swizzled K-major operand is not used and counts as 1.
  constexpr std::uint64_t descriptor(std::uint32_t address) const {
    const auto encode = [](std::uint64_t value) { return (value & 0x3FFFF) >> 4; };
    const bool leading_across = swizzle == 0 && k_strided;
    std::uint64_t leading = encode(static_cast<std::uint64_t>(leading_across ? across() : along()));
    if (swizzle != 0 && !k_strided) leading = 1;
    const std::uint64_t stride =
        encode(static_cast<std::uint64_t>(leading_across ? along() : across()));
    const std::uint64_t mode = swizzle == 0 ? 0 : swizzle == 128 ? 1 : swizzle == 64 ? 2 : 3;
    return encode(address) | leading << 16 | stride << 32 | mode << 62;
  }
};

}  // namespace guardbit::gpu
