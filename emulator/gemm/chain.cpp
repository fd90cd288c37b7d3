#include "emulator/gemm/chain.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "emulator/engine/continuation.hpp"
#include "emulator/engine/engines.hpp"
#include "emulator/engine/kernels/chain/multiply_add.hpp"
#include "emulator/gemm/few_dots.hpp"
#include "emulator/gemm/scalar.hpp"
#include "formats/support/parallel.hpp"

namespace guardbit::emulator {

namespace {

/// The columns of A's storage that hold these k's.
KRange stored(const MatrixInstruction& instruction, const KRange& range) {
  const Sparsity& s = instruction.sparsity;
  if (s.group_elements == 0) return range;
  return {range.begin / s.group_elements * s.stored_per_group,
          range.end / s.group_elements * s.stored_per_group};
}

/// Copies ranges of columns (of A) or rows (of B) together.
CodeMatrix joined(const CodeMatrix& from, const KRanges& ranges, bool columns) {
  const std::int64_t k = length_of(ranges);
  CodeMatrix to = columns ? make_matrix(from.format, from.batch, from.rows, k)
                          : make_matrix(from.format, from.batch, k, from.columns);
  std::int64_t at = 0;
  for (const KRange& range : ranges) {
    if (columns) {
      copy_matrix(from.part(0, from.rows, range.begin, range.length()), to, 0, 0, at);
    } else {
      copy_matrix(from.part(range.begin, range.length(), 0, from.columns), to, 0, at, 0);
    }
    at += range.length();
  }
  return to;
}

/// Scales of the lines of one batch entry, for one block of K.
std::vector<float> scales_of_lines(std::int64_t count, auto&& scale_of) {
  std::vector<float> scales(static_cast<std::size_t>(count));
  for (std::int64_t line = 0; line < count; ++line)
    scales[static_cast<std::size_t>(line)] = static_cast<float>(scale_of(line));
  return scales;
}

/// sum[j] and a partial sum, added as the adder says.
void promote_row(Promotion::Adder adder, const Sums& partial, std::size_t first, float a,
                 const std::vector<float>& b, std::span<float> sum) {
  using Adder = Promotion::Adder;
  const auto each = [&](auto&& add) {
    const std::span<const float> singles = partial.singles();
    for (std::size_t j = 0; j < sum.size() && !singles.empty(); ++j)
      sum[j] = add(singles[first + j], j);
    for (std::size_t j = 0; j < sum.size() && singles.empty(); ++j)
      sum[j] = add(static_cast<float>(partial[first + j]), j);
  };
  switch (adder) {
    case Adder::add: return each([&](float p, std::size_t j) { return sum[j] + p; });
    case Adder::scaled_fma:
      return each([&](float p, std::size_t j) { return std::fma(p, a * b[j], sum[j]); });
    case Adder::scale_a_fma:
      return each([&](float p, std::size_t j) { return std::fma(p * a, b[j], sum[j]); });
    case Adder::scale_b_fma:
      return each([&](float p, std::size_t j) { return std::fma(p * b[j], a, sum[j]); });
    case Adder::scaled_add:
      return each([&](float p, std::size_t j) { return sum[j] + p * (a * b[j]); });
  }
}

GemmOperands without_c(const GemmOperands& operands) {
  GemmOperands x = operands;
  x.c = {};
  return x;
}

/// The first model that takes the instruction, or what continues it where it has no addend.
const Engine& first_model_of(const MatrixInstruction& instruction) {
  const std::optional<Continuation> continuation = continuation_of(instruction);
  return require_engine("auto", continuation ? continuation->instruction : instruction);
}

}  // namespace

std::int64_t length_of(const KRanges& ranges) {
  std::int64_t length = 0;
  for (const KRange& range : ranges) length += range.length();
  return length;
}

std::vector<KRanges> intervals_of(const Promotion& promotion, const KRanges& ranges) {
  Partition intervals;
  intervals.tile = promotion.interval;
  intervals.division = Division::ceil;
  intervals.parts =
      static_cast<int>((length_of(ranges) + promotion.interval - 1) / promotion.interval);
  return divide(intervals, ranges);
}

Sums Chain::run(const KRanges& ranges, bool first) const {
  const bool begins_with_c = first && !x_.c.empty();
  if (!begins_with_c && !x_.c.empty() && !x_.instruction) {
    const GemmOperands from_zero = without_c(x_);
    return Chain(plan_, from_zero, problem_, execution_).run(ranges, first);
  }
  if (plan_.promotion.interval != 0) return run_promoted(ranges, begins_with_c);
  return x_.instruction ? run_instruction(ordered(ranges), begins_with_c)
                        : run_scalar(ordered(ranges));
}

void Chain::run_into(const KRanges& ranges, bool first, CodeMatrix& sums, std::int64_t g,
                     std::int64_t i, std::int64_t j) const {
  const Matrix from = sums.writable_matrix(g).from(i, j);
  run_instruction(ordered(ranges), first && !x_.c.empty(),
                  {from.codes.data, sums.rows * sums.columns, sums.columns});
}

/// Incomplete tiles first, where the plan says so.
KRanges Chain::ordered(const KRanges& ranges) const {
  const std::int64_t tile = plan_.residue_first;
  if (tile == 0) return ranges;
  KRanges result;
  for (const KRange& range : ranges) {
    const std::int64_t residue = range.length() % tile;
    if (residue != 0) result.push_back({range.begin, range.begin + residue});
    if (residue != range.length()) result.push_back({range.begin + residue, range.end});
  }
  return result;
}

Sums Chain::run_promoted(const KRanges& ranges, bool begins_with_c) const {
  std::vector<float> sums;
  const GemmOperands from_zero = without_c(x_);
  const Chain others(plan_, from_zero, problem_, execution_);
  for (const KRanges& part : intervals_of(plan_.promotion, ranges)) {
    const Sums partial = x_.instruction ? run_instruction(part, begins_with_c && sums.empty())
                                        : (sums.empty() ? *this : others).run_scalar(part);
    if (sums.empty()) sums.assign(partial.size(), 0.0F);
    if (is_stopped()) break;
    promote(partial, part.front().begin, sums);
  }
  return sums;
}

void Chain::promote(const Sums& partial, std::int64_t place, std::span<float> sums) const {
  const CodeMatrix &of_a = problem_.scale_a, &of_b = problem_.scale_b;
  const std::int64_t all = problem_.k(), block = problem_.scale_k;
  const std::int64_t k = std::min(x_.element_at(place), all - 1);
  const bool scaled = takes_scales(plan_.promotion);
  std::vector<float> a, b;
  for (std::int64_t g = 0; g < x_.a.batch; ++g) {
    if (scaled) {
      a = scales_of_lines(m(),
                          [&](std::int64_t i) { return scale_at(of_a, g, i, k, m(), all, block); });
      b = scales_of_lines(n(),
                          [&](std::int64_t j) { return scale_at(of_b, g, k, j, all, n(), block); });
    }
    formats::parallel_for(static_cast<std::size_t>(m()), 64, execution_.threads,
                          [&](std::size_t begin, std::size_t end) {
                            for (std::size_t i = begin; i < end; ++i) {
                              const auto columns = static_cast<std::size_t>(n());
                              const std::size_t first =
                                  (static_cast<std::size_t>(g * m()) + i) * columns;
                              promote_row(plan_.promotion.adder, partial, first, scaled ? a[i] : 1,
                                          b, sums.subspan(first, columns));
                            }
                          });
  }
}

Sums Chain::run_instruction(const KRanges& ranges, bool begins_with_c) const {
  if (x_.few && !begins_with_c)
    if (std::vector<double> sums; x_.few->run(ranges, sums)) return sums;
  if (x_.instruction->d == formats::fp32) {
    std::vector<float> sums(static_cast<std::size_t>(outputs()));
    run_instruction(ranges, begins_with_c,
                    {reinterpret_cast<std::byte*>(sums.data()), m() * n(), n()});
    return sums;
  }
  CodeMatrix d = make_matrix(x_.instruction->d, x_.a.batch, m(), n());
  run_instruction(ranges, begins_with_c, {d.bytes.writable(), m() * n(), n()});
  return sums_of(d);
}

void Chain::run_instruction(const KRanges& ranges, bool begins_with_c, const Target& to) const {
  const MatrixInstruction& instruction = *x_.instruction;
  const Engine& engine =
      execution_.engine != nullptr ? *execution_.engine : first_model_of(instruction);
  // Ranges of whole instructions run as one chain once they lie side by side; so do those that one
  // instruction has room for, where it is the only one.
  require_chain(instruction, length_of(ranges), "plan");
  bool whole = true;
  for (std::size_t i = 0; i + 1 < ranges.size(); ++i)
    whole = whole && ranges[i].length() % instruction.shape.k == 0;
  whole = whole || !can_be_chained(instruction);
  CodeMatrix a, b, e;
  KRanges parts = ranges;
  const bool gathered = whole && ranges.size() > 1;
  if (gathered) {
    KRanges stored_ranges;
    for (const KRange& range : ranges) stored_ranges.push_back(stored(instruction, range));
    a = joined(x_.a, stored_ranges, true);
    if (!x_.e.empty()) e = joined(x_.e, stored_ranges, true);
    b = joined(x_.b, ranges, false);
    parts = {{0, b.rows}};
  }
  const std::int64_t width = formats::container_bits(instruction.d) / 8;
  for (std::int64_t g = 0; g < x_.a.batch; ++g) {
    MatrixProduct product;
    product.m = m();
    product.n = n();
    product.stop = execution_.stop;
    std::byte* const data = to.data + g * to.batch_stride * width;
    const ConstMatrix sums_so_far = {codes_of(instruction.d, static_cast<const std::byte*>(data)),
                                     to.row_stride};
    product.d = {codes_of(instruction.d, data), to.row_stride};
    product.modifiers.zero_addend = !begins_with_c;
    if (begins_with_c) product.c = x_.c.matrix(x_.c.batch == 1 ? 0 : g);
    for (const KRange& range : parts) {
      product.k = range.length();
      const std::int64_t begin = stored(instruction, range).begin;
      product.a = (gathered ? a : x_.a).matrix(g).from(0, begin);
      product.b = (gathered ? b : x_.b).matrix(g).from(range.begin, 0);
      if (!x_.e.empty()) product.e = (gathered ? e : x_.e).matrix(g).from(0, begin);
      multiply(engine, instruction, product, execution_.threads);
      product.modifiers.zero_addend = false;
      product.c = sums_so_far;
    }
  }
}

namespace {

/// Row `i` of an entry, whose elements are native numbers.
template <class Real>
const Real* numbers(const CodeMatrix& matrix, std::int64_t g, std::int64_t i) {
  return reinterpret_cast<const Real*>(matrix.bytes.data()) + matrix.place(g, i, 0);
}

std::vector<double> decoded(const CodeMatrix& matrix) {
  std::vector<double> values(static_cast<std::size_t>(matrix.size()));
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] = scalar::decoded(matrix.format, matrix[static_cast<std::int64_t>(i)]);
  return values;
}

/// What the chains begin with: zeros, or the numbers of `c`, one entry of which serves all.
template <class Real>
std::vector<Real> first_sums(const CodeMatrix& c, std::int64_t outputs) {
  std::vector<Real> sums(static_cast<std::size_t>(outputs));
  if (c.empty()) return sums;
  const Sums numbers = sums_of(c);
  for (std::size_t i = 0; i < sums.size(); ++i)
    sums[i] = static_cast<Real>(numbers[i % numbers.size()]);
  return sums;
}

}  // namespace

