#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "emulator/gemm/code_matrix.hpp"
#include "emulator/gemm/plan.hpp"

// What a library is asked for: the operands of a matrix product or a convolution, and selections of
// its outputs.
namespace guardbit::emulator {

/// One output of a problem.
struct Output {
  std::int64_t batch = 0, row = 0, column = 0;
};

/// Where the outputs of a selection lie in the product that they were selected from.
struct Origin {
  /// of that product
  std::int64_t batch = 1, m = 0, n = 0;
  /// selected ones
  std::vector<std::int64_t> rows, columns;
  /// or scattered ones, one for each batch entry
  std::vector<Output> outputs;
};

/// D = epilogue(A * B) for every batch entry: what was asked of a library. `c`, `bias` [1, n],
/// `scale_a` [m or 1, blocks of K or 1] and `scale_b` [blocks of K or 1, n or blocks of n or 1] may
/// be empty; scales and bias are FP32 or what the library takes them in. Where `scale_k` is not 0,
/// the scales serve that many elements of K each, else all of K.
struct GemmProblem {
  CodeMatrix a, b, c, bias, scale_a, scale_b;
  std::int64_t scale_k = 0;
  /// A holds at most two numbers that are not zero in each four of a row
  bool sparse_a = false;
  /// of a selection
  std::optional<Origin> origin = {};

  std::int64_t m() const { return a.rows; }
  std::int64_t n() const { return b.columns; }
  std::int64_t k() const { return a.columns; }
  /// The product that this is a selection of, or all of; `rows` and others empty.
  Origin whole() const;
  /// Where an output lies in it.
  Output place(std::int64_t g, std::int64_t i, std::int64_t j) const;
};

/// Cross-correlation: a [N, C, H, W], b [O, C / groups, R, S], d [N, O, P, Q].
struct Convolution {
  std::int64_t n = 0, c = 0, h = 0, w = 0, o = 0, r = 0, s = 0, p = 0, q = 0;
  std::int64_t padding_h = 0, padding_w = 0, stride_h = 1, stride_w = 1;
  std::int64_t dilation_h = 1, dilation_w = 1, groups = 1;
};

/// The scale of element (i, j) of a matrix of `rows` by `columns` elements; 1 where there are no
/// scales. `block`: elements of K that share one, 0 where all do.
double scale_at(const CodeMatrix& scales, std::int64_t g, std::int64_t i, std::int64_t j,
                std::int64_t rows, std::int64_t columns, std::int64_t block = 0);

/// 0, 1, ..., count - 1.
std::vector<std::int64_t> all_numbers(std::int64_t count);
/// `count` of the numbers below `all`, evenly spread, the first and the last among them; all if
/// there are no more.
std::vector<std::int64_t> spread(std::int64_t all, std::int64_t count);
/// Up to `count` outputs of `batch` matrices in different rows and columns, spread by the golden
/// section so that they follow no pattern of tiles.
std::vector<Output> scattered_outputs(std::int64_t batch, std::int64_t rows, std::int64_t columns,
                                      std::int64_t count);

/// The outputs that are looked at: all batch entries, these rows, these columns. Empty: all.
struct Selection2d {
  std::vector<std::int64_t> rows, columns;
};

/// Rows [i, i + rows) and columns [j, j + columns) of the outputs of batch entries [g, g + batch).
struct OutputBlock {
  std::int64_t g = 0, batch = 0, i = 0, rows = 0, j = 0, columns = 0;
};

/// The problem of a block, in views; it knows no origin.
GemmProblem part(const GemmProblem& problem, const OutputBlock& block);

/// The problem whose outputs are those of a selection.
GemmProblem select(const GemmProblem& problem, const Selection2d& selection);
CodeMatrix select(const CodeMatrix& d, const Selection2d& selection);

/// Scattered outputs as a batch of dot products.
GemmProblem select(const GemmProblem& problem, std::span<const Output> outputs);
CodeMatrix select(const CodeMatrix& d, std::span<const Output> outputs);

/// A convolution as one matrix product for each group: rows are output positions (n, p, q), columns
/// the group's output channels, k as `order` walks. `a` and `b` hold the tensors as one row.
GemmProblem lower(const Convolution& convolution, const CodeMatrix& a, const CodeMatrix& b,
                  const ConvolutionOrder& order, std::span<const std::int64_t> rows = {});

/// d [N, O, P, Q] as the rows and columns of `lower`, and back.
CodeMatrix lower_output(const Convolution& convolution, const CodeMatrix& d);
CodeMatrix raise_output(const Convolution& convolution, const CodeMatrix& d);

}  // namespace guardbit::emulator
