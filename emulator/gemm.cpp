#include "emulator/gemm.hpp"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "emulator/catalogue.hpp"
#include "emulator/engine.hpp"
#include "emulator/gemm_scalar.hpp"
#include "emulator/kernels/multiply_add.hpp"
#include "formats/arithmetic.hpp"
#include "formats/error.hpp"
#include "formats/parallel.hpp"

namespace guardbit::emulator {

namespace {

using formats::Error;

/// Accumulator and operand format of a CUDA core's multiply-add.
Format scalar_format(const GemmUnit& unit, std::string_view where) {
  if (unit.instruction == "fma.fp32") return formats::fp32;
  if (unit.instruction == "fma.fp64") return formats::fp64;
  if (unit.instruction == "fma.fp16") return formats::fp16;
  if (unit.instruction == "mad.int32") return formats::int32;
  throw Error(std::string(where), "unknown unit 'simt/" + unit.instruction + "'",
              "fma.fp32, fma.fp64, fma.fp16, mad.int32");
}

std::vector<double> values_of(const CodeMatrix& matrix, const Format& format, Rounding rounding) {
  std::vector<double> values(static_cast<std::size_t>(matrix.size()));
  for (std::size_t i = 0; i < values.size(); ++i) {
    std::uint64_t code = matrix[static_cast<std::int64_t>(i)];
    if (matrix.format != format) code = formats::convert(matrix.format, code, format, rounding);
    values[i] = scalar::decoded(format, code);
  }
  return values;
}

/// The pieces of every element, the leading one first: each the rest rounded.
std::vector<CodeMatrix> pieces_of(const CodeMatrix& matrix, const Format& format,
                                  const InputConversion& input) {
  std::vector<CodeMatrix> pieces(static_cast<std::size_t>(input.pieces),
                                 make_matrix(format, matrix.batch, matrix.rows, matrix.columns));
  for (std::int64_t i = 0; i < matrix.size(); ++i) {
    formats::Value rest = formats::decode(matrix.format, matrix[i]);
    for (CodeMatrix& piece : pieces) {
      const std::uint64_t code = formats::encode(format, rest, input.rounding);
      piece.set(i, code);
      if (&piece == &pieces.back()) break;
      // Numbers of a few dozen bits each: FP64 holds the difference exactly.
      const formats::Unrounded difference = formats::subtract(
          formats::exactly(rest), formats::exactly(formats::decode(format, code)));
      rest = formats::decode(formats::fp64, formats::encode(formats::fp64, difference));
    }
  }
  return pieces;
}

/// Ranks of the pieces of A and B that are multiplied, smaller products first.
std::vector<std::pair<int, int>> piece_products(const InputConversion& input) {
  std::vector<std::pair<int, int>> products;
  for (int total = 2 * input.pieces - 2; total >= 0; --total) {
    for (int a = input.pieces - 1; a >= 0; --a) {
      const int b = total - a;
      if (b >= 0 && b < input.pieces && total < input.ranks) products.emplace_back(a, b);
    }
  }
  return products;
}

/// The matrix with `unit_k` elements of K of each product in turn, K along the columns (of A) or
/// along the rows (of B); the last run of K is filled up with zeros.
CodeMatrix expanded(const std::vector<CodeMatrix>& pieces, const std::vector<int>& ranks,
                    std::int64_t unit_k, bool along_columns) {
  const CodeMatrix& first = pieces.front();
  const std::int64_t k = along_columns ? first.columns : first.rows;
  const std::int64_t steps = (k + unit_k - 1) / unit_k;
  const auto terms = static_cast<std::int64_t>(ranks.size());
  const std::int64_t all = steps * terms * unit_k;
  CodeMatrix result = along_columns ? make_matrix(first.format, first.batch, first.rows, all)
                                    : make_matrix(first.format, first.batch, all, first.columns);
  const std::int64_t others = along_columns ? first.rows : first.columns;
  for (std::int64_t g = 0; g < first.batch; ++g) {
    for (std::int64_t x = 0; x < all; ++x) {
      const std::int64_t source = x / (unit_k * terms) * unit_k + x % unit_k;
      if (source >= k) continue;
      const auto rank =
          static_cast<std::size_t>(ranks[static_cast<std::size_t>(x / unit_k % terms)]);
      for (std::int64_t i = 0; i < others; ++i)
        result.set(along_columns ? result.index(g, i, x) : result.index(g, x, i),
                   along_columns ? pieces[rank](g, i, source) : pieces[rank](g, source, i));
    }
  }
  return result;
}

/// The k that stands at each place once loads have permuted K; -1 past the last.
std::vector<std::int64_t> load_order(const LoadOrder& loads, std::int64_t k) {
  const std::int64_t tile = std::int64_t{loads.lanes} * loads.run;
  std::vector<std::int64_t> order;
  for (std::int64_t first = 0; first < k; first += tile)
    for (int step = 0; step < loads.run; step += loads.take)
      for (int lane = 0; lane < loads.lanes; ++lane)
        for (int i = 0; i < loads.take; ++i) {
          const std::int64_t source = first + std::int64_t{lane} * loads.run + step + i;
          order.push_back(source < k ? source : -1);
        }
  return order;
}

/// A and B with K permuted, filled up with zeros to whole tiles.
GemmProblem loaded(const GemmProblem& problem, const LoadOrder& loads) {
  const std::vector<std::int64_t> order = load_order(loads, problem.k());
  const std::int64_t k = std::ssize(order);
  GemmProblem x;
  x.a = make_matrix(problem.a.format, problem.a.batch, problem.m(), k);
  x.b = make_matrix(problem.b.format, problem.b.batch, k, problem.n());
  for (std::int64_t g = 0; g < x.a.batch; ++g) {
    for (std::int64_t to = 0; to < k; ++to) {
      const std::int64_t from = order[static_cast<std::size_t>(to)];
      for (std::int64_t i = 0; from >= 0 && i < x.m(); ++i)
        x.a.set(x.a.index(g, i, to), problem.a(g, i, from));
      for (std::int64_t j = 0; from >= 0 && j < x.n(); ++j)
        x.b.set(x.b.index(g, to, j), problem.b(g, from, j));
    }
  }
  return x;
}

CodeMatrix converted(const CodeMatrix& matrix, const Format& format, const InputConversion& input) {
  if (matrix.format == format) return matrix;
  return std::move(pieces_of(matrix, format, {input.rounding, 1, 1}).front());
}

/// A of a 2:4 product as stored values and positions: the nonzeros of each group, then zeros.
void compress(const MatrixInstruction& row, GemmOperands& x, std::string_view where) {
  const Sparsity& s = row.sparsity;
  const CodeMatrix dense = std::move(x.a);
  const std::int64_t groups = dense.columns / s.group_elements;
  if (s.chunk != 1 || dense.columns % s.group_elements != 0)
    throw Error(std::string(where), "K = " + std::to_string(dense.columns) +
                                        " cannot be stored in the sparse form of " +
                                        std::string(std::string_view(row.name)));
  x.a = make_matrix(dense.format, dense.batch, dense.rows, groups * s.stored_per_group);
  x.e = make_matrix(formats::uint8, dense.batch, dense.rows, x.a.columns);
  const std::uint64_t magnitude = formats::is_integer(dense.format)
                                      ? formats::code_mask(dense.format)
                                      : formats::magnitude_mask(dense.format);
  std::vector<int> kept;
  for (std::int64_t line = 0; line < dense.batch * dense.rows; ++line) {
    for (std::int64_t group = 0; group < groups; ++group) {
      const std::int64_t from = line * dense.columns + group * s.group_elements;
      kept.clear();
      for (int e = 0; e < s.group_elements; ++e)
        if ((dense[from + e] & magnitude) != 0) kept.push_back(e);
      if (std::ssize(kept) > s.stored_per_group)
        throw Error(std::string(where), "A is not 2:4 sparse");
      for (int e = 0; std::ssize(kept) < s.stored_per_group; ++e)
        if (std::find(kept.begin(), kept.end(), e) == kept.end()) kept.push_back(e);
      std::sort(kept.begin(), kept.end());
      for (int i = 0; i < s.stored_per_group; ++i) {
        const std::int64_t to = line * x.a.columns + group * s.stored_per_group + i;
        x.a.set(to, dense[from + kept[static_cast<std::size_t>(i)]]);
        x.e.set(to, static_cast<std::uint64_t>(kept[static_cast<std::size_t>(i)]));
      }
    }
  }
}

/// The columns of A's storage that hold these k's.
KRange stored(const MatrixInstruction& row, const KRange& range) {
  const Sparsity& s = row.sparsity;
  if (s.group_elements == 0) return range;
  return {range.begin / s.group_elements * s.stored_per_group,
          range.end / s.group_elements * s.stored_per_group};
}

/// Copies ranges of columns (of A) or rows (of B) together.
CodeMatrix joined(const CodeMatrix& from, const KRanges& ranges, bool columns) {
  std::int64_t k = 0;
  for (const KRange& range : ranges) k += range.length();
  CodeMatrix to = columns ? make_matrix(from.format, from.batch, from.rows, k)
                          : make_matrix(from.format, from.batch, k, from.columns);
  const auto width = static_cast<std::size_t>(formats::container_bits(from.format) / 8);
  const auto copy = [&](std::int64_t source, std::int64_t place, std::int64_t count) {
    std::copy_n(from.bytes.begin() + source * static_cast<std::int64_t>(width),
                static_cast<std::size_t>(count) * width,
                to.bytes.begin() + place * static_cast<std::int64_t>(width));
  };
  for (std::int64_t g = 0; g < from.batch; ++g) {
    std::int64_t at = 0;
    for (const KRange& range : ranges) {
      if (!columns)
        copy(from.index(g, range.begin, 0), to.index(g, at, 0), range.length() * from.columns);
      for (std::int64_t i = 0; columns && i < from.rows; ++i)
        copy(from.index(g, i, range.begin), to.index(g, i, at), range.length());
      at += range.length();
    }
  }
  return to;
}

/// Chains of a plan's unit over some k's, for one set of operands.
class Chain {
 public:
  Chain(const GemmPlan& plan, const GemmOperands& x, const GemmProblem& problem, int threads)
      : plan_(plan), x_(x), problem_(problem), threads_(threads) {}

