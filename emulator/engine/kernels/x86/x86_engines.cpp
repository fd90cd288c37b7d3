#include "emulator/engine/kernels/x86/x86_engines.hpp"

#include "emulator/engine/cpu.hpp"
#include "emulator/engine/kernels/chain/chain_gemm.hpp"
#include "emulator/engine/kernels/fused/fused_avx512.hpp"
#include "emulator/engine/kernels/group/group_gemm.hpp"
#include "emulator/engine/kernels/half/half_gemm.hpp"
#include "emulator/engine/kernels/integer/integer_gemm.hpp"

namespace guardbit::emulator::x86_engines {

namespace {

template <int bits>
constexpr Width width = bits == 512 ? Width::widest : Width::bits_256;

template <int bits>
bool has_registers() {
  return bits == 512 ? cpu::features().avx512_kernels : cpu::features().avx2_kernels;
}

template <int bits>
bool is_fused(const MatrixInstruction& instruction) {
  return bits == 512 && avx512::accepts(instruction);
}

template <int bits>
bool is_integer(const MatrixInstruction& instruction) {
  return integer_gemm::accepts(instruction, width<bits>);
}

template <int bits>
bool is_grouped(const MatrixInstruction& instruction) {
  return bits == 512 && group_gemm::accepts(instruction);
}

/// Where AVX-512 has no kernel of its own.
template <int bits>
bool is_half(const MatrixInstruction& instruction) {
  return bits == 256 && half_gemm::accepts(instruction);
}

}  // namespace

template <int bits>
bool Kernels<bits>::accepts(const MatrixInstruction& instruction) {
  return has_registers<bits>() && (is_fused<bits>(instruction) || is_grouped<bits>(instruction) ||
                                   is_half<bits>(instruction) || is_integer<bits>(instruction) ||
                                   chain_gemm::accepts(instruction, width<bits>));
}

template <int bits>
void Kernels<bits>::run(const MatrixInstruction& instruction, const MatrixBatch& batch,
                        std::int64_t begin, std::int64_t end) {
  if (is_fused<bits>(instruction)) return avx512::run(instruction, batch, begin, end);
  if (is_grouped<bits>(instruction)) return group_gemm::run(instruction, batch, begin, end);
  if (is_half<bits>(instruction)) return half_gemm::run(instruction, batch, begin, end);
  if (is_integer<bits>(instruction))
    return integer_gemm::run(instruction, batch, begin, end, width<bits>);
  chain_gemm::run(instruction, batch, begin, end, width<bits>);
}

template <int bits>
void Kernels<bits>::multiply(const MatrixInstruction& instruction, const MatrixProduct& product,
                             int threads) {
  if (is_fused<bits>(instruction)) return avx512::multiply(instruction, product, threads);
  if (is_grouped<bits>(instruction)) return group_gemm::multiply(instruction, product, threads);
  if (is_half<bits>(instruction)) return half_gemm::multiply(instruction, product, threads);
  if (is_integer<bits>(instruction))
    return integer_gemm::multiply(instruction, product, threads, width<bits>);
  chain_gemm::multiply(instruction, product, threads, width<bits>);
}

template struct Kernels<512>;
template struct Kernels<256>;

}  // namespace guardbit::emulator::x86_engines
