#include "experiments/accuracy/exact_product.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <string>

#include "emulator/catalogue/instruction_catalogue.hpp"
#include "emulator/engine/engines.hpp"
#include "emulator/engine/matrix_product.hpp"
#include "emulator/gemm/scalar.hpp"
#include "formats/support/error.hpp"
#include "formats/support/parallel.hpp"

// The product without rounding: every row of A and every column of B is cut into slices of `step`
// bits below its largest exponent, whole numbers below 2^step. Products of slices s of A and t of B
// with one s + t = q have the same unit. There are at most `pairs` of them, so that their sum over
// K is a whole number below pairs * K * 2^(2 step), and step is chosen so that this is at most
// 2^53: then FP64 adds them without rounding, in any order, and the fused multiply-adds of the
// emulator's FP64 chains do (claim test: tests/claims/exact_product_test.cpp).
namespace guardbit::experiments {

namespace {

using emulator::CodeMatrix;
using emulator::GemmProblem;

void require_room(const formats::Format& f, const CodeMatrix& scale, std::string_view where) {
  const int wanted = formats::precision(f) + (scale.empty() ? 0 : formats::precision(scale.format));
  if (wanted > 53) {
    throw formats::Error(
        std::string(where),
        formats::name_of(f) +
            (scale.empty() ? "" : " with scales in " + formats::name_of(scale.format)) +
            " needs more than the 53 bits of FP64");
  }
}

/// Where the bits of a line of numbers lie: below 2^top, not below 2^bottom.
struct Extent {
  int top = std::numeric_limits<int>::min();
  int bottom = std::numeric_limits<int>::max();
  bool special = false;

