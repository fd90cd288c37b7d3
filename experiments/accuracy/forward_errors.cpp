#include "experiments/accuracy/forward_errors.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <string>
#include <utility>

#include "emulator/gemm/scalar.hpp"
#include "experiments/accuracy/exact_number.hpp"
#include "experiments/accuracy/exact_product.hpp"
#include "formats/support/error.hpp"

namespace guardbit::experiments {

namespace {

using emulator::CodeMatrix;
using emulator::GemmProblem;
using formats::Format;

constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN();

/// A finite product x * y without rounding.
struct ExactTerm {
  formats::int128 significand = 0;
  int exponent = 0;
  /// 2^highest is above it.
  int highest() const { return exponent + 107; }
};
ExactTerm exact_term(double x, double y) {
  const Scaled a = scaled(x), b = scaled(y);
  return {formats::int128{a.significand} * b.significand, a.exponent + b.exponent};
}

/// The exponent of the last place of numbers whose leading bit is at `leading`.
int last_place(const Format& f, int leading) {
  if (formats::is_integer(f)) return 0;
  return std::max(leading, formats::min_exponent(f)) - f.fraction_bits;
}

/// What an element should be, as finite terms beside the element itself.
class ExactDot {
 public:
  void add(const ExactTerm& term) {
    if (term.significand == 0) return;
    terms_[static_cast<std::size_t>(count_++)] = term;
    lowest_ = std::min(lowest_, term.exponent);
    highest_ = std::max(highest_, term.highest());
  }
  void add(const ExactElement& product, double alpha) {
    if (product.count == 0 || alpha == 0) return;
    product_ = product;
    alpha_ = scaled(alpha);
    lowest_ =
        std::min(lowest_, alpha_.exponent + product.exponent - (product.count - 1) * product.step);
    highest_ = std::max(highest_, alpha_.exponent + product.highest + 54);
  }

  Deviation against(double result, const Format& f) {
    Deviation x{result, 0, 0, 0};
    const Scaled d = std::isfinite(result) ? scaled(result) : Scaled{};
    if (d.significand != 0) {
      lowest_ = std::min(lowest_, d.exponent);
      highest_ = std::max(highest_, d.exponent + 54);
    }
    number_.reset(lowest_, std::max(lowest_, highest_) + 3);
    for (int i = 0; i < count_; ++i) {
      const ExactTerm& term = terms_[static_cast<std::size_t>(i)];
      number_.add(term.significand, term.exponent);
    }
    for (int q = 0; q < product_.count; ++q) {
      const auto part = static_cast<std::int64_t>(product_.parts[q * product_.stride]);
      number_.add(formats::int128{part} * alpha_.significand,
                  alpha_.exponent + product_.exponent - q * product_.step);
    }
    x.reference = number_.nearest();
    if (!std::isfinite(result)) {
      x.error = x.ulps = not_a_number;
      return x;
    }
    const int unit = last_place(f, number_.is_zero() ? -100000 : number_.leading_exponent());
    number_.add(-formats::int128{d.significand}, d.exponent);
    x.error = 0.0 - number_.nearest();
    x.ulps = 0.0 - number_.nearest(-unit);
    return x;
  }

