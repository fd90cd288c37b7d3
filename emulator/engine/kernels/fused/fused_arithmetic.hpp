#pragma once

// The arithmetic of fused products as vector kernels need it: which instructions they take, and
// what they ask of one.

#include <cstdint>
#include <optional>
#include <vector>

#include "emulator/model/instruction.hpp"

namespace guardbit::emulator::fused {

/// The type of the accumulators' lanes.
enum class LaneType : std::uint8_t { fp32, fp64 };

/// What a block's sum is rounded to.
enum class Result : std::uint8_t {
  /// toward zero
  fp32,
  /// toward zero, 13 fraction bits
  e8m13,
  /// to nearest even
  fp16,
  /// as fp32, of sums that keep no more bits than it (F = 23); tiles alone tell the two apart
  fp32_as_kept,
};

/// How the blocks of one execution hang together.
enum class Composition : std::uint8_t {
  /// each block's addend is the result of the one before
  chain,
  /// two blocks chained from +0, their result added to C (FP8 as two HMMAs)
  chained_halves,
  /// two blocks from +0 each, added to each other and then to C
  separate_halves,
};

/// How codes of an operand become numbers.
struct OperandRule {
  Format format{};
  /// by which subnormals are aligned, after widening
  int min_exponent = 0;
};

/// An instruction whose blocks the kernels sum.
struct FusedInstruction {
  /// k's in a block; of sparse instructions these count those without a product
  int block_k = 0;
  /// k's in an execution
  int execution_k = 0;
  /// the k at each place of an execution's blocks
  std::vector<int> order;
  LaneType lane{};
  Result result{};
  Composition composition{};
  /// F
  int kept_fraction_bits = 0;
  /// e0
  int zero_exponent = 0;
  /// products may leave the normal range (fused_tile.hpp)
  bool any_exponents = false;
  OperandRule a, b;
  /// of A
  Sparsity sparsity{};
  /// k's that share a scale, a power of two; 0: unscaled
  int scale_k = 0;
};

/// The normal range of products: exponents between which no FP32 result can be subnormal or
/// overflow, however long the chain: u is at least 2^-125, and 2^36 products below 2^62 stay
/// below 2^98, from where an addend is so large that every product is cut to zero.
inline constexpr int lowest_product_exponent = -100;
inline constexpr int highest_product_exponent = 60;
/// Sums in FP64's lanes are 2^this times what they stand for (fused_tile.hpp, claim 4).
inline constexpr int fp64_scale_exponent = 160;
/// Exponents of one operand that fit beside each other in a byte's code (fused_tile.hpp).
inline constexpr int widest_span = 63;

/// The instruction as the kernels take it; empty when they do not.
std::optional<FusedInstruction> fused_instruction(const MatrixInstruction& instruction);

}  // namespace guardbit::emulator::fused
