#pragma once

#include <cstddef>
#include <cstdint>

// The inner loops of chains of fused multiply-adds, as tables of functions for each instruction
// set. They round as the thread's floating-point environment says.
namespace guardbit::emulator {

/// to = from + a * b, k after k, of a whole tile. `a` and `b` hold `length` k's, one element of
/// each row and one of each column; strides in bytes; `from` may be null, which counts as +0.
using ChainTile = void (*)(const std::byte* a, const std::byte* b, std::int64_t length,
                           const std::byte* from, std::int64_t from_stride, std::byte* to,
                           std::int64_t to_stride);

struct ChainTiles {
  int rows = 0, columns = 0;
  ChainTile plain = nullptr;
  /// a sum that is a NaN stays as it is
  ChainTile keeping_nan = nullptr;
};

/// Null where this CPU has not the instructions.
const ChainTiles* double_chains_avx512();
const ChainTiles* single_chains_avx512();
/// and FMA
const ChainTiles* double_chains_avx2();
const ChainTiles* single_chains_avx2();
const ChainTiles* double_chains_neon();
const ChainTiles* single_chains_neon();

}  // namespace guardbit::emulator