 private:
  std::array<ExactTerm, 3> terms_{};
  int count_ = 0;
  ExactElement product_;
  Scaled alpha_;
  int lowest_ = 0, highest_ = 0;
  ExactNumber number_;
};

double value_of(const CodeMatrix& from, std::int64_t g, std::int64_t i, std::int64_t j) {
  return emulator::scalar::decoded(from.format, from(from.batch == 1 ? 0 : g, i, j));
}

void require_contained(const Format& f, std::string_view where) {
  if (formats::precision(f) > 53)
    throw formats::Error(std::string(where), formats::name_of(f) + " needs more than FP64 holds");
}

/// A sum with an infinity or a NaN among its factors.
double special_product(const Doubles& a, const Doubles& b, std::int64_t i, std::int64_t j) {
  double sum = 0;
  for (std::int64_t k = 0; k < a.columns; ++k) {
    const double x = a(i, k), y = b(k, j);
    if (!std::isfinite(x) || !std::isfinite(y)) sum += x * y;
  }
  return sum;
}

}  // namespace

Deviation Deviations::computed(std::size_t at) const {
  const auto i = static_cast<std::int64_t>(at);
  const double result = emulator::scalar::decoded(d_.format, d_[i]);
  const double wanted = emulator::scalar::decoded(reference_.format, reference_[i]);
  if (!std::isfinite(wanted)) return {result, wanted, not_a_number, not_a_number};
  if (result == wanted) return {result, wanted, 0, 0};
  ExactDot x;
  x.add(exact_term(wanted, 1));
  return x.against(result, d_.format);
}

Deviations deviations(const CodeMatrix& d, const CodeMatrix& reference, std::string_view where) {
  require_contained(d.format, where);
  require_contained(reference.format, where);
  Deviations computed(d, reference);
  // Kept, they are computed once; 2^22 take 128 MiB.
  constexpr std::size_t most_kept = std::size_t{1} << 22;
  if (computed.size() > most_kept) return computed;
  std::vector<Deviation> list;
  list.reserve(computed.size());
  for (std::size_t i = 0; i < computed.size(); ++i) list.push_back(computed[i]);
  return list;
}

std::vector<Deviation> exact_deviations(const CodeMatrix& d, const GemmProblem& problem,
                                        double alpha, double beta, int threads,
                                        std::string_view where,
                                        const std::function<bool(double)>& progress,
                                        emulator::Activation activation) {
  require_contained(d.format, where);
  if (!problem.c.empty()) require_contained(problem.c.format, where);
  std::vector<Deviation> list(static_cast<std::size_t>(d.size()));
  const bool has_c = !problem.c.empty() && beta != 0, has_bias = !problem.bias.empty();
  bool interrupted = false;
  for (std::int64_t g = 0; g < d.batch && !interrupted; ++g) {
    const Doubles a = scaled_a(problem, g, where), b = scaled_b(problem, g, where);
    exact_product(
        a, b, threads,
        [&](std::int64_t i, std::int64_t j, const ExactElement& element) {
          const double result = emulator::scalar::decoded(d.format, d(g, i, j));
          const double c = has_c ? value_of(problem.c, g, i, j) : 0;
          const double bias = has_bias ? value_of(problem.bias, g, 0, j) : 0;
          Deviation& to = list[static_cast<std::size_t>(d.index(g, i, j))];
          if (element.special || !std::isfinite(c) || !std::isfinite(bias)) {
            const double product = element.special ? special_product(a, b, i, j) : 0;
            to = {result, alpha * product + (has_c ? beta * c : 0) + bias, not_a_number,
                  not_a_number};
            return;
          }
          ExactDot x;
          x.add(exact_term(beta, c));
          x.add(exact_term(bias, 1));
          x.add(element, alpha);
          to = x.against(result, d.format);
          if (activation == emulator::Activation::relu && to.reference < 0)
            to = ExactDot{}.against(result, d.format);
          if (emulator::is_smooth(activation)) {
            ExactDot y;
            y.add(exact_term(emulator::activated_in_doubles(activation, to.reference), 1));
            to = y.against(result, d.format);
          }
        },
        [&](double part) {
          interrupted =
              progress && !progress((static_cast<double>(g) + part) / static_cast<double>(d.batch));
          return !interrupted;
        });
  }
  if (interrupted) list.clear();
  return list;
}

std::vector<double> magnitudes(const GemmProblem& problem, double alpha, double beta, int threads,
                               std::string_view where, double least_a, double least_b) {
  std::vector<double> list;
  const bool has_c = !problem.c.empty() && beta != 0, has_bias = !problem.bias.empty();
  for (std::int64_t g = 0; g < problem.a.batch; ++g) {
    const Doubles product = plain_product(scaled_a(problem, g, where, least_a),
                                          scaled_b(problem, g, where, least_b), threads);
    for (std::int64_t i = 0; i < product.rows; ++i) {
      for (std::int64_t j = 0; j < product.columns; ++j) {
        double sum = std::fabs(alpha) * product(i, j);
        if (has_c) sum += std::fabs(beta * value_of(problem.c, g, i, j));
        if (has_bias) sum += std::fabs(value_of(problem.bias, g, 0, j));
        list.push_back(sum);
      }
    }
  }
  return list;
}

}  // namespace guardbit::experiments