template <class Real>
Sums Chain::run_dots(const KRanges& ranges) const {
  std::vector<Real> sums = first_sums<Real>(x_.c, outputs());
  for (std::int64_t g = 0; g < x_.a.batch; ++g) {
    Real& sum = sums[static_cast<std::size_t>(g)];
    for (const KRange& range : ranges)
      sum = multiply_add::dot(numbers<Real>(x_.a, g, 0) + range.begin,
                              numbers<Real>(x_.b, g, range.begin), range.length(), sum,
                              x_.products.has_value());
  }
  return sums;
}

template <class Real>
Sums Chain::run_fma(const KRanges& ranges) const {
  if (m() == 1 && n() == 1 && x_.b.all_strides().row == 1) return run_dots<Real>(ranges);
  std::vector<Real> sums = first_sums<Real>(x_.c, outputs());
  // Rows of B that stay in the second-level cache while some rows of A pass.
  constexpr std::size_t lines_together = 16;
  const std::int64_t together = std::max<std::int64_t>(8, (std::int64_t{1} << 16) / n());
  formats::parallel_for(static_cast<std::size_t>(x_.a.batch * m()), lines_together,
                        execution_.threads, [&](std::size_t begin, std::size_t end) {
                          for (const KRange& range : ranges) {
                            for (std::int64_t k = range.begin; k < range.end; k += together) {
                              if (is_stopped()) return;
                              for (std::size_t line = begin; line < end; ++line)
                                add_products(static_cast<std::int64_t>(line),
                                             {k, std::min(range.end, k + together)},
                                             sums.data() + static_cast<std::int64_t>(line) * n());
                            }
                          }
                        });
  return sums;
}

