#include "tools/products/gemm_input.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include "emulator/capture/bound_operands.hpp"
#include "emulator/gemm/scales.hpp"
#include "formats/codec.hpp"
#include "formats/support/error.hpp"

namespace guardbit::tools {

namespace {

using emulator::CodeMatrix;
using formats::Error;

std::vector<std::int64_t> shape_of(const CodeMatrix& m) {
  if (m.batch == 1) return {m.rows, m.columns};
  return {m.batch, m.rows, m.columns};
}

/// formats::Error at the first group of four of A that stores more than two numbers. Pairs of FP4
/// numbers go together, so these are not looked at.
void require_sparse(const CodeMatrix& a, const std::string& where) {
  constexpr std::int64_t group = 4;
  constexpr int most = 2;
  if (formats::bits(a.format) < 8) return;
  std::int64_t at = 0;
  for (std::int64_t g = 0; g < a.batch; ++g) {
    for (std::int64_t i = 0; i < a.rows; ++i) {
      int count = 0;
      for (std::int64_t k = 0; k < a.columns; ++k, ++at) {
        if (k % group == 0) count = 0;
        if (formats::decode(a.format, a[at]).kind == formats::Kind::zero) continue;
        if (++count <= most) continue;
        throw Error("--sparse",
                    where + " is not 2:4 sparse: row " + std::to_string(i) +
                        " has more than two numbers at k = " + std::to_string(k - k % group) +
                        " to " + std::to_string(std::min(k - k % group + group, a.columns) - 1));
      }
    }
  }
}

void require_b_fits(const ProductOperands& x) {
  const CodeMatrix &a = x.a.matrix, &b = x.b.matrix;
  if (b.rows == a.columns && b.batch == a.batch) return;
  const bool fits_otherwise = b.columns == a.rows && b.batch == a.batch;
  throw Error(x.b.where, "is " + emulator::shape_text(shape_of(b)) + " where A is " +
                             emulator::shape_text(shape_of(a)) + ": B needs " +
                             std::to_string(a.columns) + " rows, A's K" +
                             (b.batch == a.batch ? "" : ", and as many matrices as A") +
                             (fits_otherwise                                 ? "; A and B swapped?"
                              : b.columns == a.columns && b.batch == a.batch ? "; B transposed?"
                                                                             : ""));
}

}  // namespace

GemmInput gemm_input(ProductOperands operands) {
  GemmInput input;
  input.batched = operands.batched;
  emulator::GemmProblem& x = input.problem;
  x.sparse_a = operands.sparse;
  if (x.sparse_a) require_sparse(operands.a.matrix, operands.a.where);
  require_b_fits(operands);
  x.a = std::move(operands.a.matrix);
  x.b = std::move(operands.b.matrix);
  if (operands.c) {
    x.c = std::move(operands.c->matrix);
    if (x.c.rows != x.m() || x.c.columns != x.n() || (x.c.batch != 1 && x.c.batch != x.a.batch))
      throw Error(operands.c->where, "is not of the shape of A * B");
  }
  if (operands.bias) {
    x.bias = std::move(operands.bias->matrix);
    if (x.bias.size() != x.n()) throw Error(operands.bias->where, "is not one row of A * B");
  }
  const auto scales = [](const std::optional<Operand>& operand) {
    return operand ? operand->matrix : CodeMatrix{};
  };
  const auto where = [](const std::optional<Operand>& operand) {
    return operand ? operand->where : std::string();
  };
  x.scale_a = scales(operands.scale_a);
  x.scale_b = scales(operands.scale_b);
  x.scale_k = emulator::scale_k_of({x.a, x.scale_a, where(operands.scale_a)},
                                   {x.b, x.scale_b, where(operands.scale_b)});
  return input;
}

}  // namespace guardbit::tools