  void include(double x) {
    if (!std::isfinite(x)) special = true;
    if (x == 0 || !std::isfinite(x)) return;
    int exponent = 0;
    const double fraction = std::frexp(x, &exponent);
    const auto significand = static_cast<std::int64_t>(std::ldexp(fraction, 53));
    top = std::max(top, exponent);
    bottom =
        std::min(bottom, exponent - 53 + std::countr_zero(static_cast<std::uint64_t>(significand)));
  }
  bool is_zero() const { return bottom > top; }
  int slices(int step) const { return is_zero() ? 1 : (top - bottom + step - 1) / step; }
};

/// Slice `s` of a number below 2^top.
double slice_of(double x, int top, int s, int step) {
  if (x == 0 || !std::isfinite(x)) return 0;
  int exponent = 0;
  const double fraction = std::fabs(std::frexp(x, &exponent));
  const auto significand = static_cast<std::uint64_t>(std::ldexp(fraction, 53));
  const int shift = exponent - 53 - (top - step * (s + 1));
  std::uint64_t bits = 0;
  if (shift >= 0) {
    bits = shift >= step ? 0 : significand << shift;  // what runs over is of earlier slices
  } else {
    bits = shift <= -64 ? 0 : significand >> -shift;
  }
  const auto slice = static_cast<double>(bits & ((std::uint64_t{1} << step) - 1));
  return x < 0 ? -slice : slice;
}

emulator::ConstMatrix matrix_of(const double* values, std::int64_t stride) {
  return {emulator::codes_of(formats::fp64, reinterpret_cast<const std::byte*>(values)), stride, 1};
}

/// to += a * b (or = at the `first`), all row-major: [m, k] * [k, n].
void multiply_add(const double* a, const double* b, double* to, std::int64_t m, std::int64_t n,
                  std::int64_t k, bool first, int threads) {
  static const emulator::MatrixInstruction instruction = emulator::require_instruction(
      "sm_80", "mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64", "exact product");
  static const emulator::Engine& engine = emulator::require_engine("auto", instruction);
  emulator::MatrixProduct product;
  product.m = m, product.n = n, product.k = k;
  product.a = matrix_of(a, k);
  product.b = matrix_of(b, n);
  product.c = matrix_of(to, n);
  product.d = {emulator::codes_of(formats::fp64, reinterpret_cast<std::byte*>(to)), n, 1};
  product.modifiers.zero_addend = first;
  emulator::multiply(engine, instruction, product, threads);
}

double element(const CodeMatrix& from, std::int64_t g, std::int64_t i, std::int64_t j, double scale,
               std::optional<double> least) {
  const double x = emulator::scalar::decoded(from.format, from(g, i, j));
  if (!least) return x * scale;
  return (x == 0 ? 0 : std::max(std::fabs(x), *least)) * std::fabs(scale);
}

/// One product cut into slices.
struct Slicing {
  int step = 0, a_slices = 1, b_slices = 1;
  int diagonals() const { return a_slices + b_slices - 1; }
};

Slicing slicing_of(const std::vector<Extent>& a, const std::vector<Extent>& b, std::int64_t k) {
  Slicing x;
  for (std::int64_t pairs = 1;; ++pairs) {
    const auto terms = static_cast<std::uint64_t>(std::max<std::int64_t>(1, k) * pairs);
    x.step = (53 - static_cast<int>(std::bit_width(terms - 1))) / 2;
    x.a_slices = x.b_slices = 1;
    for (const Extent& line : a) x.a_slices = std::max(x.a_slices, line.slices(x.step));
    for (const Extent& line : b) x.b_slices = std::max(x.b_slices, line.slices(x.step));
    if (std::min(x.a_slices, x.b_slices) <= pairs) return x;
  }
}

}  // namespace

Doubles scaled_a(const GemmProblem& problem, std::int64_t g, std::string_view where,
                 std::optional<double> least) {
  require_room(problem.a.format, problem.scale_a, where);
  Doubles x{problem.m(), problem.k(), {}};
  x.values.reserve(static_cast<std::size_t>(x.rows * x.columns));
  for (std::int64_t i = 0; i < x.rows; ++i) {
    for (std::int64_t k = 0; k < x.columns; ++k) {
      const double scale =
          emulator::scale_at(problem.scale_a, g, i, k, x.rows, x.columns, problem.scale_k);
      x.values.push_back(element(problem.a, g, i, k, scale, least));
    }
  }
  return x;
}

Doubles scaled_b(const GemmProblem& problem, std::int64_t g, std::string_view where,
                 std::optional<double> least) {
  require_room(problem.b.format, problem.scale_b, where);
  Doubles x{problem.k(), problem.n(), {}};
  x.values.reserve(static_cast<std::size_t>(x.rows * x.columns));
  for (std::int64_t k = 0; k < x.rows; ++k) {
    for (std::int64_t j = 0; j < x.columns; ++j) {
      const double scale =
          emulator::scale_at(problem.scale_b, g, k, j, x.rows, x.columns, problem.scale_k);
      x.values.push_back(element(problem.b, g, k, j, scale, least));
    }
  }
  return x;
}

Doubles plain_product(const Doubles& a, const Doubles& b, int threads) {
  Doubles d{a.rows, b.columns, std::vector<double>(static_cast<std::size_t>(a.rows * b.columns))};
  multiply_add(a.values.data(), b.values.data(), d.values.data(), a.rows, b.columns, a.columns,
               true, threads);
  return d;
}

void exact_product(
    const Doubles& a, const Doubles& b, int threads,
    const std::function<void(std::int64_t, std::int64_t, const ExactElement&)>& visit,
    const std::function<bool(double)>& progress) {
  const std::int64_t m = a.rows, n = b.columns, k = a.columns;
  std::vector<Extent> rows(static_cast<std::size_t>(m)), columns(static_cast<std::size_t>(n));
  for (std::int64_t i = 0; i < m; ++i)
    for (std::int64_t x = 0; x < k; ++x) rows[static_cast<std::size_t>(i)].include(a(i, x));
  for (std::int64_t x = 0; x < k; ++x)
    for (std::int64_t j = 0; j < n; ++j) columns[static_cast<std::size_t>(j)].include(b(x, j));
  const Slicing slicing = slicing_of(rows, columns, k);
  const int step = slicing.step, diagonals = slicing.diagonals();
  const int growth = static_cast<int>(std::bit_width(static_cast<std::uint64_t>(k)));

  // Panels of columns and blocks of rows that need no more than some 100 MB of slices each.
  constexpr std::int64_t numbers_at_once = std::int64_t{1} << 24;
  const std::int64_t width = std::clamp<std::int64_t>(numbers_at_once / (k * slicing.b_slices),
                                                      std::min<std::int64_t>(n, 8), n);
  const std::int64_t height =
      std::clamp<std::int64_t>(numbers_at_once / std::max(k * slicing.a_slices, width * diagonals),
                               std::min<std::int64_t>(m, 8), m);
  std::vector<double> b_slices(static_cast<std::size_t>(slicing.b_slices * k * width));
  std::vector<double> a_slices(static_cast<std::size_t>(slicing.a_slices * height * k));
  std::vector<double> parts(static_cast<std::size_t>(diagonals * height * width));
  const auto in_parallel = [&](std::int64_t count, auto body) {
    formats::parallel_for(static_cast<std::size_t>(count), 8, threads,
                          [&](std::size_t begin, std::size_t end) {
                            for (std::size_t i = begin; i < end; ++i)
                              body(static_cast<std::int64_t>(i));
                          });
  };
  for (std::int64_t j0 = 0; j0 < n; j0 += width) {
    const std::int64_t w = std::min(width, n - j0);
    in_parallel(k, [&](std::int64_t x) {
      for (int t = 0; t < slicing.b_slices; ++t)
        for (std::int64_t j = 0; j < w; ++j)
          b_slices[static_cast<std::size_t>((t * k + x) * w + j)] =
              slice_of(b(x, j0 + j), columns[static_cast<std::size_t>(j0 + j)].top, t, step);
    });
    for (std::int64_t i0 = 0; i0 < m; i0 += height) {
      const std::int64_t h = std::min(height, m - i0);
      in_parallel(h, [&](std::int64_t i) {
        for (int s = 0; s < slicing.a_slices; ++s)
          for (std::int64_t x = 0; x < k; ++x)
            a_slices[static_cast<std::size_t>((s * h + i) * k + x)] =
                slice_of(a(i0 + i, x), rows[static_cast<std::size_t>(i0 + i)].top, s, step);
      });
      for (int q = 0; q < diagonals; ++q) {
        const int first = std::max(0, q - slicing.b_slices + 1);
        for (int s = first; s <= std::min(q, slicing.a_slices - 1); ++s)
          multiply_add(a_slices.data() + s * h * k, b_slices.data() + (q - s) * k * w,
                       parts.data() + q * h * w, h, w, k, s == first, threads);
      }
      in_parallel(h, [&](std::int64_t i) {
        const Extent& row = rows[static_cast<std::size_t>(i0 + i)];
        for (std::int64_t j = 0; j < w; ++j) {
          const Extent& column = columns[static_cast<std::size_t>(j0 + j)];
          ExactElement x;
          x.special = row.special || column.special;
          if (!x.special && !row.is_zero() && !column.is_zero()) {
            x.parts = parts.data() + i * w + j;
            x.stride = h * w;
            x.count = diagonals;
            x.step = step;
            x.exponent = row.top + column.top - 2 * step;
            x.highest = row.top + column.top + growth;
          }
          visit(i0 + i, j0 + j, x);
        }
      });
      const double done =
          (static_cast<double>(j0) * static_cast<double>(m) + static_cast<double>((i0 + h) * w)) /
          (static_cast<double>(m) * static_cast<double>(n));
      if (progress && !progress(done)) return;
    }
  }
}

}  // namespace guardbit::experiments
