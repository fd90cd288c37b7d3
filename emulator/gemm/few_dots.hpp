#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "emulator/engine/kernels/shared/block_sum.hpp"
#include "emulator/gemm/plan.hpp"
#include "emulator/model/block.hpp"
#include "emulator/model/instruction.hpp"

// Single outputs of a product, for the plan search, which asks for the same ones under many plans.
namespace guardbit::emulator {

struct GemmOperands;

/// A few dot products, one for each batch entry, whose products are taken once for all chains over
/// parts of K: a search asks for thousands of chains of the same outputs. Of instructions with one
/// step of fused blocks and finite operands.
class FewDots {
 public:
  /// Null where the operands are not such ones.
  static std::shared_ptr<const FewDots> of(const GemmOperands& x);

  /// The chains from +0 over these k's, one after the other. False where a sum left the finite
  /// numbers, which is the engines' to compute.
  bool run(const KRanges& ranges, std::vector<double>& sums) const;

 private:
  bool take_products(const GemmOperands& x);
  std::uint64_t block(std::int64_t begin, std::int64_t end, std::uint64_t addend) const;

  AccumulatorSpec spec_;
  AccumulatorFormat result_;
  Sparsity sparsity_;
  std::int64_t outputs_ = 0;
  /// products of one output
  std::int64_t stored_k_ = 0;
  /// products of one block
  std::int64_t block_ = 0;
  /// products of one instruction
  std::int64_t execution_ = 0;
  /// bits of a product below the grid of its own exponent
  int drop_ = 0;
  /// magnitudes signed
  std::vector<std::int32_t> magnitudes_, exponents_;
};

}  // namespace guardbit::emulator