template <class Real>
void Chain::add_products(std::int64_t line, const KRange& range, Real* sums) const {
  const std::int64_t g = line / m();
  const Real* const a = numbers<Real>(x_.a, g, line % m());
  const Real* b = numbers<Real>(x_.b, g, range.begin);
  const std::int64_t stride = x_.b.all_strides().row;
  for (std::int64_t k = range.begin; k < range.end; ++k, b += stride)
    multiply_add::fma_row(a[k], b, sums, n(), x_.products.has_value());
}

namespace {

/// Products of numbers of a format that has at most half of FP32's fraction, rounded to it.
class NarrowProducts {
 public:
  explicit NarrowProducts(const Format& f)
      : format_(f),
        lost_(formats::fp32.fraction_bits - f.fraction_bits),
        least_(std::ldexp(1.0F, formats::min_exponent(f))),
        most_(std::ldexp(1.0F, formats::max_exponent(f))) {}

  float operator()(float a, float b) const {
    // Exact in FP64, and in FP32 where no rounding is near the ends of the range.
    const double exact = static_cast<double>(a) * static_cast<double>(b);
    const auto product = static_cast<float>(exact);
    const float size = std::fabs(product);
    if (lost_ == 0 || product == 0) return product;
    if (!(size >= least_ && size < most_) || static_cast<double>(product) != exact)
      return static_cast<float>(scalar::rounded(format_, exact));
    auto word = std::bit_cast<std::uint32_t>(product);
    word += (1U << (lost_ - 1)) - 1 + (word >> lost_ & 1);
    return std::bit_cast<float>(word >> lost_ << lost_);
  }

