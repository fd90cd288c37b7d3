#include "emulator/gemm/gemm_epilogue.hpp"

#include <algorithm>
#include <cmath>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "emulator/engine/kernels/chain/multiply_add.hpp"
#include "emulator/gemm/chain.hpp"
#include "emulator/gemm/scalar.hpp"
#include "formats/conversion/array_conversion.hpp"
#include "formats/support/parallel.hpp"

// Sums to D.
namespace guardbit::emulator {

namespace {

/// What the epilogue adds to a sum.
struct Addends {
  const CodeMatrix& c;
  const CodeMatrix& bias;
  double beta;
};

/// Rows of a matrix as FP32 numbers.
class SinglesOf {
 public:
  explicit SinglesOf(const CodeMatrix& matrix) : matrix_(matrix) {
    if (matrix.empty() || matrix.format == formats::fp32) return;
    formats::ConversionOptions options;
    options.threads = 1;
    conversion_.emplace(matrix.format, packing, formats::fp32, packing, options);
  }

  void operator()(std::int64_t g, std::int64_t i, std::vector<float>& to) const {
    const CodeMatrix row =
        matrix_.entries(matrix_.batch == 1 ? 0 : g, 1).part(i, 1, 0, matrix_.columns).contiguous();
    const auto count = static_cast<std::size_t>(matrix_.columns);
    to.resize(count);
    const std::span<std::byte> bytes = std::as_writable_bytes(std::span(to));
    if (conversion_) {
      (*conversion_)(row.bytes, bytes, count);
    } else {
      std::copy_n(row.bytes.begin(), bytes.size(), bytes.begin());
    }
  }

 private:
  static constexpr auto packing = formats::Packing::container;
  const CodeMatrix& matrix_;
  std::optional<formats::ArrayConversion> conversion_;
};

/// FP32 numbers to a format as scalar::encoded has it, and back.
class Narrowing {
 public:
  explicit Narrowing(const Format& to) : to_(to) {
    if (to == formats::fp32) return;
    formats::ConversionOptions options;
    options.threads = 1;
    widen_.emplace(to, packing, formats::fp32, packing, options);
    options.overflow = scalar::overflow_of(to);
    narrow_.emplace(formats::fp32, packing, to, packing, options);
  }

  void encode(std::span<const float> from, std::byte* to) const {
    const auto width = static_cast<std::size_t>(formats::container_bits(to_) / 8);
    if (narrow_) return (*narrow_)(std::as_bytes(from), {to, from.size() * width}, from.size());
    for (std::size_t j = 0; j < from.size(); ++j) {
      const auto word = std::bit_cast<std::uint32_t>(from[j]);
      formats::store_word(to + j * width, (word & 0x7fffffffU) > 0x7f800000U ? 0x7fffffffU : word);
    }
  }
  void round(std::span<float> numbers) const {
    if (!narrow_) return;
    std::vector<std::byte> codes(numbers.size() *
                                 static_cast<std::size_t>(formats::container_bits(to_) / 8));
    encode(numbers, codes.data());
    (*widen_)(codes, std::as_writable_bytes(numbers), numbers.size());
  }

 private:
  static constexpr auto packing = formats::Packing::container;
  Format to_;
  std::optional<formats::ArrayConversion> narrow_, widen_;
};

const CodeMatrix& no_addend() {
  static const CodeMatrix none;
  return none;
}

/// What is left to add: a chain may have begun with C, or with the bias where there is no C.
Addends addends_of(const Epilogue& e, const GemmProblem& problem) {
  if (e.addition != Epilogue::Addition::initial) return {problem.c, problem.bias, e.beta};
  return {no_addend(), problem.c.empty() ? no_addend() : problem.bias, 0};
}

/// The epilogue of one problem.
class Ending {
 public:
  Ending(const Epilogue& e, const GemmProblem& problem, const Addends& addends)
      : e_(e),
        problem_(problem),
        addends_(addends),
        initial_(e.addition == Epilogue::Addition::initial),
        alpha_(initial_ || e.scales_operand() ? 1 : scalar::rounded(e.compute, e.alpha)),
        rounds_sums_(!initial_ && e.alpha_on == Epilogue::AlphaOn::d),
        has_c_(!addends.c.empty() && addends.beta != 0),
        has_bias_(!addends.bias.empty()),
        is_scaled_(problem.scale_k == 0 && !(problem.scale_a.empty() && problem.scale_b.empty())),
        weight_(has_c_ ? scalar::rounded(e.compute, addends.beta) : 1) {}

  CodeMatrix operator()(const Sums& sums, int threads) const {
    // Fewer outputs are not worth a conversion's preparation.
    constexpr std::int64_t few = 1024;
    CodeMatrix d = make_matrix(e_.output, problem_.a.batch, problem_.m(), problem_.n());
    const bool in_singles = e_.compute == formats::fp32 && sums.are_singles() && d.size() >= few;
    in_singles ? finish_singles(sums.singles(), d, threads) : finish_each(sums, d, threads);
    return d;
  }

