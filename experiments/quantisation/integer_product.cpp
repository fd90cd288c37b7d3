#include "experiments/quantisation/integer_product.hpp"

#include <algorithm>

#include "emulator/gemm/gemm.hpp"
#include "formats/format_catalogue.hpp"
#include "formats/support/error.hpp"

namespace guardbit::experiments {

namespace {

using emulator::CodeMatrix;

bool fits_four_bits(const IntegerTensor& t) {
  return t.grids.front().high - t.grids.front().low < 16;
}

/// The name of a machine's instruction for these integers.
std::string instruction_name(const CodeMatrix& a, const CodeMatrix& b, bool sparse) {
  const auto word = [](const CodeMatrix& x) -> std::string {
    if (x.format == formats::int4) return "s4";
    if (x.format == formats::uint4) return "u4";
    return x.format == formats::int8 ? "s8" : "u8";
  };
  const bool narrow = a.format == formats::int4 || a.format == formats::uint4;
  const int k = (narrow ? 64 : 32) * (sparse ? 2 : 1);
  return (sparse ? "mma.sp::ordered_metadata" : "mma") + std::string(".sync.aligned.m16n8k") +
         std::to_string(k) + ".row.col.s32." + word(a) + "." + word(b) + ".s32";
}

void require_matrix(const IntegerTensor& t, std::size_t axis, std::string_view where) {
  if (t.shape.size() != 2)
    throw formats::Error(std::string(where), "an integer product takes matrices");
  const bool one = t.grids.size() == 1;
  const bool along = t.group_shape.size() == 1 && t.group_shape[0] == t.shape[axis];
  if (!one && !along)
    throw formats::Error(
        std::string(where),
        "an integer product takes one scale for all, or one for each row of A and column of B");
}

const IntegerGrid& grid_at(const IntegerTensor& t, std::int64_t index) {
  return t.grids.size() == 1 ? t.grids.front() : t.grids[static_cast<std::size_t>(index)];
}

/// Sums of the codes of each row (of A) or column (of B), modulo 2^32.
std::vector<std::uint32_t> sums_along(const IntegerTensor& t, bool of_rows) {
  const std::int64_t rows = t.shape[0], columns = t.shape[1];
  std::vector<std::uint32_t> sums(static_cast<std::size_t>(of_rows ? rows : columns));
  for (std::int64_t i = 0; i < rows; ++i)
    for (std::int64_t j = 0; j < columns; ++j)
      sums[static_cast<std::size_t>(of_rows ? i : j)] +=
          static_cast<std::uint32_t>(t.code(static_cast<std::size_t>(i * columns + j)));
  return sums;
}

}  // namespace

CodeMatrix code_matrix(const IntegerTensor& t, int bits) {
  const bool is_signed = !t.signed_codes.empty();
  const formats::Format format = bits <= 4 ? (is_signed ? formats::int4 : formats::uint4)
                                           : (is_signed ? formats::int8 : formats::uint8);
  CodeMatrix matrix = emulator::make_matrix(format, 1, t.shape[0], t.shape[1]);
  const std::uint64_t mask = bits <= 4 ? 0xFU : 0xFFU;
  for (std::int64_t i = 0; i < matrix.size(); ++i)
    matrix.set(i, static_cast<std::uint32_t>(t.code(static_cast<std::size_t>(i))) & mask);
  return matrix;
}

IntegerProduct multiply(const IntegerTensor& a, const IntegerTensor& b,
                        const IntegerProductOptions& options, std::string_view where) {
  require_matrix(a, 0, where);
  require_matrix(b, 1, where);
  if (a.shape[1] != b.shape[0])
    throw formats::Error(std::string(where),
                         "B has " + std::to_string(b.shape[0]) +
                             " rows where A has K = " + std::to_string(a.shape[1]));
  const int bits = fits_four_bits(a) && fits_four_bits(b) ? 4 : 8;
  emulator::GemmProblem problem;
  problem.a = code_matrix(a, bits);
  problem.b = code_matrix(b, bits);
  problem.sparse_a = options.sparse;
  emulator::GemmPlan plan;
  plan.unit = {options.arch, options.instruction.empty()
                                 ? instruction_name(problem.a, problem.b, options.sparse)
                                 : options.instruction};
  plan.epilogue.compute = plan.epilogue.output = formats::int32;
  const CodeMatrix d = emulator::execute(plan, problem, options.threads);

  IntegerProduct product{a.shape[0], b.shape[1], plan.unit.instruction, {}, {}};
  const auto rows = sums_along(a, true), columns = sums_along(b, false);
  const auto k = static_cast<std::uint32_t>(a.shape[1]);
  for (std::int64_t i = 0; i < product.m; ++i) {
    for (std::int64_t j = 0; j < product.n; ++j) {
      const IntegerGrid &x = grid_at(a, i), &y = grid_at(b, j);
      const auto za = static_cast<std::uint32_t>(x.zero), zb = static_cast<std::uint32_t>(y.zero);
      // Modulo 2^32, as the int32 arithmetic of libraries.
      const std::uint32_t sum = static_cast<std::uint32_t>(d(0, i, j)) -
                                zb * rows[static_cast<std::size_t>(i)] -
                                za * columns[static_cast<std::size_t>(j)] + k * za * zb;
      product.sums.push_back(static_cast<std::int32_t>(sum));
      product.factors.push_back(static_cast<double>(x.scale()) * static_cast<double>(y.scale()));
    }
  }
  return product;
}

}  // namespace guardbit::experiments
