#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "emulator/engine/engines.hpp"
#include "emulator/gemm/plan.hpp"
#include "experiments/training/precision.hpp"
#include "experiments/training/product_operands.hpp"

namespace guardbit::experiments::training {

/// A plan's unit, ready to multiply. One chain of the unit, also in promoted parts, runs straight
/// on the widest engine; a CUDA core's FP32 multiply-adds are those of the catalogue's VFMADD231PS,
/// which differ in NaNs alone. Plans that split K take emulator::execute.
class Product {
 public:
  /// formats::Error that begins with `where` for a plan that cannot multiply these formats into
  /// FP32.
  Product(const PrecisionRecipe& recipe, Pass pass, std::string_view where);

  const Format& a() const { return a_; }
  const Format& b() const { return b_; }
  const emulator::GemmPlan& plan() const { return plan_; }

  /// D = A B, [a.lines, b.lines] in FP32, as the unit's sums leave it: tensors' scales are not in
  /// it.
  void operator()(const Operand& a, const Operand& b, float* d, int threads) const;

 private:
  bool is_one_chain() const;
  void multiply_chain(const Operand& a, const Operand& b, float* d, int threads) const;
  void multiply_plan(const Operand& a, const Operand& b, float* d, int threads) const;

  emulator::GemmPlan plan_;
  Format a_, b_;
  bool eigen_ = false;
  emulator::MatrixInstruction row_{};
  const emulator::Engine* engine_ = nullptr;
};

}  // namespace guardbit::experiments::training
