#include "experiments/accuracy/operand_errors.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include "emulator/gemm/scalar.hpp"
#include "formats/support/error.hpp"

namespace guardbit::experiments {

namespace {

using emulator::CodeMatrix;
using emulator::Epilogue;
using emulator::GemmPlan;
using emulator::GemmProblem;
using formats::Format;
using formats::Rounding;

/// Calls visit(row, column, |x|) for every element that is finite.
template <class Visit>
void each_magnitude(const CodeMatrix& matrix, const Visit& visit) {
  for (std::int64_t i = 0; i < matrix.size(); ++i) {
    const double x = std::fabs(emulator::scalar::decoded(matrix.format, matrix[i]));
    if (std::isfinite(x)) visit(i / matrix.columns, i % matrix.columns, x);
  }
}

/// The most elements of a line that are below `least` but not zero.
std::int64_t most_below(const CodeMatrix& matrix, double least, bool of_rows) {
  std::vector<std::int64_t> counts(static_cast<std::size_t>(
      of_rows ? matrix.batch * matrix.rows : matrix.batch * matrix.columns));
  each_magnitude(matrix, [&](std::int64_t line, std::int64_t column, double x) {
    const std::int64_t of_column = line / matrix.rows * matrix.columns + column;
    if (x != 0 && x < least) ++counts[static_cast<std::size_t>(of_rows ? line : of_column)];
  });
  return counts.empty() ? 0 : *std::max_element(counts.begin(), counts.end());
}

/// One operand on its way to the unit.
struct Operand {
  const CodeMatrix& matrix;
  const Format& unit;
  const Format& aligned;
  /// what it is multiplied by, and in which format
  double factor = 1;
  Format scaled{};

