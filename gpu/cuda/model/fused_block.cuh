#pragma once

// Fused blocks (NUMERICS 1.1) on the device, four outputs to a thread, from operands that are
// decoded in shared memory.

#include <cstdint>

#include "emulator/model/dot.hpp"
#include "gpu/cuda/model/fused_model.hpp"
#include "gpu/cuda/model/model_launch.cuh"

namespace guardbit::gpu {

using formats::Kind;

// ---- Factors in shared memory ----

/// The exponent of a zero never wins a maximum, that of an infinity or a NaN always does, even
/// beside a zero. (That a zero product then does not contribute e0 to E changes nothing: see
/// emulator/engine/kernels/portable/factors.hpp.)
constexpr int zero_exponent = -(1 << 20);
constexpr int special_exponent = 1 << 24;
constexpr int largest_finite_exponent = 1 << 22;

/// A signed significand and the exponent that the unit aligns by. An infinity has a significand of
/// its sign, a NaN none.
struct Factor {
  int significand, exponent;
};

__device__ inline Factor factor_of(const FactorFormat& f, std::uint32_t word) {
  const std::uint32_t code = (word >> f.ignored_bits) ^ f.flip;
  const std::uint32_t magnitude = code & f.magnitude;
  const bool negative = (code & f.sign) != 0;
  if (magnitude >= f.first_special)
    return {magnitude == f.infinity ? (negative ? -1 : 1) : 0, special_exponent};
  if (magnitude == 0) return {0, zero_exponent};
  const auto biased = static_cast<int>(magnitude >> f.fraction_bits);
  std::uint32_t significand = magnitude & ((1U << f.fraction_bits) - 1);
  int exponent = max(biased, 1) - f.bias;
  if (biased != 0) {
    significand |= 1U << f.fraction_bits;
  } else {
    const int up = min(f.fraction_bits - (31 - __clz(static_cast<int>(significand))),
                       exponent - f.lowest_exponent);
    significand <<= up;
    exponent -= up;
  }
  const auto shifted = static_cast<int>(significand << f.left);
  return {negative ? -shifted : shifted, exponent};
}

/// The tile's words. Reached by offsets from here, never by pointers that are kept: those would be
/// generic addresses.
__device__ inline int* words() {
  extern __shared__ __align__(16) int shared_words[];
  return shared_words;
}

/// Executions first, first + 1, … and up to 64 columns of each, decoded: where its parts begin.
/// Significands and exponents lie apart, so that neighbouring columns are read together.
struct FusedTile {
  std::int64_t first_execution;
  int executions;
  int first_column, columns;
  /// rows of all executions; positions, made odd against bank conflicts
  int a_lines, a_stride;
  /// of one execution: positions, or every k where A is sparse
  int b_rows;
  /// words; B's significands are at 0
  int b_exponents, a_significands, a_exponents;
  /// like a, in half words: the row of B that a position of a sparse A meets
  int k_of;

  __device__ int row_met(int at) const {
    return reinterpret_cast<const std::uint16_t*>(words())[k_of + at];
  }
};

template <bool Sparse>
__device__ inline void decode_tile(const FusedInstruction& instruction,
                                   const DeviceOperands& operands, const FusedTile& tile,
                                   const std::uint8_t* order, const Divisor& by_columns) {
  const Shape& shape = instruction.model.instruction.shape;
  const int ordered = instruction.model.ordered, me = static_cast<int>(threadIdx.x);
  for (int x = me; x < tile.a_lines * ordered; x += threads_per_tile) {
    const int line = instruction.by_positions.quotient(x), at = x - line * ordered;
    const int s = order[at];
    const std::size_t index =
        (static_cast<std::size_t>(tile.first_execution) * shape.m + line) * instruction.stored + s;
    const Factor f =
        factor_of(instruction.a, static_cast<std::uint32_t>(load_element(operands.a, index)));
    words()[tile.a_significands + line * tile.a_stride + at] = f.significand;
    words()[tile.a_exponents + line * tile.a_stride + at] = f.exponent;
    if constexpr (Sparse)
      reinterpret_cast<std::uint16_t*>(words())[tile.k_of + line * tile.a_stride + at] =
          static_cast<std::uint16_t>(dense_k_of(instruction.model.instruction, operands, index, s));
  }
  for (int x = me; x < tile.executions * tile.b_rows * tile.columns; x += threads_per_tile) {
    const int b_line = by_columns.quotient(x), column = x - b_line * tile.columns;
    const int execution = instruction.by_b_rows.quotient(b_line),
              at = b_line - execution * tile.b_rows;
    const int k = Sparse ? at : order[at];
    const std::size_t index =
        (static_cast<std::size_t>(tile.first_execution + execution) * shape.k + k) * shape.n +
        tile.first_column + column;
    const Factor f =
        factor_of(instruction.b, static_cast<std::uint32_t>(load_element(operands.b, index)));
    words()[x] = f.significand;
    words()[tile.b_exponents + x] = f.exponent;
  }
}

// ---- Four outputs ----

/// What a thread computes: two rows by two columns.
template <bool Sparse>
struct Patch {
  FusedTile tile;
  /// where the rows begin
  int a[rows_each];
  /// where the columns begin in B's first row
  int b;