  /// The accumulators after these k's, from zero, or from C where the plan says so of the first.
  Sums run(const KRanges& ranges, bool first) {
    begins_with_c_ = first && !x_.c.empty();
    if (plan_.promotion.interval != 0) return run_promoted(ranges);
    KRanges ordered;
    for (const KRange& range : ranges) {
      const std::int64_t tile = plan_.residue_first;
      const std::int64_t residue = tile == 0 ? 0 : range.length() % tile;
      if (residue != 0) ordered.push_back({range.begin, range.begin + residue});
      if (residue != range.length()) ordered.push_back({range.begin + residue, range.end});
    }
    return x_.row ? run_row(ordered) : run_scalar(ordered);
  }

 private:
  Sums run_promoted(const KRanges& ranges) const {
    Sums sums;
    Partition intervals;
    intervals.tile = plan_.promotion.interval;
    intervals.division = Division::ceil;
    std::int64_t length = 0;
    for (const KRange& range : ranges) length += range.length();
    intervals.parts = static_cast<int>((length + intervals.tile - 1) / intervals.tile);
    for (const KRanges& part : divide(intervals, ranges)) {
      const Sums partial = x_.row ? run_row(part) : run_scalar(part);
      if (sums.empty()) sums.assign(partial.size(), 0.0);
      promote(partial, part.front().begin, sums);
    }
    return sums;
  }

