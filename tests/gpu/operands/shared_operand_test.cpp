// Shared memory as wgmma reads it, against the canonical layouts, the swizzles and the worked
// examples of the PTX ISA ("Shared Memory Matrix Layout").

#include "gpu/operands/shared_operand.hpp"

#include <array>
#include <cstdint>
#include <set>

#include "tests/catch.hpp"

namespace {

using guardbit::gpu::SharedOperand;

/// Swizzle<bits, 4, 3> of CuTe: `bits` bits from bit 7 on are XORed into those from bit 4 on.
std::int64_t swizzled(std::int64_t byte, int bits) {
  for (int i = 0; i < bits; ++i) byte ^= (byte >> (7 + i) & 1) << (4 + i);
  return byte;
}

int swizzle_bits(int width) { return width == 0 ? 0 : width == 32 ? 1 : width == 64 ? 2 : 3; }

std::uint64_t field(std::uint64_t descriptor, int first, int count) {
  return descriptor >> first & ((std::uint64_t{1} << count) - 1);
}
int leading_bytes(const SharedOperand& x) {
  return static_cast<int>(field(x.descriptor(0), 16, 14) << 4);
}
int stride_bytes(const SharedOperand& x) {
  return static_cast<int>(field(x.descriptor(0), 32, 14) << 4);
}

/// K-major: ((8,m),(T,2k)):((wT,SBO),(1,T)) with w pieces of 16 bytes in a line; without a swizzle
/// ((8,m),(T,2k)):((T,SBO),(1,LBO)). In bytes.
std::int64_t k_major(const SharedOperand& x, int row, int k) {
  const int byte = k * x.bits / 8, line = x.swizzle == 0 ? 16 : x.swizzle;
  const int next_piece = x.swizzle == 0 ? leading_bytes(x) : 16;
  const std::int64_t linear = row % 8 * line + std::int64_t{row / 8} * stride_bytes(x) + byte % 16 +
                              std::int64_t{byte / 16} * next_piece;
  return swizzled(linear, swizzle_bits(x.swizzle));
}

/// MN-major: ((T,w,m),(8,k)):((1,T,LBO),(wT,SBO)); without a swizzle
/// ((T,1,m),(8,k)):((1,T,SBO),(T,LBO)).
std::int64_t mn_major(const SharedOperand& x, int row, int k) {
  const int byte = row * 2, line = x.swizzle == 0 ? 16 : x.swizzle;
  const int next_line_of_rows = x.swizzle == 0 ? stride_bytes(x) : leading_bytes(x);
  const int next_ks = x.swizzle == 0 ? leading_bytes(x) : stride_bytes(x);
  const std::int64_t linear = byte % line + std::int64_t{byte / line} * next_line_of_rows +
                              k % 8 * line + std::int64_t{k / 8} * next_ks;
  return swizzled(linear, swizzle_bits(x.swizzle));
}

void require_layout(const SharedOperand& x) {
  INFO("rows " << x.rows << " k " << x.k << " bits " << x.bits << " swizzle " << x.swizzle);
  std::set<std::int64_t> seen;
  for (int row = 0; row < x.rows; ++row)
    for (int k = 0; k < x.k; ++k) {
      const std::int64_t bit = x.bit(row, k);
      REQUIRE(bit == (x.k_strided ? mn_major(x, row, k) : k_major(x, row, k)) * 8 + k * x.bits % 8);
      REQUIRE(bit / 8 < x.bytes());
      seen.insert(bit);
    }
  REQUIRE(seen.size() == static_cast<std::size_t>(x.rows) * static_cast<std::size_t>(x.k));
}

}  // namespace

TEST_CASE("shared operands lie in the canonical layouts of the PTX ISA") {
  for (const int rows : {8, 24, 64, 256})
    for (const int swizzle : {0, 32, 64, 128}) {
      for (const auto& [k, bits] :
           {std::array{16, 16}, {8, 32}, {32, 8}, {256, 1}, {32, 16}, {64, 8}}) {
        if (swizzle != 0 && k * bits / 8 > swizzle) continue;  // K-major lines hold all of K
        require_layout({rows, k, bits, false, swizzle});
      }
      for (const int k : {16, 32}) require_layout({rows, k, 16, true, swizzle});
    }
}

TEST_CASE("matrix descriptors are those of the PTX ISA's examples") {
  const auto require_strides = [](const SharedOperand& x, int leading, int stride) {
    REQUIRE(field(x.descriptor(0), 16, 14) == static_cast<std::uint64_t>(leading));
    REQUIRE(field(x.descriptor(0), 32, 14) == static_cast<std::uint64_t>(stride));
  };
  // tf32 K-major 16 x 16 without swizzle has two 8 x 8 tiles along K there; ours 16 x 8: one.
  require_strides({16, 8, 32, false, 0}, 16, 8);
  require_strides({32, 16, 16, true, 32}, 16, 32);
  require_strides({64, 16, 16, true, 64}, 32, 64);
  require_strides({16, 16, 16, true, 0}, 16, 8);
  // Swizzled and K-major: the leading dimension counts as 1, eight rows of 128 bytes are 1024.
  require_strides({64, 16, 16, false, 128}, 1, 64);
  for (const auto& [swizzle, mode] : {std::array{0, 0}, {128, 1}, {64, 2}, {32, 3}}) {
    const std::uint64_t descriptor = SharedOperand{64, 16, 16, false, swizzle}.descriptor(0x12400);
    REQUIRE(field(descriptor, 0, 14) == 0x1240);
    REQUIRE(field(descriptor, 49, 3) == 0);
    REQUIRE(field(descriptor, 62, 2) == static_cast<std::uint64_t>(mode));
  }
}

TEST_CASE("a swizzle exchanges the pieces of a line by the number of the line") {
  // 128 bytes, figure "K major 128B swizzling": piece p of row r lies at p XOR r.
  const SharedOperand x{64, 16, 16, false, 128};
  for (int row = 0; row < 64; ++row)
    for (int k = 0; k < 16; ++k)
      REQUIRE(x.bit(row, k) / 8 == row * 128 + ((k / 8) ^ (row % 8)) * 16 + k % 8 * 2);
  // 32 bytes: the two pieces change places in every second four rows.
  const SharedOperand narrow{64, 16, 16, false, 32};
  for (int row = 0; row < 64; ++row)
    for (int k = 0; k < 16; ++k)
      REQUIRE(narrow.bit(row, k) / 8 == row * 32 + ((k / 8) ^ (row / 4 % 2)) * 16 + k % 8 * 2);
}
