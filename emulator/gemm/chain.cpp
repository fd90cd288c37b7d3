#include "emulator/gemm/chain.hpp"

#include <algorithm>
#include <optional>
#include <utility>

#include "emulator/engine/continuation.hpp"
#include "emulator/engine/engines.hpp"
#include "emulator/engine/kernels/chain/multiply_add.hpp"
#include "emulator/gemm/few_dots.hpp"
#include "emulator/gemm/scalar.hpp"
#include "formats/support/parallel.hpp"

namespace guardbit::emulator {

namespace {

/// The columns of A's storage that hold these k's.
KRange stored(const MatrixInstruction& row, const KRange& range) {
  const Sparsity& s = row.sparsity;
  if (s.group_elements == 0) return range;
  return {range.begin / s.group_elements * s.stored_per_group,
          range.end / s.group_elements * s.stored_per_group};
}

std::int64_t length_of(const KRanges& ranges) {
  std::int64_t length = 0;
  for (const KRange& range : ranges) length += range.length();
  return length;
}

/// Copies ranges of columns (of A) or rows (of B) together.
CodeMatrix joined(const CodeMatrix& from, const KRanges& ranges, bool columns) {
  const std::int64_t k = length_of(ranges);
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

}  // namespace

bool chains_fit(const GemmPlan& plan, const GemmOperands& x) {
  if (!x.row || can_be_chained(*x.row)) return true;
  const std::int64_t most = x.row->shape.k;
  if (x.expansion != 1 || !x.apart.empty()) return false;
  if (!plan.stream_k.none()) return x.k() <= most;
  for (const KRanges& slice : divide(plan.split, {{0, x.k()}})) {
    for (const KRanges& lane : divide(plan.lanes, slice)) {
      const std::int64_t length = length_of(lane), interval = plan.promotion.interval;
      if ((interval == 0 ? length : std::min(length, interval)) > most) return false;
    }
  }
  return true;
}

Sums Chain::run(const KRanges& ranges, bool first) const {
  const bool begins_with_c = first && !x_.c.empty();
  if (plan_.promotion.interval != 0) return run_promoted(ranges, begins_with_c);
  KRanges ordered;
  for (const KRange& range : ranges) {
    const std::int64_t tile = plan_.residue_first;
    const std::int64_t residue = tile == 0 ? 0 : range.length() % tile;
    if (residue != 0) ordered.push_back({range.begin, range.begin + residue});
    if (residue != range.length()) ordered.push_back({range.begin + residue, range.end});
  }
  return x_.row ? run_row(ordered, begins_with_c) : run_scalar(ordered);
}

Sums Chain::run_promoted(const KRanges& ranges, bool begins_with_c) const {
  Sums sums;
  Partition intervals;
  intervals.tile = plan_.promotion.interval;
  intervals.division = Division::ceil;
  const std::int64_t length = length_of(ranges);
  intervals.parts = static_cast<int>((length + intervals.tile - 1) / intervals.tile);
  for (const KRanges& part : divide(intervals, ranges)) {
    const Sums partial = x_.row ? run_row(part, begins_with_c && sums.empty()) : run_scalar(part);
    if (sums.empty()) sums.assign(partial.size(), 0.0);
    promote(partial, part.front().begin, sums);
  }
  return sums;
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

Sums Chain::run_row(const KRanges& ranges, bool begins_with_c) const {
  if (x_.few && !begins_with_c)
    if (Sums sums; x_.few->run(ranges, sums)) return sums;
  const MatrixInstruction& row = *x_.row;
  const std::optional<Continuation> continuation = continuation_of(row);
  const Engine& engine = require_engine("auto", continuation ? continuation->row : row);
  const std::int64_t m = problem_.m(), n = problem_.n();
  CodeMatrix d = make_matrix(row.d, x_.a.batch, m, n);
  // Ranges of whole instructions run as one chain once they lie side by side; so do those that one
  // instruction has room for, where it is the only one.
  require_chain(row, length_of(ranges), "plan");
  bool whole = true;
  for (std::size_t i = 0; i + 1 < ranges.size(); ++i)
    whole = whole && ranges[i].length() % row.shape.k == 0;
  whole = whole || !can_be_chained(row);
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
    product.modifiers.zero_addend = !begins_with_c;
    if (begins_with_c) product.c = x_.c.matrix(x_.c.batch == 1 ? 0 : g);
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
Sums Chain::run_dots(const KRanges& ranges) const {
  const std::int64_t k = x_.a.columns;
  Sums sums(static_cast<std::size_t>(x_.a.batch));
  for (std::int64_t g = 0; g < x_.a.batch; ++g) {
    Real sum{0};
    for (const KRange& range : ranges)
      sum = multiply_add::dot(x_.a_values.data() + g * k + range.begin,
                              x_.b_values.data() + g * k + range.begin, range.length(), sum,
                              x_.rounds_products);
    sums[static_cast<std::size_t>(g)] = sum;
  }
  return sums;
}

template <class Real>
Sums Chain::run_fma(const KRanges& ranges) const {
  const std::int64_t m = problem_.m(), n = problem_.n(), k = x_.a.columns;
  if (m == 1 && n == 1) return run_dots<Real>(ranges);
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
                  b.data() + (g * k + i) * n, sum.data(), n, x_.rounds_products);
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

}  // namespace guardbit::emulator