  void promote(const Sums& partial, std::int64_t k, Sums& sums) const;
  Sums run_row(const KRanges& ranges) const;
  Sums run_scalar(const KRanges& ranges) const;
  template <class Real>
  Sums run_fma(const KRanges& ranges) const;

  std::int64_t outputs() const { return x_.a.batch * problem_.m() * problem_.n(); }

  const GemmPlan& plan_;
  const GemmOperands& x_;
  const GemmProblem& problem_;
  int threads_;
  bool begins_with_c_ = false;
};

/// Elements that share a scale: as many as along K where that gives the number of scales, else
/// as few as possible.
std::int64_t elements_per_scale(std::int64_t elements, std::int64_t scales, std::int64_t block) {
  const bool square = scales > 1 && block != 0 && (elements + block - 1) / block == scales;
  return square ? block : (elements + scales - 1) / scales;
}

/// A scale as a value; 1 where there is none.
double scale_at(const CodeMatrix& scales, std::int64_t g, std::int64_t i, std::int64_t j,
                std::int64_t rows, std::int64_t columns, std::int64_t block = 0) {
  if (scales.empty()) return 1;
  const std::int64_t per_row = elements_per_scale(rows, scales.rows, block);
  const std::int64_t per_column = elements_per_scale(columns, scales.columns, block);
  return scalar::decoded(scales.format,
                         scales(scales.batch == 1 ? 0 : g, i / per_row, j / per_column));
}

void Chain::promote(const Sums& partial, std::int64_t k, Sums& sums) const {
  const std::int64_t m = problem_.m(), n = problem_.n();
  const std::int64_t block = problem_.scale_k == 0 ? 0 : k / problem_.scale_k;
  const Format f = formats::fp32;
  using Adder = Promotion::Adder;
  for (std::int64_t g = 0; g < x_.a.batch; ++g) {
    for (std::int64_t i = 0; i < m; ++i) {
      for (std::int64_t j = 0; j < n; ++j) {
        const auto at = static_cast<std::size_t>((g * m + i) * n + j);
        double& sum = sums[at];
        const double p = partial[at];
        if (plan_.promotion.adder == Adder::add) {
          sum = scalar::add(f, sum, p);
          continue;
        }
        const std::int64_t blocks = std::max<std::int64_t>(1, problem_.scale_a.columns);
        const double a = scale_at(problem_.scale_a, g, i, block, m, blocks, problem_.scale_k);
        const double b =
            scale_at(problem_.scale_b, g, block, j, problem_.scale_b.rows, n, problem_.scale_k);
        switch (plan_.promotion.adder) {
          case Adder::scaled_fma: sum = scalar::fma(f, p, scalar::multiply(f, a, b), sum); break;
          case Adder::scale_a_fma: sum = scalar::fma(f, scalar::multiply(f, p, a), b, sum); break;
          case Adder::scale_b_fma: sum = scalar::fma(f, scalar::multiply(f, p, b), a, sum); break;
          default:
            sum = scalar::add(f, sum, scalar::multiply(f, p, scalar::multiply(f, a, b)));
            break;
        }
      }
    }
  }
}

Sums Chain::run_row(const KRanges& ranges) const {
  const MatrixInstruction& row = *x_.row;
  const Engine& engine = require_engine("auto", row);
  const std::int64_t m = problem_.m(), n = problem_.n();
  CodeMatrix d = make_matrix(row.d, x_.a.batch, m, n);
  // Ranges of whole instructions run as one chain once they lie side by side.
  bool whole = true;
  for (std::size_t i = 0; i + 1 < ranges.size(); ++i)
    whole = whole && ranges[i].length() % row.shape.k == 0;
  CodeMatrix a, b, e;
  KRanges parts = ranges;
  const bool gathered = whole && ranges.size() > 1;
  if (gathered) {
    KRanges stored_ranges;
    for (const KRange& range : ranges) stored_ranges.push_back(stored(row, range));
    a = joined(x_.a, stored_ranges, true);
    if (!x_.e.empty()) e = joined(x_.e, stored_ranges, true);
    b = joined(x_.b, ranges, false);
    parts = {{0, b.rows}};
  }
  for (std::int64_t g = 0; g < x_.a.batch; ++g) {
    MatrixProduct product;
    product.m = m;
    product.n = n;
    const ConstMatrix sums_so_far = std::as_const(d).matrix(g);
    product.d = {codes_of(row.d, d.bytes.data() + (sums_so_far.codes.data - d.bytes.data())), n, 1};
    product.modifiers.zero_addend = !begins_with_c_;
    if (begins_with_c_) product.c = x_.c.matrix(x_.c.batch == 1 ? 0 : g);
    for (const KRange& range : parts) {
      product.k = range.length();
      const std::int64_t begin = stored(row, range).begin;
      product.a = (gathered ? a : x_.a).matrix(g).from(0, begin);
      product.b = (gathered ? b : x_.b).matrix(g).from(range.begin, 0);
      if (!x_.e.empty()) product.e = (gathered ? e : x_.e).matrix(g).from(0, begin);
      multiply(engine, row, product, threads_);
      product.modifiers.zero_addend = false;
      product.c = sums_so_far;
    }
  }
  Sums sums(static_cast<std::size_t>(d.size()));
  for (std::size_t i = 0; i < sums.size(); ++i)
    sums[i] = scalar::decoded(row.d, d[static_cast<std::int64_t>(i)]);
  return sums;
}

template <class Real>
Sums Chain::run_fma(const KRanges& ranges) const {
  const std::int64_t m = problem_.m(), n = problem_.n(), k = x_.a.columns;
  const std::vector<Real> b(x_.b_values.begin(), x_.b_values.end());
  Sums sums(static_cast<std::size_t>(outputs()));
  formats::parallel_for(
      static_cast<std::size_t>(x_.a.batch * m), 4, threads_,
      [&](std::size_t begin, std::size_t end) {
        std::vector<Real> sum(static_cast<std::size_t>(n));
        for (std::size_t line = begin; line < end; ++line) {
          const auto g = static_cast<std::int64_t>(line) / m;
          std::fill(sum.begin(), sum.end(), Real{0});
          for (const KRange& range : ranges) {
            for (std::int64_t i = range.begin; i < range.end; ++i)
              multiply_add::fma_row(
                  static_cast<Real>(x_.a_values[line * static_cast<std::size_t>(k) +
                                                static_cast<std::size_t>(i)]),
                  b.data() + (g * k + i) * n, sum.data(), n);
          }
          std::copy(sum.begin(), sum.end(), sums.begin() + static_cast<std::int64_t>(line) * n);
        }
      });
  return sums;
}

Sums Chain::run_scalar(const KRanges& ranges) const {
  if (x_.sum == formats::fp32) return run_fma<float>(ranges);
  if (x_.sum == formats::fp64) return run_fma<double>(ranges);
  const std::int64_t n = problem_.n(), k = x_.a.columns;
  Sums sums(static_cast<std::size_t>(outputs()));
  const bool integer = formats::is_integer(x_.sum);
  formats::parallel_for(
      sums.size() / static_cast<std::size_t>(n), 4, threads_,
      [&](std::size_t begin, std::size_t end) {
        for (auto line = static_cast<std::int64_t>(begin); line < static_cast<std::int64_t>(end);
             ++line) {
          const std::int64_t g = line / problem_.m();
          for (std::int64_t j = 0; j < n; ++j) {
            double sum = 0;
            for (const KRange& range : ranges) {
              for (std::int64_t i = range.begin; i < range.end; ++i) {
                const double a = x_.a_values[static_cast<std::size_t>(line * k + i)];
                const double b = x_.b_values[static_cast<std::size_t>((g * k + i) * n + j)];
                // Products of two FP16 numbers are exact in FP32, and so is a sum in FP64 of
                // such a product and an FP16 number, but for 2^-48 beside 2^31, which no tie
                // of FP16 can tell apart: overflow is decided long before.
                sum = integer ? scalar::wrapped(sum + a * b) : scalar::rounded(x_.sum, a * b + sum);
              }
            }
            sums[static_cast<std::size_t>(line * n + j)] = sum;
          }
        }
      });
  return sums;
}

}  // namespace

GemmOperands prepare(const GemmPlan& plan, const GemmProblem& problem, std::string_view where) {
  if (plan.loads.lanes != 0) {
    GemmPlan plain = plan;
    plain.loads = {};
    return prepare(plain, loaded(problem, plan.loads), where);
  }
  GemmOperands x;
  if (plan.unit.arch == "simt") {
    x.sum = scalar_format(plan.unit, where);
    x.a = CodeMatrix{problem.a.format, problem.a.batch, problem.m(), problem.k(), {}};
    x.b = CodeMatrix{problem.b.format, problem.b.batch, problem.k(), problem.n(), {}};
    const bool integer = formats::is_integer(x.sum);
    x.a_values = values_of(problem.a, integer ? problem.a.format : x.sum, plan.input.rounding);
    x.b_values = values_of(problem.b, integer ? problem.b.format : x.sum, plan.input.rounding);
    return x;
  }
  x.row = require_instruction(plan.unit.arch, plan.unit.instruction, where);
  x.sum = x.row->d;
  x.unit_k = x.row->shape.k;
  require_product(*x.row, problem.k(), where);
  for (const auto& [matrix, format] : {std::pair{&problem.a, x.row->a}, {&problem.b, x.row->b}}) {
    if (formats::is_integer(matrix->format) != formats::is_integer(format))
      throw Error(std::string(where), std::string(std::string_view(x.row->name)) + " multiplies " +
                                          formats::name_of(format) + ", not " +
                                          formats::name_of(matrix->format));
  }
  if (plan.input.pieces > 1) {
    std::vector<int> a_ranks, b_ranks;
    for (const auto& [a, b] : piece_products(plan.input)) {
      a_ranks.push_back(a);
      b_ranks.push_back(b);
    }
    x.expansion = std::ssize(a_ranks);
    x.a = expanded(pieces_of(problem.a, x.row->a, plan.input), a_ranks, x.unit_k, true);
    x.b = expanded(pieces_of(problem.b, x.row->b, plan.input), b_ranks, x.unit_k, false);
  } else {
    x.a = converted(problem.a, x.row->a, plan.input);
    x.b = converted(problem.b, x.row->b, plan.input);
  }
  if (x.row->sparsity.group_elements != 0) compress(*x.row, x, where);
  if (plan.epilogue.addition == Epilogue::Addition::initial) {
    if (problem.c.empty()) throw Error(std::string(where), "add=initial needs a C");
    x.c = converted(problem.c, x.row->c, {});
  }
  return x;
}

std::vector<Sums> partial_sums(const GemmPlan& plan, const GemmOperands& x,
                               const GemmProblem& problem, int threads) {
  GemmPlan scaled = plan;  // in elements of the expanded K
  const std::int64_t e = x.expansion;
  for (std::int64_t* length :
       {&scaled.residue_first, &scaled.promotion.interval, &scaled.lanes.tile, &scaled.split.tile})
    *length *= e;
  const std::int64_t k = x.b.rows;  // filled up where pieces or loads ask for it
  Chain chain(scaled, x, problem, threads);
  std::vector<Sums> parts;
  for (const KRanges& slice : divide(scaled.split, {{0, k}})) {
    std::vector<Sums> lanes;
    for (const KRanges& lane : divide(scaled.lanes, slice)) {
      lanes.push_back(chain.run(lane, parts.empty() && lanes.empty()));
    }
    parts.push_back(add_up(plan.lanes, plan.epilogue.compute, std::move(lanes)));
  }
  return parts;
}

Sums add_up(const Partition& partition, const Format& compute, std::vector<Sums> parts) {
  if (parts.size() <= 1) return parts.empty() ? Sums{} : std::move(parts.front());
  if (partition.sums != formats::fp32 && partition.sums != compute) {
    for (Sums& part : parts)
      for (double& x : part) x = scalar::rounded(partition.sums, x);
  }
  const auto add = [&](Sums& to, const Sums& other) {
    for (std::size_t i = 0; i < to.size(); ++i) to[i] = scalar::add(compute, to[i], other[i]);
  };
  switch (partition.order) {
    case SumOrder::descending: std::reverse(parts.begin(), parts.end()); [[fallthrough]];
    case SumOrder::ascending:
      for (std::size_t p = 1; p < parts.size(); ++p) add(parts[0], parts[p]);
      break;
    case SumOrder::adjacent:
      for (std::size_t step = 1; step < parts.size(); step *= 2)
        for (std::size_t p = 0; p + step < parts.size(); p += 2 * step)
          add(parts[p], parts[p + step]);
      break;
    case SumOrder::halves:
      for (std::size_t count = parts.size(); count > 1;) {
        const std::size_t half = (count + 1) / 2;
        for (std::size_t p = 0; p + half < count; ++p) add(parts[p], parts[p + half]);
        count = half;
      }
      break;
  }
  return std::move(parts.front());
}

CodeMatrix finish(const Epilogue& e, const GemmProblem& problem, const Sums& sums) {
  const std::int64_t m = problem.m(), n = problem.n();
  const Format f = e.compute;
  const bool initial = e.addition == Epilogue::Addition::initial;
  const double alpha = initial ? 1 : scalar::rounded(f, e.alpha), beta = scalar::rounded(f, e.beta);
  const bool has_c = !initial && !problem.c.empty() && e.beta != 0,
             has_bias = !problem.bias.empty();
  const bool scaled = problem.scale_k == 0 && !(problem.scale_a.empty() && problem.scale_b.empty());
  const auto number = [&](const CodeMatrix& from, std::int64_t g, std::int64_t i, std::int64_t j) {
    return scalar::rounded(f, scalar::decoded(from.format, from(from.batch == 1 ? 0 : g, i, j)));
  };
  CodeMatrix d = make_matrix(e.output, problem.a.batch, m, n);
  for (std::int64_t at = 0; at < d.size(); ++at) {
    const std::int64_t g = at / (m * n), i = at / n % m, j = at % n;
    double factor = alpha, x = sums[static_cast<std::size_t>(at)];
    if (scaled) {
      const double a = scale_at(problem.scale_a, g, i, 0, m, 1);
      const double b = scale_at(problem.scale_b, g, 0, j, 1, n);
      if (e.scales == Epilogue::Scales::joint) {
        factor = scalar::multiply(f, alpha, scalar::multiply(f, a, b));
      } else {
        const bool a_first = e.scales == Epilogue::Scales::a_then_b;
        x = scalar::multiply(f, scalar::multiply(f, x, a_first ? a : b), a_first ? b : a);
      }
    }
    if (has_c || has_bias) {
      const double c = has_c ? number(problem.c, g, i, j) : number(problem.bias, g, 0, j);
      const double weight = has_c ? beta : 1;
      switch (e.addition) {
        case Epilogue::Addition::fma_product:
          x = scalar::fma(f, factor, x, scalar::multiply(f, weight, c));
          break;
        case Epilogue::Addition::fma_addend:
          x = scalar::fma(f, weight, c, scalar::multiply(f, factor, x));
          break;
        case Epilogue::Addition::separate:
          x = scalar::add(f, scalar::multiply(f, factor, x), scalar::multiply(f, weight, c));
          break;
        case Epilogue::Addition::rounded:
          x = scalar::add(f, scalar::rounded(e.output, scalar::multiply(f, factor, x)),
                          scalar::multiply(f, weight, c));
          break;
        case Epilogue::Addition::initial: break;  // a bias beside it is added below
      }
      if ((has_c || initial) && has_bias) x = scalar::add(f, x, number(problem.bias, g, 0, j));
    } else {
      x = scalar::multiply(f, factor, x);
    }
    d.set(at, scalar::encoded(e.output, x));
  }
  return d;
}

CodeMatrix execute(const GemmPlan& plan, const GemmProblem& problem, int threads,
                   const std::function<bool(std::int64_t)>& progress) {
  // Rows in blocks, so that accumulators of large products need little memory.
  constexpr std::int64_t outputs_at_once = std::int64_t{1} << 21;
  const std::int64_t m = problem.m();
  const std::int64_t rows = std::clamp<std::int64_t>(
      outputs_at_once / std::max<std::int64_t>(1, problem.n() * problem.a.batch), 1, m);
  CodeMatrix d = make_matrix(plan.epilogue.output, problem.a.batch, m, problem.n());
  for (std::int64_t begin = 0; begin < m; begin += rows) {
    const std::int64_t count = std::min(rows, m - begin);
    Selection2d block;
    for (std::int64_t i = begin; i < begin + count; ++i) block.rows.push_back(i);
    const GemmProblem part = count == m ? GemmProblem{} : select(problem, block);
    const GemmProblem& x = count == m ? problem : part;
    const GemmOperands operands = prepare(plan, x, "plan");
    const CodeMatrix result =
        finish(plan.epilogue, x,
               add_up(plan.split, plan.epilogue.compute, partial_sums(plan, operands, x, threads)));
    for (std::int64_t g = 0; g < result.batch; ++g)
      for (std::int64_t i = 0; i < count; ++i)
        for (std::int64_t j = 0; j < result.columns; ++j)
          d.set(d.index(g, begin + i, j), result(g, i, j));
    if (progress && !progress(begin + count)) break;
  }
  return d;
}

}  // namespace guardbit::emulator
