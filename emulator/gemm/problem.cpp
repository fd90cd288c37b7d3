#include "emulator/gemm/problem.hpp"

#include <cassert>
#include <cstring>
#include <numeric>
#include <utility>

#include "emulator/gemm/scalar.hpp"

namespace guardbit::emulator {

namespace {

std::size_t width_of(const Format& format) {
  return static_cast<std::size_t>(formats::container_bits(format) / 8);
}

std::vector<std::int64_t> all_of(std::int64_t count) {
  std::vector<std::int64_t> indices(static_cast<std::size_t>(count));
  std::iota(indices.begin(), indices.end(), 0);
  return indices;
}

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
                                 std::int64_t count) {
  std::vector<std::int64_t> result;
  result.reserve(selected.size());
  const std::int64_t each = (count + scales - 1) / scales;
  for (const std::int64_t i : selected) result.push_back(i / each);
  return result;
}

/// Elements that share a scale: as many as along K where that gives the number of scales, else
/// as few as possible.
std::int64_t elements_per_scale(std::int64_t elements, std::int64_t scales, std::int64_t block) {
  const bool square = scales > 1 && block != 0 && (elements + block - 1) / block == scales;
  return square ? block : (elements + scales - 1) / scales;
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

void copy_element(const CodeMatrix& from, std::int64_t source, CodeMatrix& to, std::int64_t place) {
  const std::size_t width = width_of(from.format);
  std::memcpy(to.bytes.data() + static_cast<std::size_t>(place) * width,
              from.bytes.data() + static_cast<std::size_t>(source) * width, width);
}

void CodeMatrix::set(std::int64_t at, std::uint64_t code) {
  codes_of(format, bytes.data()).set(at, code << formats::container_shift(format));
}

ConstMatrix CodeMatrix::matrix(std::int64_t g) const {
  ConstCodes all = codes();
  all.data += static_cast<std::size_t>(g * rows * columns) * width_of(format);
  return {all, columns, 1};
}

CodeMatrix make_matrix(const Format& format, std::int64_t batch, std::int64_t rows,
                       std::int64_t columns) {
  CodeMatrix m{format, batch, rows, columns, {}};
  m.bytes.resize(static_cast<std::size_t>(m.size()) * width_of(format));
  return m;
}

CodeMatrix matrix_of(const formats::Tensor& tensor) {
  const std::vector<std::int64_t>& shape = tensor.shape;
  assert(shape.size() == 2 || shape.size() == 3);
  CodeMatrix m{tensor.format,
               shape.size() == 3 ? shape[0] : 1,
               shape[shape.size() - 2],
               shape.back(),
               {tensor.bytes.begin(), tensor.bytes.end()}};
  return m;
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

GemmProblem select(const GemmProblem& problem, const Selection2d& selection) {
  const std::vector<std::int64_t> rows =
      selection.rows.empty() ? all_of(problem.m()) : selection.rows;
  const std::vector<std::int64_t> columns =
      selection.columns.empty() ? all_of(problem.n()) : selection.columns;
  const auto part = [](const CodeMatrix& from, const std::vector<std::int64_t>& i,
                       const std::vector<std::int64_t>& j) {
    return from.empty() ? CodeMatrix{} : gather(from, i, j);
  };
  const std::vector<std::int64_t> ks = all_of(problem.k());
  GemmProblem x;
  x.a = gather(problem.a, rows, ks);
  x.b = gather(problem.b, ks, columns);
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
    x.scale_a = gather(problem.scale_a, shared(rows, problem.scale_a.rows, problem.m()),
                       all_of(problem.scale_a.columns));
  if (!problem.scale_b.empty())
    x.scale_b = gather(problem.scale_b, all_of(problem.scale_b.rows),
                       shared(columns, problem.scale_b.columns, problem.n()));
  return x;
}

CodeMatrix select(const CodeMatrix& d, const Selection2d& selection) {
  return gather(d, selection.rows.empty() ? all_of(d.rows) : selection.rows,
                selection.columns.empty() ? all_of(d.columns) : selection.columns);
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
      copy_element(
          sa, sa.index(sa.batch == 1 ? 0 : o.batch, shared({o.row}, sa.rows, problem.m())[0], i),
          x.scale_a, t * sa.columns + i);
    for (std::int64_t i = 0; !sb.empty() && i < sb.rows; ++i)
      copy_element(
          sb,
          sb.index(sb.batch == 1 ? 0 : o.batch, i, shared({o.column}, sb.columns, problem.n())[0]),
          x.scale_b, t * sb.rows + i);
  }
  return x;
}

GemmProblem lower(const Convolution& x, const CodeMatrix& a, const CodeMatrix& b,
                  const ConvolutionOrder& order, std::span<const std::int64_t> rows) {
  const std::vector<Tap> walk = taps(x, order);
  std::vector<std::int64_t> positions(rows.begin(), rows.end());
  if (positions.empty()) positions = all_of(x.n * x.p * x.q);
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
