#include "emulator/gemm/problem.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "emulator/gemm/scalar.hpp"
#include "emulator/gemm/scales.hpp"

namespace guardbit::emulator {

namespace {

CodeMatrix gather(const CodeMatrix& from, const std::vector<std::int64_t>& rows,
                  const std::vector<std::int64_t>& columns) {
  CodeMatrix to = make_matrix(from.format, from.batch, std::ssize(rows), std::ssize(columns));
  std::int64_t at = 0;
  for (std::int64_t g = 0; g < from.batch; ++g) {
    for (const std::int64_t i : rows) {
      for (const std::int64_t j : columns) copy_element(from, from.index(g, i, j), to, at++);
    }
  }
  return to;
}

/// The scales that serve the selected of `count` rows or columns; several may share one.
std::vector<std::int64_t> shared(const std::vector<std::int64_t>& selected, std::int64_t scales,
                                 std::int64_t count, std::int64_t block) {
  std::vector<std::int64_t> result;
  result.reserve(selected.size());
  const std::int64_t each = elements_per_scale(count, scales, block);
  for (const std::int64_t i : selected) result.push_back(i / each);
  return result;
}

/// The channels of a group in the order of the walk; -1 where zeros fill up.
struct Tap {
  std::int64_t c, r, s;
};
std::vector<Tap> taps(const Convolution& x, const ConvolutionOrder& order) {
  const std::int64_t channels = x.c / x.groups;
  const std::int64_t multiple = order.channel_multiple;
  const std::int64_t filled = (channels + multiple - 1) / multiple * multiple;
  const std::int64_t block = order.channel_block == 0 ? filled : order.channel_block;
  using Walk = ConvolutionOrder::Walk;
  std::vector<Tap> result;
  const auto visit = [&](std::int64_t c, std::int64_t r, std::int64_t s) {
    if (c < filled) result.push_back({c < channels ? c : -1, r, s});
  };
  for (std::int64_t first = 0; first < filled; first += block) {
    if (order.walk == Walk::crs) {
      for (std::int64_t c = first; c < first + block; ++c)
        for (std::int64_t r = 0; r < x.r; ++r)
          for (std::int64_t s = 0; s < x.s; ++s) visit(c, r, s);
      continue;
    }
    const bool by_row = order.walk == Walk::rsc;
    for (std::int64_t outer = 0; outer < (by_row ? x.r : x.s); ++outer)
      for (std::int64_t inner = 0; inner < (by_row ? x.s : x.r); ++inner)
        for (std::int64_t c = first; c < first + block; ++c)
          visit(c, by_row ? outer : inner, by_row ? inner : outer);
  }
  return result;
}

}  // namespace

std::vector<std::int64_t> all_numbers(std::int64_t count) {
  std::vector<std::int64_t> numbers(static_cast<std::size_t>(count));
  std::iota(numbers.begin(), numbers.end(), 0);
  return numbers;
}

std::vector<std::int64_t> spread(std::int64_t all, std::int64_t count) {
  std::vector<std::int64_t> result;
  for (std::int64_t i = 0; i < std::min(all, count); ++i)
    result.push_back(all <= count ? i : i * (all - 1) / std::max<std::int64_t>(1, count - 1));
  return result;
}

std::vector<Output> scattered_outputs(std::int64_t batch, std::int64_t rows, std::int64_t columns,
                                      std::int64_t count) {
  const std::int64_t size = batch * rows * columns;
  std::vector<Output> outputs;
  count = std::min(count, size);
  outputs.reserve(static_cast<std::size_t>(count));
  for (std::int64_t i = 0; i < count; ++i) {
    const double part = std::fmod(0.6180339887498949 * static_cast<double>(i + 1), 1.0);
    const auto at = count == size ? i : static_cast<std::int64_t>(part * static_cast<double>(size));
    outputs.push_back({at / (rows * columns), at / columns % rows, at % columns});
  }
  return outputs;
}

double scale_at(const CodeMatrix& scales, std::int64_t g, std::int64_t i, std::int64_t j,
                std::int64_t rows, std::int64_t columns, std::int64_t block) {
  if (scales.empty()) return 1;
  const std::int64_t per_row = elements_per_scale(rows, scales.rows, block);
  const std::int64_t per_column = elements_per_scale(columns, scales.columns, block);
  return scalar::decoded(scales.format,
                         scales(scales.batch == 1 ? 0 : g, i / per_row, j / per_column));
}

Origin GemmProblem::whole() const {
  if (origin) return {origin->batch, origin->m, origin->n, {}, {}, {}};
  return {a.batch, m(), n(), {}, {}, {}};
}

Output GemmProblem::place(std::int64_t g, std::int64_t i, std::int64_t j) const {
  if (!origin) return {g, i, j};
  if (!origin->outputs.empty()) return origin->outputs[static_cast<std::size_t>(g)];
  return {g, origin->rows[static_cast<std::size_t>(i)],
          origin->columns[static_cast<std::size_t>(j)]};
}

GemmProblem part(const GemmProblem& problem, const OutputBlock& block) {
  const auto entries = [&](const CodeMatrix& from) {
    return from.batch == 1 ? from : from.entries(block.g, block.batch);
  };
  /// `count` of `lines` scales from `first` on, in a row or a column.
  const auto scales = [&](const CodeMatrix& from, bool by_rows, std::int64_t first,
                          std::int64_t count, std::int64_t lines) {
    const std::int64_t there = by_rows ? from.rows : from.columns;
    if (from.empty() || there == 1 || count == lines) return entries(from);
    std::vector<std::int64_t> wanted(static_cast<std::size_t>(count));
    std::iota(wanted.begin(), wanted.end(), first);
    wanted = shared(wanted, there, lines, problem.scale_k);
    return by_rows ? gather(entries(from), wanted, all_numbers(from.columns))
                   : gather(entries(from), all_numbers(from.rows), wanted);
  };
  GemmProblem x;
  x.a = entries(problem.a).part(block.i, block.rows, 0, problem.k());
  x.b = entries(problem.b).part(0, problem.b.rows, block.j, block.columns);
  x.c = entries(problem.c).part(block.i, block.rows, block.j, block.columns);
  x.bias = entries(problem.bias).part(0, 1, block.j, block.columns);
  x.scale_a = scales(problem.scale_a, true, block.i, block.rows, problem.m());
  x.scale_b = scales(problem.scale_b, false, block.j, block.columns, problem.n());
  x.scale_k = problem.scale_k;
  x.sparse_a = problem.sparse_a;
  return x;
}

GemmProblem select(const GemmProblem& problem, const Selection2d& selection) {
  const std::vector<std::int64_t> rows =
      selection.rows.empty() ? all_numbers(problem.m()) : selection.rows;
  const std::vector<std::int64_t> columns =
      selection.columns.empty() ? all_numbers(problem.n()) : selection.columns;
  const auto part = [](const CodeMatrix& from, const std::vector<std::int64_t>& i,
                       const std::vector<std::int64_t>& j) {
    return from.empty() ? CodeMatrix{} : gather(from, i, j);
  };
  const std::vector<std::int64_t> ks = all_numbers(problem.k());
  GemmProblem x;
  x.a = selection.rows.empty() ? problem.a : gather(problem.a, rows, ks);
  x.b = selection.columns.empty() ? problem.b : gather(problem.b, ks, columns);
  x.origin = problem.whole();
  if (problem.origin && !problem.origin->outputs.empty()) {
    x.origin->outputs = problem.origin->outputs;
  } else {
    for (const std::int64_t i : rows) x.origin->rows.push_back(problem.place(0, i, 0).row);
    for (const std::int64_t j : columns) x.origin->columns.push_back(problem.place(0, 0, j).column);
  }
  x.c = part(problem.c, rows, columns);
  x.bias = part(problem.bias, {0}, columns);
  x.scale_k = problem.scale_k;
  x.sparse_a = problem.sparse_a;
  if (!problem.scale_a.empty())
    x.scale_a =
        gather(problem.scale_a, shared(rows, problem.scale_a.rows, problem.m(), problem.scale_k),
               all_numbers(problem.scale_a.columns));
  if (!problem.scale_b.empty())
    x.scale_b = gather(problem.scale_b, all_numbers(problem.scale_b.rows),
                       shared(columns, problem.scale_b.columns, problem.n(), problem.scale_k));
  return x;
}

CodeMatrix select(const CodeMatrix& d, const Selection2d& selection) {
  return gather(d, selection.rows.empty() ? all_numbers(d.rows) : selection.rows,
                selection.columns.empty() ? all_numbers(d.columns) : selection.columns);
}

CodeMatrix select(const CodeMatrix& d, std::span<const Output> outputs) {
  CodeMatrix result = make_matrix(d.format, std::ssize(outputs), 1, 1);
  for (std::size_t x = 0; x < outputs.size(); ++x) {
    const Output& o = outputs[x];
    copy_element(d, d.index(d.batch == 1 ? 0 : o.batch, o.row, o.column), result,
                 static_cast<std::int64_t>(x));
  }
  return result;
}

GemmProblem select(const GemmProblem& problem, std::span<const Output> outputs) {
  const std::int64_t k = problem.k(), count = std::ssize(outputs);
  GemmProblem x;
  x.scale_k = problem.scale_k;
  x.sparse_a = problem.sparse_a;
  x.a = make_matrix(problem.a.format, count, 1, k);
  x.b = make_matrix(problem.b.format, count, k, 1);
  x.origin = problem.whole();
  for (const Output& o : outputs)
    x.origin->outputs.push_back(problem.place(o.batch, o.row, o.column));
  if (!problem.c.empty()) x.c = select(problem.c, outputs);
  std::vector<Output> columns(outputs.begin(), outputs.end());
  for (Output& o : columns) o.row = 0;
  if (!problem.bias.empty()) x.bias = select(problem.bias, columns);
  const CodeMatrix &sa = problem.scale_a, &sb = problem.scale_b;
  if (!sa.empty()) x.scale_a = make_matrix(sa.format, count, 1, sa.columns);
  if (!sb.empty()) x.scale_b = make_matrix(sb.format, count, sb.rows, 1);
  for (std::int64_t t = 0; t < count; ++t) {
    const Output& o = outputs[static_cast<std::size_t>(t)];
    for (std::int64_t i = 0; i < k; ++i) {
      copy_element(problem.a, problem.a.index(o.batch, o.row, i), x.a, t * k + i);
      copy_element(problem.b, problem.b.index(o.batch, i, o.column), x.b, t * k + i);
    }
    for (std::int64_t i = 0; !sa.empty() && i < sa.columns; ++i)
      copy_element(sa,
                   sa.index(sa.batch == 1 ? 0 : o.batch,
                            shared({o.row}, sa.rows, problem.m(), problem.scale_k)[0], i),
                   x.scale_a, t * sa.columns + i);
    for (std::int64_t i = 0; !sb.empty() && i < sb.rows; ++i)
      copy_element(sb,
                   sb.index(sb.batch == 1 ? 0 : o.batch, i,
                            shared({o.column}, sb.columns, problem.n(), problem.scale_k)[0]),
                   x.scale_b, t * sb.rows + i);
  }
  return x;
}

GemmProblem lower(const Convolution& x, const CodeMatrix& a, const CodeMatrix& b,
                  const ConvolutionOrder& order, std::span<const std::int64_t> rows) {
  const std::vector<Tap> walk = taps(x, order);
  std::vector<std::int64_t> positions(rows.begin(), rows.end());
  if (positions.empty()) positions = all_numbers(x.n * x.p * x.q);
  const std::int64_t channels = x.c / x.groups, outputs = x.o / x.groups;
  GemmProblem problem;
  problem.a = make_matrix(a.format, x.groups, std::ssize(positions), std::ssize(walk));
  problem.b = make_matrix(b.format, x.groups, std::ssize(walk), outputs);
  for (std::int64_t g = 0; g < x.groups; ++g) {
    for (std::int64_t i = 0; i < std::ssize(positions); ++i) {
      const std::int64_t position = positions[static_cast<std::size_t>(i)];
      const std::int64_t n = position / (x.p * x.q);
      const std::int64_t top = position / x.q % x.p * x.stride_h - x.padding_h;
      const std::int64_t left = position % x.q * x.stride_w - x.padding_w;
      for (std::int64_t k = 0; k < std::ssize(walk); ++k) {
        const Tap& tap = walk[static_cast<std::size_t>(k)];
        const std::int64_t h = top + tap.r * x.dilation_h, w = left + tap.s * x.dilation_w;
        if (tap.c < 0 || h < 0 || h >= x.h || w < 0 || w >= x.w) continue;
        copy_element(a, ((n * x.c + g * channels + tap.c) * x.h + h) * x.w + w, problem.a,
                     problem.a.index(g, i, k));
      }
    }
    for (std::int64_t k = 0; k < std::ssize(walk); ++k) {
      const Tap& tap = walk[static_cast<std::size_t>(k)];
      if (tap.c < 0) continue;
      for (std::int64_t o = 0; o < outputs; ++o)
        copy_element(b, (((g * outputs + o) * channels + tap.c) * x.r + tap.r) * x.s + tap.s,
                     problem.b, problem.b.index(g, k, o));
    }
  }
  return problem;
}

namespace {

/// Where output (g, position, o) of a lowered convolution lies in d [N, O, P, Q].
std::int64_t raised_index(const Convolution& x, std::int64_t g, std::int64_t position,
                          std::int64_t o) {
  const std::int64_t n = position / (x.p * x.q), pixel = position % (x.p * x.q);
  return (n * x.o + g * (x.o / x.groups) + o) * (x.p * x.q) + pixel;
}

}  // namespace

CodeMatrix lower_output(const Convolution& x, const CodeMatrix& d) {
  CodeMatrix lowered = make_matrix(d.format, x.groups, x.n * x.p * x.q, x.o / x.groups);
  std::int64_t at = 0;
  for (std::int64_t g = 0; g < lowered.batch; ++g)
    for (std::int64_t i = 0; i < lowered.rows; ++i)
      for (std::int64_t o = 0; o < lowered.columns; ++o)
        copy_element(d, raised_index(x, g, i, o), lowered, at++);
  return lowered;
}

CodeMatrix raise_output(const Convolution& x, const CodeMatrix& d) {
  CodeMatrix raised = make_matrix(d.format, 1, 1, d.size());
  std::int64_t at = 0;
  for (std::int64_t g = 0; g < d.batch; ++g)
    for (std::int64_t i = 0; i < d.rows; ++i)
      for (std::int64_t o = 0; o < d.columns; ++o)
        copy_element(d, at++, raised, raised_index(x, g, i, o));
  return raised;
}

}  // namespace guardbit::emulator