 private:
  using Addition = Epilogue::Addition;

  /// Calls line(g, i) for every row of D.
  template <class Line>
  void each_line(int threads, const Line& line) const {
    const std::int64_t m = problem_.m();
    formats::parallel_for(static_cast<std::size_t>(problem_.a.batch * m), 16, threads,
                          [&](std::size_t begin, std::size_t end) {
                            line(static_cast<std::int64_t>(begin), static_cast<std::int64_t>(end));
                          });
  }

  void finish_each(const Sums& sums, CodeMatrix& d, int threads) const {
    const Codes codes = codes_of(e_.output, d.bytes.writable());
    const std::int64_t m = problem_.m(), n = problem_.n();
    each_line(threads, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t at = begin * n; at < end * n; ++at) {
        const double x =
            ended(at / (m * n), at / n % m, at % n, sums[static_cast<std::size_t>(at)]);
        codes.set(at, scalar::encoded(e_.output, stored_and_activated(x)));
      }
    });
  }

  double stored_and_activated(double x) const {
    if (e_.via) x = scalar::rounded(*e_.via, x);
    if (e_.activation == Activation::relu && x <= 0) return 0;
    if (!is_smooth(e_.activation)) return x;
    // No kernel's: plan search asks for what is nearly exact.
    if (e_.compute == formats::fp64) return activated_in_doubles(e_.activation, x);
    auto single = static_cast<float>(x);
    activate(e_.activation, e_.output, {&single, 1});
    return single;
  }

  double ended(std::int64_t g, std::int64_t i, std::int64_t j, double x) const {
    const Format& f = e_.compute;
    if (rounds_sums_) x = scalar::rounded(e_.output, x);
    const auto number = [&](const CodeMatrix& from, std::int64_t row) {
      return scalar::rounded(f,
                             scalar::decoded(from.format, from(from.batch == 1 ? 0 : g, row, j)));
    };
    double factor = alpha_;
    if (is_scaled_) {
      const double a = scale_at(problem_.scale_a, g, i, 0, problem_.m(), 1);
      const double b = scale_at(problem_.scale_b, g, 0, j, 1, problem_.n());
      if (e_.scales == Epilogue::Scales::joint) {
        factor = scalar::multiply(f, alpha_, scalar::multiply(f, a, b));
      } else {
        const bool a_first = e_.scales == Epilogue::Scales::a_then_b;
        x = scalar::multiply(f, scalar::multiply(f, x, a_first ? a : b), a_first ? b : a);
      }
    }
    if (!has_c_ && !has_bias_) return scalar::multiply(f, factor, x);
    const double c = has_c_ ? number(addends_.c, i) : number(addends_.bias, 0);
    switch (e_.addition) {
      case Addition::fma_product:
        x = scalar::fma(f, factor, x, scalar::multiply(f, weight_, c));
        break;
      case Addition::fma_addend:
        x = scalar::fma(f, weight_, c, scalar::multiply(f, factor, x));
        break;
      case Addition::separate:
      case Addition::initial:
        x = scalar::add(f, scalar::multiply(f, factor, x), scalar::multiply(f, weight_, c));
        break;
      case Addition::rounded:
        x = scalar::add(f, scalar::rounded(e_.output, scalar::multiply(f, factor, x)),
                        scalar::multiply(f, weight_, c));
        break;
    }
    if (has_c_ && has_bias_) x = scalar::add(f, x, number(addends_.bias, 0));
    return x;
  }

  /// A row of sums on its way to D.
  struct Line {
    std::vector<float> x, factors, c, bias, b;
  };

  /// The same in FP32, row by row.
  void finish_singles(std::span<const float> sums, CodeMatrix& d, int threads) const {
    const SinglesOf c(addends_.c), bias(addends_.bias);
    const Narrowing output(e_.output), via(e_.via.value_or(formats::fp32));
    std::byte* const codes = d.bytes.writable();
    const std::int64_t m = problem_.m();
    const auto n = static_cast<std::size_t>(problem_.n());
    const std::size_t row_bytes =
        n * static_cast<std::size_t>(formats::container_bits(e_.output) / 8);
    each_line(threads, [&](std::int64_t begin, std::int64_t end) {
      Line line;
      for (std::int64_t at = begin; at < end; ++at) {
        const std::int64_t g = at / m, i = at % m;
        const auto from = sums.subspan(static_cast<std::size_t>(at) * n, n);
        line.x.assign(from.begin(), from.end());
        if (has_c_) c(g, i, line.c);
        if (has_bias_) bias(g, 0, line.bias);
        if (rounds_sums_) output.round(line.x);
        scale(g, i, line);
        add(output, line);
        via.round(line.x);
        activate(e_.activation, e_.output, line.x);
        output.encode(line.x, codes + static_cast<std::size_t>(at) * row_bytes);
      }
    });
  }