  /// Relative error of one rounding into the unit's format.
  double conversion(Rounding rounding) const {
    return contains(unit, matrix.format) ? 0 : unit_roundoff(unit, rounding);
  }
  /// before and after it is multiplied
  double largest() const {
    const double rounded = factor == 1 ? 1 : std::fabs(emulator::scalar::rounded(scaled, factor));
    return largest_magnitude(matrix) * std::max({1.0, std::fabs(factor), rounded});
  }
  double least(double growth) const {
    if (formats::is_integer(unit)) return 0;
    double x = smallest_normal(aligned) * growth;
    if (!contains(unit, matrix.format)) x = std::max(x, smallest_normal(unit) * growth);
    if (factor == 1 || factor == 0) return x;
    if (!formats::is_integer(scaled)) x = std::max(x, smallest_normal(scaled));
    return x / std::min(1.0, std::fabs(factor));
  }
};

Operand operand(const GemmPlan& plan, const CodeMatrix& matrix, const Format& unit,
                const Format& aligned, Epilogue::AlphaOn name) {
  Operand x{matrix, unit, aligned};
  if (plan.epilogue.alpha_on != name) return x;
  x.factor = plan.epilogue.alpha;
  // A CUDA core multiplies what is converted.
  x.scaled = plan.unit.arch == "simt" ? unit : matrix.format;
  return x;
}

}  // namespace

int pieces_of(const GemmPlan& plan) { return plan.unit.arch == "simt" ? 1 : plan.input.pieces; }

std::vector<int> products_of_ranks(const emulator::InputConversion& input) {
  std::vector<int> counts(static_cast<std::size_t>(input.ranks));
  for (int i = 0; i < input.pieces; ++i) {
    for (int j = 0; j < input.pieces; ++j) {
      const int rank = i + j;
      if (rank < input.ranks) ++counts[static_cast<std::size_t>(rank)];
    }
  }
  return counts;
}

double largest_magnitude(const CodeMatrix& matrix) {
  double largest = matrix.empty() ? 1 : 0;  // of factors that are not there
  each_magnitude(matrix,
                 [&](std::int64_t, std::int64_t, double x) { largest = std::max(largest, x); });
  return largest;
}

double least_magnitude(const CodeMatrix& matrix) {
  double least = std::numeric_limits<double>::infinity();
  each_magnitude(matrix, [&](std::int64_t, std::int64_t, double x) {
    if (x != 0) least = std::min(least, x);
  });
  return std::isinf(least) ? 1 : least;
}

OperandErrors operand_errors(const GemmPlan& plan, const GemmProblem& problem,
                             const UnitErrors& unit) {
  OperandErrors x;
  const emulator::InputConversion& input = plan.input;
  const Operand a = operand(plan, problem.a, unit.a, unit.least_a, Epilogue::AlphaOn::a);
  const Operand b = operand(plan, problem.b, unit.b, unit.least_b, Epilogue::AlphaOn::b);
  for (const Operand& of : {a, b}) {
    if (of.factor == 1) continue;
    x.error.add(constant_error(of.scaled, of.factor));
    x.error.add(unit_roundoff(of.scaled));
    if (of.largest() > largest_number(of.scaled)) x.fit = false;
  }
  const double scaling = 1 + x.error.worst();
  x.magnitude = scaling;
  if (input.has_integer_slices()) return x;  // their error is absolute

  const int pieces = pieces_of(plan);
  const Rounding last = input.last.value_or(input.rounding);
  const double of_a = a.conversion(input.rounding), of_b = b.conversion(input.rounding);
  double growth = 1;
  if (of_a != 0 || of_b != 0)
    x.error.mean_zero = is_nearest(input.rounding) && (pieces == 1 || is_nearest(last));
  if (pieces == 1) {
    x.error.add(of_a);
    x.error.add(of_b);
    x.magnitude *= (1 + of_a) * (1 + of_b);
  } else {
    const double u = std::max({of_a, of_b, a.conversion(last), b.conversion(last)});
    double omitted = 0;
    x.piece = u;
    x.magnitude = 0;
    for (int i = 0; i < pieces; ++i)
      for (int j = 0; j < pieces; ++j)
        (i + j < input.ranks ? x.magnitude : omitted) += std::pow(u, i + j) * (1 + u) * (1 + u);
    x.magnitude *= scaling;
    x.error.add(std::pow(u, pieces), 2);
    x.error.add(omitted);
    // All pieces are normal then.
    if (u != 0) growth = std::max(1.0, std::pow(std::ldexp(1 / u, -input.shift), pieces - 1));
  }
  x.least_a = a.least(growth), x.least_b = b.least(growth);
  // Pieces that are scaled up may outgrow their numbers.
  const double rise =
      pieces == 1 ? 1 : std::max(1.0, std::pow(std::ldexp(x.piece, input.shift), pieces - 1));
  for (const Operand& of : {a, b})
    if (of.largest() * rise > largest_number(of.unit)) x.fit = false;
  if (unit.flushes) {
    // Each product with a factor that counts as zero is lost.
    const double k = static_cast<double>(problem.k());
    const double lost_of_a =
        pieces > 1 ? k : static_cast<double>(most_below(problem.a, x.least_a, true));
    const double lost_of_b =
        pieces > 1 ? k : static_cast<double>(most_below(problem.b, x.least_b, false));
    x.error.absolute += pieces * x.magnitude * std::max(1.0, std::fabs(a.factor * b.factor)) *
                        (lost_of_a * x.least_a * std::max(x.least_b, largest_magnitude(problem.b)) +
                         lost_of_b * x.least_b * std::max(x.least_a, largest_magnitude(problem.a)));
  }
  return x;
}

double slice_additions(const emulator::InputConversion& input) {
  const bool grouped = input.cut == emulator::InputConversion::Cut::grouped_slices;
  double additions = 1;
  for (const int count : products_of_ranks(input)) additions += grouped ? 1 : count;
  return additions;
}

// With lines below 2^E, slice s of `bits` bits is below w^s 2^E, w = 2^-bits, and what the
// last of p leaves below w^p 2^E. So products of slices of total rank t are below w^t K 2^(Ea+Eb);
// those from rank r on are left out, and the additions of the others round sums of less than
// (1 + 2 w + 3 w^2 + ...) K 2^(Ea+Eb). Chains are exact where INT32 holds them.
double slices_error(const GemmPlan& plan, const GemmProblem& problem, const UnitErrors& unit,
                    double sum, std::string_view where) {
  const emulator::InputConversion& input = plan.input;
  const int bits = formats::bits(unit.a) - 1;
  const double w = std::ldexp(1.0, -bits), k = static_cast<double>(problem.k());
  const std::vector<int> counts = products_of_ranks(input);
  const bool grouped = input.cut == emulator::InputConversion::Cut::grouped_slices;
  const int most = grouped ? *std::max_element(counts.begin(), counts.end()) : 1;
  if (std::ldexp(k * most, 2 * bits) >= std::ldexp(1.0, 31))
    throw formats::Error(std::string(where), "no bound: INT32 sums of this K may wrap");
  double kept = 0, left_out = 2 * std::pow(w, input.pieces) + std::pow(w, 2 * input.pieces);
  for (std::size_t t = 0; t < counts.size(); ++t) kept += counts[t] * std::pow(w, t);
  for (int t = input.ranks; t <= 2 * input.pieces - 2; ++t)
    left_out += (2 * input.pieces - 1 - t) * std::pow(w, t);
  const double factor = plan.epilogue.scales_operand() ? std::fabs(plan.epilogue.alpha) : 1;
  return k * 4 * largest_magnitude(problem.a) * largest_magnitude(problem.b) *
         std::max(1.0, factor) * (left_out * (1 + sum) + kept * sum);
}

}  // namespace guardbit::experiments
