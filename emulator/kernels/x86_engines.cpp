#include "emulator/kernels/x86_engines.hpp"

#include "emulator/cpu.hpp"
#include "emulator/kernels/avx512.hpp"
#include "emulator/kernels/chain_gemm.hpp"
#include "emulator/kernels/integer_gemm.hpp"

namespace guardbit::emulator::x86_engines {

namespace {

template <int bits>
constexpr auto integer_width =
    bits == 512 ? integer_gemm::Width::widest : integer_gemm::Width::bits_256;
template <int bits>
constexpr auto chain_width = bits == 512 ? chain_gemm::Width::widest : chain_gemm::Width::bits_256;

template <int bits>
bool has_registers() {
  return bits == 512 ? cpu::features().avx512_kernels : cpu::features().avx2_kernels;
}

template <int bits>
bool is_fused(const MatrixInstruction& row) {
  return bits == 512 && avx512::accepts(row);
}

template <int bits>
bool is_integer(const MatrixInstruction& row) {
  return integer_gemm::accepts(row, integer_width<bits>);
}

}  // namespace

template <int bits>
bool Kernels<bits>::accepts(const MatrixInstruction& row) {
  return has_registers<bits>() && (is_fused<bits>(row) || is_integer<bits>(row) ||
                                   chain_gemm::accepts(row, chain_width<bits>));
}

template <int bits>
void Kernels<bits>::run(const MatrixInstruction& row, const MatrixBatch& batch, std::int64_t begin,
                        std::int64_t end) {
  if (is_fused<bits>(row)) return avx512::run(row, batch, begin, end);
  if (is_integer<bits>(row)) return integer_gemm::run(row, batch, begin, end, integer_width<bits>);
  chain_gemm::run(row, batch, begin, end, chain_width<bits>);
}

template <int bits>
void Kernels<bits>::multiply(const MatrixInstruction& row, const MatrixProduct& product,
                             int threads) {
  if (is_fused<bits>(row)) return avx512::multiply(row, product, threads);
  if (is_integer<bits>(row))
    return integer_gemm::multiply(row, product, threads, integer_width<bits>);
  chain_gemm::multiply(row, product, threads, chain_width<bits>);
}

template struct Kernels<512>;
template struct Kernels<256>;

}  // namespace guardbit::emulator::x86_engines