  void scale(std::int64_t g, std::int64_t i, Line& line) const {
    line.factors.clear();
    if (!is_scaled_) return;
    const std::size_t n = line.x.size();
    const auto alpha = static_cast<float>(alpha_);
    const auto a = static_cast<float>(scale_at(problem_.scale_a, g, i, 0, problem_.m(), 1));
    line.b.resize(n);
    for (std::size_t j = 0; j < n; ++j)
      line.b[j] = static_cast<float>(
          scale_at(problem_.scale_b, g, 0, static_cast<std::int64_t>(j), 1, problem_.n()));
    if (e_.scales == Epilogue::Scales::joint) {
      line.factors.resize(n);
      for (std::size_t j = 0; j < n; ++j) line.factors[j] = alpha * (a * line.b[j]);
    } else if (e_.scales == Epilogue::Scales::a_then_b) {
      for (std::size_t j = 0; j < n; ++j) line.x[j] = line.x[j] * a * line.b[j];
    } else {
      for (std::size_t j = 0; j < n; ++j) line.x[j] = line.x[j] * line.b[j] * a;
    }
  }

  void multiply_by_factors(Line& line) const {
    const auto alpha = static_cast<float>(alpha_);
    if (line.factors.empty() && alpha == 1) return;
    for (std::size_t j = 0; j < line.x.size(); ++j)
      line.x[j] *= line.factors.empty() ? alpha : line.factors[j];
  }

  void add(const Narrowing& output, Line& line) const {
    if (!has_c_ && !has_bias_) return multiply_by_factors(line);
    const std::size_t n = line.x.size();
    const auto weight = static_cast<float>(weight_);
    const auto count = static_cast<std::int64_t>(n);
    std::vector<float>& addend = has_c_ ? line.c : line.bias;
    const bool bias_beside = has_c_ && has_bias_;
    switch (e_.addition) {
      case Addition::fma_product:
        for (float& x : addend) x *= weight;
        if (line.factors.empty()) {
          multiply_add::fma_row(static_cast<float>(alpha_), line.x.data(), addend.data(), count);
        } else {
          for (std::size_t j = 0; j < n; ++j)
            addend[j] = std::fma(line.factors[j], line.x[j], addend[j]);
        }
        std::swap(line.x, addend);
        break;
      case Addition::fma_addend:
        multiply_by_factors(line);
        multiply_add::fma_row(weight, addend.data(), line.x.data(), count);
        break;
      case Addition::separate:
      case Addition::initial:
      case Addition::rounded:
        multiply_by_factors(line);
        if (e_.addition == Addition::rounded) output.round(line.x);
        for (std::size_t j = 0; j < n; ++j) line.x[j] += weight * addend[j];
        break;
    }
    for (std::size_t j = 0; bias_beside && j < n; ++j) line.x[j] += line.bias[j];
  }

  const Epilogue& e_;
  const GemmProblem& problem_;
  const Addends& addends_;
  bool initial_;
  /// of sums
  double alpha_;
  /// to D's format, before they meet alpha
  bool rounds_sums_;
  bool has_c_, has_bias_, is_scaled_;
  /// of what is added
  double weight_;
};

CodeMatrix finish(const Epilogue& e, const GemmProblem& problem, const Addends& addends,
                  const Sums& sums, int threads) {
  return Ending(e, problem, addends)(sums, threads);
}

}  // namespace

CodeMatrix finish(const Epilogue& epilogue, const GemmProblem& problem, const Sums& sums,
                  int threads) {
  return finish(epilogue, problem, addends_of(epilogue, problem), sums, threads);
}

CodeMatrix finish(const GemmPlan& plan, const GemmProblem& scaled, std::vector<Sums> parts,
                  int threads) {
  const Epilogue& e = plan.epilogue;
  GemmProblem problem = scaled;
  // Promoted sums have them already.
  if (takes_scales(plan.promotion)) problem.scale_a = problem.scale_b = {};
  if (plan.split.order != SumOrder::in_place || parts.size() <= 1)
    return finish(e, problem, add_up(plan.split, e.compute, std::move(parts)), threads);
  const Addends all = addends_of(e, problem);
  // Without C, a bias is what the first part meets in D.
  const bool is_last_bias =
      e.addition == Epilogue::Addition::initial || (!all.c.empty() && e.beta != 0);
  // Only the last part goes through the activation.
  Epilogue plain = e;
  plain.activation = Activation::none;
  plain.via.reset();
  CodeMatrix d = finish(plain, problem, {all.c, is_last_bias ? no_addend() : all.bias, all.beta},
                        parts.front(), threads);
  for (std::size_t p = 1; p < parts.size(); ++p) {
    const bool is_last = p + 1 == parts.size();
    d = finish(is_last ? e : plain, problem,
               {d, is_last_bias && is_last ? all.bias : no_addend(), 1}, parts[p], threads);
  }
  return d;
}

}  // namespace guardbit::emulator
