#pragma once

#include <cstddef>
#include <cstdint>

#include "emulator/model/instruction.hpp"
#include "gpu/cuda/device/device.hpp"
#include "gpu/cuda/product/tuned_kernels.hpp"

// Matrices of any size as an instruction's matrix unit would multiply them: every output is one
// ascending chain of executions of the instruction, D of one being C of the next, the last one
// padded with +0 products. emulator/engine/matrix_product.hpp does the same on the host.
namespace guardbit::gpu {

/// Row-major codes in device memory, one per container (formats::container_bits): a [m, k], b
/// [k, n], c and d [m, n]. A null c is +0.
struct DeviceMatrices {
  const std::byte *a = nullptr, *b = nullptr, *c = nullptr;
  std::byte* d = nullptr;
  int m = 0, n = 0, k = 0;
};

/// Blocks that every output chains.
std::int64_t block_count(const TunedInstruction& instruction, int k);

/// Can the tuned kernel multiply over this k, on this device? (See tuned_instruction for which
/// instructions it takes.)
bool tuned_takes(const TunedInstruction& instruction, int k);

/// The tuned kernel with the device memory that it needs beside the matrices.
class TunedMultiplication {
 public:
  TunedMultiplication(const TunedInstruction& instruction, const DeviceMatrices& matrices);

  /// Both start device work and throw formats::Error when CUDA refuses; `multiply` uses what `pack`
  /// left.
  void pack() const;
  void multiply() const;

 private:
  TunedKernel kernel_;
  MultiplyArguments arguments_{};
  DeviceBuffer a_packed_, b_packed_, a_low_, b_low_;
};

/// Any dense instruction without block scales, one output per thread, by emulator::dot.
void multiply_by_model(const emulator::MatrixInstruction& instruction,
                       const DeviceMatrices& matrices);

/// What device-made operands look like.
enum class OperandFamily : int {
  /// normally distributed numbers
  normal,
  /// any bits
  raw,
  /// any finite bits
  finite,
  /// exponents -2 to 0, fractions often all ones
  narrow,
  /// 97 % zeros of either sign, else finite bits
  sparse,
  /// normal, half of them zero
  relu,
  /// subnormal and small numbers
  tiny,
  /// normal, one in 500 an infinity, a NaN, a zero or an extreme
  specials,
};

/// Fills `count` containers; element i depends on (seed, family, i) alone.
void generate_operand(const formats::Format& format, OperandFamily family, std::uint64_t seed,
                      std::byte* to, std::size_t count);

/// How many of `count` containers differ.
std::uint64_t count_differences(const formats::Format& format, const std::byte* x,
                                const std::byte* y, std::size_t count);

}  // namespace guardbit::gpu