 private:
  Format format_;
  int lost_;
  float least_, most_;
};

/// Adds numbers as a tree of neighbours, one after the other: of the sums of 2^i of them, each
/// waits for its neighbour.
class NeighbourTree {
 public:
  void add(float x) {
    for (std::uint64_t full = count_++; (full & 1) != 0; full >>= 1) x = waiting_[--size_] + x;
    waiting_[size_++] = x;
  }
  /// The sum; the last neighbours may be missing.
  float sum() const {
    if (size_ == 0) return 0;
    float x = waiting_[size_ - 1];
    for (std::size_t i = size_ - 1; i-- > 0;) x = waiting_[i] + x;
    return x;
  }

 private:
  std::array<float, 64> waiting_{};
  std::size_t size_ = 0;
  std::uint64_t count_ = 0;
};

}  // namespace

Sums Chain::run_tree(const KRanges& ranges) const {
  const NarrowProducts product(*x_.products);
  std::vector<float> sums(static_cast<std::size_t>(outputs()));
  const std::int64_t stride = x_.b.all_strides().row;
  formats::parallel_for(static_cast<std::size_t>(x_.a.batch * m()), 4, execution_.threads,
                        [&](std::size_t begin, std::size_t end) {
                          for (auto line = static_cast<std::int64_t>(begin);
                               line < static_cast<std::int64_t>(end); ++line) {
                            if (is_stopped()) return;
                            const std::int64_t g = line / m();
                            const float* const a = numbers<float>(x_.a, g, line % m());
                            for (std::int64_t j = 0; j < n(); ++j) {
                              NeighbourTree tree;
                              for (const KRange& range : ranges) {
                                const float* b = numbers<float>(x_.b, g, range.begin) + j;
                                for (std::int64_t k = range.begin; k < range.end;
                                     ++k, b += stride) {
                                  tree.add(product(a[k], *b));
                                }
                              }
                              sums[static_cast<std::size_t>(line * n() + j)] = tree.sum();
                            }
                          }
                        });
  return sums;
}

