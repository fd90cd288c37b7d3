#include "emulator/engine/kernels/x86/x86_engines.hpp"

#include "emulator/engine/cpu.hpp"
#include "emulator/engine/kernels/chain/chain_gemm.hpp"
#include "emulator/engine/kernels/fused/fused_gemm.hpp"
#include "emulator/engine/kernels/group/group_gemm.hpp"
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
  return fused_gemm::accepts(instruction, width<bits>);
}

template <int bits>
bool is_integer(const MatrixInstruction& instruction) {
  return integer_gemm::accepts(instruction, width<bits>);
}

template <int bits>
bool is_grouped(const MatrixInstruction& instruction) {
  return group_gemm::accepts(instruction, width<bits>);
}

}  // namespace

template <int bits>
bool Kernels<bits>::accepts(const MatrixInstruction& instruction) {
  return has_registers<bits>() &&
         (is_fused<bits>(instruction) || is_grouped<bits>(instruction) ||
          is_integer<bits>(instruction) || chain_gemm::accepts(instruction, width<bits>));
}

template <int bits>
void Kernels<bits>::run(const MatrixInstruction& instruction, const MatrixBatch& batch,
                        std::int64_t begin, std::int64_t end) {
  if (is_fused<bits>(instruction))
    return fused_gemm::run(instruction, batch, begin, end, width<bits>);
  if (is_grouped<bits>(instruction))
    return group_gemm::run(instruction, batch, begin, end, width<bits>);
  if (is_integer<bits>(instruction))
    return integer_gemm::run(instruction, batch, begin, end, width<bits>);
  chain_gemm::run(instruction, batch, begin, end, width<bits>);
}

template <int bits>
void Kernels<bits>::multiply(const MatrixInstruction& instruction, const MatrixProduct& product,
                             int threads) {
  if (is_fused<bits>(instruction))
    return fused_gemm::multiply(instruction, product, threads, width<bits>);
  if (is_grouped<bits>(instruction))
    return group_gemm::multiply(instruction, product, threads, width<bits>);
  if (is_integer<bits>(instruction))
    return integer_gemm::multiply(instruction, product, threads, width<bits>);
  chain_gemm::multiply(instruction, product, threads, width<bits>);
}

template struct Kernels<512>;
template struct Kernels<256>;

}  // namespace guardbit::emulator::x86_engines