  /// B's columns at a position of row r.
  __device__ int b_at(int r, int at) const {
    return b + (Sparse ? tile.row_met(a[r] + at) : at) * tile.columns;
  }
  __device__ int a_exponent(int r, int at) const { return words()[tile.a_exponents + a[r] + at]; }
  __device__ int a_significand(int r, int at) const {
    return words()[tile.a_significands + a[r] + at];
  }
  __device__ int2 b_exponents(int where) const {
    return *reinterpret_cast<const int2*>(words() + tile.b_exponents + where);
  }
  __device__ int2 b_significands(int where) const {
    return *reinterpret_cast<const int2*>(words() + where);
  }
};

using Exponents = int[rows_each][columns_each];
using Codes32 = std::uint32_t[rows_each][columns_each];
using Sums = std::int64_t[rows_each][columns_each];

template <bool Sparse>
__device__ inline void largest_products(const Patch<Sparse>& patch, int first, int last,
                                        Exponents& largest) {
  for (auto& line : largest)
    for (int& e : line) e = 2 * zero_exponent;
#pragma unroll 4
  for (int at = first; at < last; ++at) {
    int2 b;
#pragma unroll
    for (int r = 0; r < rows_each; ++r) {
      if (Sparse || r == 0) b = patch.b_exponents(patch.b_at(r, at));
      const int a = patch.a_exponent(r, at);
      largest[r][0] = __viaddmax_s32(a, b.x, largest[r][0]);
      largest[r][1] = __viaddmax_s32(a, b.y, largest[r][1]);
    }
  }
}

/// x / 2^shift rounded down; a shift of 32 or more leaves the sign.
__device__ inline int shifted_down(int x, int shift) {
  int result;
  asm("shr.s32 %0, %1, %2;" : "=r"(result) : "r"(x), "r"(shift));
  return result;
}

/// Adds a product's term to a sum modulo 2^32: the product cut to the grid. Rounding down what is
/// one below a negative product gives one less than its magnitude cut, on the grid and off it.
__device__ inline void add_term(std::uint32_t& sum, int product, int shift) {
  const int negative = product >> 31;
  sum += static_cast<std::uint32_t>(shifted_down(product + negative, shift) - negative);
}

/// Products of the positions, cut to multiples of 2^(largest - F), added. Significands of A carry
/// the shift to that grid.
template <bool Sparse>
__device__ inline void aligned_sums(const Patch<Sparse>& patch, int first, int last,
                                    int terms_per_word, const Exponents& largest, Sums& sums) {
  for (auto& line : sums)
    for (std::int64_t& sum : line) sum = 0;
  for (int begin = first; begin < last; begin += terms_per_word) {
    std::uint32_t part[rows_each][columns_each] = {};
    const int end = min(begin + terms_per_word, last);
#pragma unroll 4
    for (int at = begin; at < end; ++at) {
      int2 b, e;
#pragma unroll
      for (int r = 0; r < rows_each; ++r) {
        if (Sparse || r == 0) {
          const int where = patch.b_at(r, at);
          b = patch.b_significands(where);
          e = patch.b_exponents(where);
        }
        const int significand = patch.a_significand(r, at), exponent = patch.a_exponent(r, at);
        add_term(part[r][0], significand * b.x, largest[r][0] - exponent - e.x);
        add_term(part[r][1], significand * b.y, largest[r][1] - exponent - e.y);
      }
    }
#pragma unroll
    for (int r = 0; r < rows_each; ++r)
#pragma unroll
      for (int c = 0; c < columns_each; ++c) sums[r][c] += static_cast<std::int32_t>(part[r][c]);
  }
}

// ---- A block ----

struct FusedAddend {
  std::uint32_t magnitude;
  int exponent;
  bool negative, special;
};

__device__ inline FusedAddend take_apart(const FusedAccumulator& f, std::uint32_t code, int zero) {
  const std::uint32_t magnitude = code & f.magnitude;
  const auto biased = static_cast<int>(magnitude >> f.fraction_bits);
  const std::uint32_t leading = 1U << f.fraction_bits;
  const std::uint32_t fraction = magnitude & (leading - 1);
  return {biased == 0 ? fraction : fraction | leading,
          magnitude == 0 ? zero : max(biased, 1) - f.bias, (code & f.sign) != 0,
          magnitude >= f.infinity};
}

/// A block with an infinity or a NaN among its factors or as its addend. It takes copies, so that
/// the callers' patches stay in registers.
template <bool Sparse>
__device__ __noinline__ inline std::uint32_t special_block(const FusedInstruction& instruction,
                                                           int step, Patch<Sparse> patch, int r,
                                                           int c, int first, int last,
                                                           std::uint32_t addend, bool is_first) {
  const FusedAccumulator& format =
      is_first ? instruction.steps[step].addend_format : instruction.steps[step].result;
  SpecialSum specials;
  const std::uint32_t magnitude = addend & format.magnitude;
  if (magnitude >= format.infinity)
    specials.include({magnitude == format.infinity ? Kind::infinity : Kind::nan,
                      (addend & format.sign) != 0, 0, 0, false});
  for (int at = first; at < last; ++at) {
    const int where = patch.b_at(r, at) + c, y = words()[where];
    const int x = patch.a_significand(r, at);
    if (patch.a_exponent(r, at) != special_exponent &&
        words()[patch.tile.b_exponents + where] != special_exponent)
      continue;
    // A NaN and a zero have no sign here: either makes the product a NaN.
    const bool is_nan = x == 0 || y == 0;
    specials.include({is_nan ? Kind::nan : Kind::infinity, (x < 0) != (y < 0), 0, 0, false});
  }
  const Step& s = instruction.model.instruction.steps.list[static_cast<std::size_t>(step)];
  return static_cast<std::uint32_t>(encode_result(s.spec, s.result, specials.value()));
}

__device__ __noinline__ inline std::uint32_t encode_by_model(const FusedInstruction& instruction,
                                                             int step, std::int64_t sum, int grid) {
  const Step& s = instruction.model.instruction.steps.list[static_cast<std::size_t>(step)];
  return static_cast<std::uint32_t>(encode_result(s.spec, s.result, fixed_point(sum, grid)));
}

/// The sum's code: here where it is zero or clearly normal, as emulator::encode_normal_sum.
__device__ inline std::uint32_t encoded(const FusedInstruction& instruction, const FusedStep& step,
                                        int index, std::int64_t sum, int grid) {
  if (sum == 0) return 0;
  const FusedAccumulator& f = step.result;
  const auto magnitude = static_cast<std::uint64_t>(sum < 0 ? -sum : sum);
  const int top = 63 - __clzll(static_cast<long long>(magnitude));
  const int biased = grid + top + f.bias;
  if (biased <= 0 || biased >= f.last_biased) return encode_by_model(instruction, index, sum, grid);
  // The leading bit at 31: what the kept bits leave out is below them.
  const std::uint64_t aligned = magnitude << (63 - top);
  const int below = 63 - f.result_fraction_bits;
  auto kept = static_cast<std::uint32_t>(aligned >> below);
  if (step.nearest_even) {
    const std::uint64_t rest = aligned << (f.result_fraction_bits + 1);
    constexpr std::uint64_t half = std::uint64_t{1} << 63;
    kept += rest > half || (rest == half && (kept & 1) != 0) ? 1 : 0;
  }
  const std::uint32_t code = (static_cast<std::uint32_t>(biased - 1) << f.fraction_bits) +
                             (kept << (f.fraction_bits - f.result_fraction_bits));
  return sum < 0 ? code | f.sign : code;
}

/// A dot step: its blocks in order, each one's result the next one's addend.
template <bool Sparse>
__device__ inline void run_blocks(const FusedInstruction& instruction, int index,
                                  const Patch<Sparse>& patch, Codes32& codes) {
  const FusedStep& step = instruction.steps[index];
  const int kept = step.kept_fraction_bits;
  for (int first = step.begin; first < step.end; first += step.terms) {
    const int last = min(first + step.terms, step.end);
    const FusedAccumulator& format = first == step.begin ? step.addend_format : step.result;
    Exponents largest;
    Sums sums;
    largest_products(patch, first, last, largest);
    FusedAddend addends[rows_each][columns_each];
    bool special[rows_each][columns_each];
#pragma unroll
    for (int r = 0; r < rows_each; ++r)
#pragma unroll
      for (int c = 0; c < columns_each; ++c) {
        addends[r][c] = take_apart(format, codes[r][c], step.zero_exponent);
        special[r][c] = largest[r][c] > largest_finite_exponent || addends[r][c].special;
        largest[r][c] = max(largest[r][c], addends[r][c].exponent);
      }
    aligned_sums(patch, first, last, step.terms_per_word, largest, sums);
#pragma unroll
    for (int r = 0; r < rows_each; ++r)
#pragma unroll
      for (int c = 0; c < columns_each; ++c) {
        if (special[r][c]) {
          codes[r][c] = special_block(instruction, index, patch, r, c, first, last, codes[r][c],
                                      first == step.begin);
          continue;
        }
        const FusedAddend& addend = addends[r][c];
        const int grid = largest[r][c] - kept;
        const int down = grid - (addend.exponent - format.fraction_bits);
        const std::uint32_t magnitude =
            down >= 0 ? addend.magnitude >> min(31, down) : addend.magnitude << -down;
        const std::int64_t term = std::int64_t{magnitude};
        codes[r][c] =
            encoded(instruction, step, index, sums[r][c] + (addend.negative ? -term : term), grid);
      }
  }
}

}  // namespace guardbit::gpu