Sums Chain::run_narrow(const KRanges& ranges) const {
  const NarrowProducts product(*x_.products);
  std::vector<float> sums = first_sums<float>(x_.c, outputs());
  const std::int64_t stride = x_.b.all_strides().row;
  formats::parallel_for(static_cast<std::size_t>(x_.a.batch * m()), 4, execution_.threads,
                        [&](std::size_t begin, std::size_t end) {
                          for (auto line = static_cast<std::int64_t>(begin);
                               line < static_cast<std::int64_t>(end); ++line) {
                            if (is_stopped()) return;
                            const std::int64_t g = line / m();
                            const float* const a = numbers<float>(x_.a, g, line % m());
                            float* const sum = sums.data() + line * n();
                            for (const KRange& range : ranges) {
                              const float* b = numbers<float>(x_.b, g, range.begin);
                              for (std::int64_t k = range.begin; k < range.end; ++k, b += stride)
                                for (std::int64_t j = 0; j < n(); ++j)
                                  sum[j] += product(a[k], b[j]);
                            }
                          }
                        });
  return sums;
}

Sums Chain::run_scalar(const KRanges& ranges) const {
  if (plan_.products == ProductOrder::tree) return run_tree(ranges);
  const bool has_narrow_products = x_.products && *x_.products != x_.sum;
  if (has_narrow_products) return run_narrow(ranges);
  if (x_.sum == formats::fp32) return run_fma<float>(ranges);
  if (x_.sum == formats::fp64) return run_fma<double>(ranges);
  const std::int64_t k = length_of(ranges);
  const std::vector<double> of_a = decoded(joined(x_.a, ranges, true)),
                            of_b = decoded(joined(x_.b, ranges, false));
  std::vector<double> sums = first_sums<double>(x_.c, outputs());
  const bool integer = formats::is_integer(x_.sum);
  formats::parallel_for(
      sums.size() / static_cast<std::size_t>(n()), 4, execution_.threads,
      [&](std::size_t begin, std::size_t end) {
        for (auto line = static_cast<std::int64_t>(begin); line < static_cast<std::int64_t>(end);
             ++line) {
          if (is_stopped()) return;
          const std::int64_t g = line / m();
          for (std::int64_t j = 0; j < n(); ++j) {
            double& total = sums[static_cast<std::size_t>(line * n() + j)];
            double sum = total;
            for (std::int64_t i = 0; i < k; ++i) {
              const double a = of_a[static_cast<std::size_t>(line * k + i)];
              const double b = of_b[static_cast<std::size_t>((g * k + i) * n() + j)];
              // Products of two FP16 numbers are exact in FP32, and so is a sum in FP64 of
              // such a product and an FP16 number, but for 2^-48 beside 2^31, which no tie
              // of FP16 can tell apart: overflow is decided long before.
              sum = integer ? scalar::wrapped(sum + a * b) : scalar::rounded(x_.sum, a * b + sum);
            }
            total = sum;
          }
        }
      });
  return sums;
}

}  // namespace guardbit::emulator
