#pragma once

#include "gpu/cuda/model/device_model.hpp"

// The model kernel of instructions whose dot products are fused (NUMERICS 1.1), which is nearly all
// of them: 32-bit integers, and everything about the instruction that the inner loops ask worked
// out on the host.
namespace guardbit::gpu {

/// How the codes of an operand become factors.
struct FactorFormat {
  /// the sign bit where the operand is negated
  std::uint32_t flip = 0;
  std::uint32_t sign = 0, magnitude = 0;
  /// magnitudes from here on are infinities or NaNs
  std::uint32_t first_special = 0;
  /// the magnitude that is an infinity
  std::uint32_t infinity = 0;
  int ignored_bits = 0;
  int fraction_bits = 0, bias = 0;
  /// how far a subnormal is normalised: not at all, or as far as the
  /// format that it is widened to allows
  int lowest_exponent = 0;
  /// significands are shifted left by this
  int left = 0;
};

/// An accumulator's format, IEEE-like and at most 32 bits wide.
struct FusedAccumulator {
  std::uint32_t sign = 0, magnitude = 0, infinity = 0;
  int fraction_bits = 0, bias = 0, result_fraction_bits = 0, last_biased = 0;
};

struct FusedStep {
  /// What a scalar step is on the device; `by_model` leaves it to emulator::scalar_step.
  enum class Kind : std::uint8_t {
    dot,
    add_fp32,
    add_fp16,
    narrow_to_fp16,
    widen_to_fp32,
    by_model
  };
  Kind kind = Kind::dot;
  /// rounding of a block's result; else toward zero
  bool nearest_even = false;
  /// emulator::Source
  std::int8_t addend = -1, other = -1;
  /// positions
  int begin = 0, end = 0, terms = 0;
  int kept_fraction_bits = 0;
  /// so many terms below 2^(F + 2) fit 31 bits
  int terms_per_word = 0;
  /// of a zero addend
  int zero_exponent = 0;
  FusedAccumulator addend_format, result;
};

/// x / by for x below 2^16, by a multiplication.
struct Divisor {
  std::uint32_t by = 1, reciprocal = 0;

  constexpr int quotient(int x) const {
    const auto product = static_cast<std::uint64_t>(reciprocal) * static_cast<std::uint32_t>(x);
    return by == 1 ? x : static_cast<int>(product >> 32);
  }
};

constexpr Divisor divisor(int by) {
  return {static_cast<std::uint32_t>(by), 0xFFFFFFFFU / static_cast<std::uint32_t>(by) + 1};
}

/// A thread computes so many rows by columns.
inline constexpr int rows_each = 2, columns_each = 2;

struct FusedInstruction {
  ModelInstruction model;
  /// elements of a row of A
  int stored = 0;
  /// of a whole tile
  int columns = 0;
  Divisor by_positions, by_b_rows, by_columns, by_across, by_down;
  FactorFormat a, b;
  FusedStep steps[5];
  int count = 0;
};

bool fused_accepts(const emulator::MatrixInstruction& instruction);

FusedInstruction fused_instruction(const ModelInstruction& model);

/// As run_model, for an instruction that `fused_accepts`.
void run_fused_model(const FusedInstruction& instruction, const DeviceOperands& operands,
                     const DeviceResults& results, DeviceTally* tally, const DeviceElements& d);

}  // namespace guardbit::gpu
