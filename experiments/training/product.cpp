#include "experiments/training/product.hpp"

#include <algorithm>
#include <string>
#include <vector>

#include "emulator/catalogue/instruction_catalogue.hpp"
#include "emulator/engine/cpu.hpp"
#include "emulator/gemm/gemm.hpp"
#include "experiments/training/eigen_product.hpp"
#include "formats/support/error.hpp"
#include "formats/support/parallel.hpp"

namespace guardbit::experiments::training {

namespace {

using EigenProduct = decltype(&eigen_baseline::sgemm_of);

EigenProduct widest_eigen_product() {
#if defined(__x86_64__)
  if (emulator::cpu::features().avx512_kernels) return eigen_avx512::sgemm_of;
  if (emulator::cpu::features().avx2_kernels) return eigen_avx2::sgemm_of;
#endif
  return eigen_baseline::sgemm_of;
}

const float* numbers(const emulator::ConstMatrix& m) {
  return reinterpret_cast<const float*>(m.codes.data);
}

/// Rows of D in as many parts as there are threads. B's lines are its columns.
void multiply_by_eigen(const Operand& a, const Operand& b, float* d, int threads) {
  const EigenProduct multiply = widest_eigen_product();
  const bool a_by_columns = a.codes.column_stride != 1, b_by_columns = b.codes.column_stride == 1;
  const auto parts = static_cast<std::int64_t>(formats::thread_count(threads));
  const std::int64_t rows = std::max<std::int64_t>(1, (a.lines + parts - 1) / parts);
  std::fill(d, d + a.lines * b.lines, 0.0F);
  formats::parallel_for(static_cast<std::size_t>(a.lines), static_cast<std::size_t>(rows), threads,
                        [&](std::size_t begin, std::size_t end) {
                          const auto first = static_cast<std::int64_t>(begin);
                          multiply(numbers(a.codes.from(first, 0)), a_by_columns,
                                   a_by_columns ? a.codes.column_stride : a.codes.row_stride,
                                   numbers(b.codes), b_by_columns, d + first * b.lines,
                                   static_cast<std::int64_t>(end) - first, b.lines, a.k);
                        });
}

emulator::ConstMatrix transposed(emulator::ConstMatrix m) {
  std::swap(m.row_stride, m.column_stride);
  return m;
}

emulator::CodeMatrix copy_of(const Format& f, const emulator::ConstMatrix& m, std::int64_t rows,
                             std::int64_t columns) {
  emulator::CodeMatrix copy = emulator::make_matrix(f, 1, rows, columns);
  for (std::int64_t i = 0; i < rows; ++i)
    for (std::int64_t j = 0; j < columns; ++j) copy.set(i * columns + j, m(i, j));
  return copy;
}

}  // namespace

Product::Product(const PrecisionRecipe& recipe, Pass pass, std::string_view where)
    : plan_(recipe.plans.at(static_cast<std::size_t>(pass))),
      a_(pass == Pass::forward ? recipe.operand : recipe.gradient),
      b_(recipe.operand),
      eigen_(recipe.eigen) {
  if (eigen_) return;
  if (plan_.unit.arch == "simt") {
    if (emulator::scalar_format(plan_.unit, where) != formats::fp32 || a_ != formats::fp32)
      throw formats::Error(std::string(where), "a CUDA core multiplies fp32 here",
                           "simt/fma.fp32 with the recipe fp32");
    row_ = emulator::require_instruction("x86", "VFMADD231PS", where);
  } else {
    row_ = emulator::require_instruction(plan_.unit.arch, plan_.unit.instruction, where);
  }
  if (row_.a != a_ || row_.b != b_ || row_.d != formats::fp32)
    throw formats::Error(std::string(where), plan_.unit.instruction + " does not multiply " +
                                                 formats::name_of(a_) + " by " +
                                                 formats::name_of(b_) + " into fp32");
  engine_ = &emulator::require_engine("auto", row_);
}

bool Product::is_one_chain() const {
  emulator::GemmPlan chain;
  chain.unit = plan_.unit;
  chain.promotion = plan_.promotion;
  return plan_ == chain && plan_.promotion.adder == emulator::Promotion::Adder::add;
}

void Product::operator()(const Operand& a, const Operand& b, float* d, int threads) const {
  if (eigen_) {
    multiply_by_eigen(a, b, d, threads);
  } else if (is_one_chain()) {
    multiply_chain(a, b, d, threads);
  } else {
    multiply_plan(a, b, d, threads);
  }
}

void Product::multiply_chain(const Operand& a, const Operand& b, float* d, int threads) const {
  const std::int64_t m = a.lines, n = b.lines;
  const std::int64_t interval =
      plan_.promotion.interval == 0 ? a.k : std::min(a.k, plan_.promotion.interval);
  std::vector<float> part(interval == a.k ? 0 : static_cast<std::size_t>(m * n));
  if (!part.empty()) std::fill(d, d + m * n, 0.0F);
  for (std::int64_t begin = 0; begin < a.k; begin += interval) {
    emulator::MatrixProduct product;
    product.m = m;
    product.n = n;
    product.k = std::min(interval, a.k - begin);
    product.a = a.codes.from(0, begin);
    product.b = transposed(b.codes.from(0, begin));
    if (row_.scale.count != 0) {
      const std::int64_t block = begin * row_.scale.count / row_.shape.k;
      product.a_scale = a.scales.from(0, block);
      product.b_scale = transposed(b.scales.from(0, block));
    }
    float* const to = part.empty() ? d : part.data();
    product.d = {emulator::codes_of(formats::fp32, reinterpret_cast<std::byte*>(to)), n, 1};
    product.modifiers.zero_addend = true;
    emulator::multiply(*engine_, row_, product, threads);
    for (std::size_t i = 0; i < part.size(); ++i) d[i] += part[i];
  }
}

void Product::multiply_plan(const Operand& a, const Operand& b, float* d, int threads) const {
  emulator::GemmProblem problem;
  problem.a = copy_of(a_, a.codes, a.lines, a.k);
  problem.b = copy_of(b_, transposed(b.codes), a.k, b.lines);
  emulator::GemmPlan plan = plan_;
  plan.epilogue = {};
  const emulator::CodeMatrix result = emulator::execute(plan, problem, threads);
  std::memcpy(d, result.bytes.data(), result.bytes.size());
}

}  // namespace guardbit::experiments::training
