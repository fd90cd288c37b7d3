#include <algorithm>
#include <cmath>

#include "emulator/catalogue/instruction_catalogue.hpp"
#include "emulator/gemm/scalar.hpp"
#include "experiments/accuracy/error_bounds.hpp"
#include "experiments/accuracy/error_norms.hpp"
#include "experiments/accuracy/product_errors.hpp"
#include "experiments/harness/repeats.hpp"
#include "experiments/suite/suite.hpp"
#include "experiments/suite/unit_products.hpp"

namespace guardbit::experiments {

namespace e37 {
namespace {

using emulator::CodeMatrix;
using emulator::GemmPlan;
using emulator::GemmProblem;
using emulator::scalar::rounded;
using formats::Format;

const double u32 = std::ldexp(1.0, -24);

/// Row-major numbers.
struct Numbers {
  std::int64_t rows = 0, columns = 0;
  std::vector<double> values;

  double operator()(std::int64_t i, std::int64_t j) const {
    return values[static_cast<std::size_t>(i * columns + j)];
  }
};

/// Queries, keys and values of one head.
struct Head {
  Numbers q, k, v;
};

/// FP16 numbers of N(0, 1), one in a thousand with one of N(0, 100) added.
Numbers drawn(const Run& run, std::string_view name, std::int64_t rows, std::int64_t columns) {
  const Draws plain = run.draws(name), outlier = run.draws(std::string(name) + " outlier"),
              where = run.draws(std::string(name) + " where");
  Numbers x{rows, columns, std::vector<double>(static_cast<std::size_t>(rows * columns))};
  for (std::uint64_t i = 0; i < x.values.size(); ++i) {
    double value = plain.draw(Distribution::normal, i);
    if (where.uniform(i) < 1e-3) value += 10 * outlier.draw(Distribution::normal, i);
    x.values[i] = rounded(formats::fp16, value);
  }
  return x;
}

/// Numbers of `format` and what they were multiplied with.
struct Stored {
  Numbers numbers;
  float scale = 1;
};

/// As they are; in FP8 scaled to its largest number first, the whole tensor alike.
Stored stored(const Numbers& x, const Format& format) {
  Stored result{x};
  if (formats::bits(format) == 8) {
    double amax = 0;
    for (const double value : x.values) amax = std::max(amax, std::abs(value));
    result.scale = static_cast<float>(448 / amax);
  }
  for (double& value : result.numbers.values)
    value = rounded(format, static_cast<float>(value) * result.scale);
  return result;
}

CodeMatrix codes_of(const Format& format, std::int64_t rows, std::int64_t columns, auto value) {
  CodeMatrix matrix = emulator::make_matrix(format, 1, rows, columns);
  for (std::int64_t i = 0; i < rows; ++i)
    for (std::int64_t j = 0; j < columns; ++j)
      matrix.set(matrix.index(0, i, j), emulator::scalar::encoded(format, value(i, j)));
  return matrix;
}

GemmPlan hopper(const Format& format) {
  const auto instruction =
      emulator::require_dot("sm_90", "wgmma", format, formats::fp32, 16, "E37");
  return unit_of(instruction, "").plan;
}

/// What stands between the products: everything in FP32.
float exponential(float x) {
  return std::isinf(x) ? 0.0F : static_cast<float>(power_of_two(static_cast<double>(x)));
}

struct Attention {
  Format format;
  /// keys at a time; 0: all scores are stored, then the probabilities
  std::int64_t block = 0;
};

/// Scores of keys [first, first + count).
std::vector<double> scores(Run& run, const Attention& how, const Stored& q, const Stored& k,
                           std::int64_t first, std::int64_t count) {
  GemmProblem problem;
  problem.a = codes_of(how.format, q.numbers.rows, q.numbers.columns, q.numbers);
  problem.b = codes_of(how.format, k.numbers.columns, count,
                       [&](std::int64_t d, std::int64_t j) { return k.numbers(first + j, d); });
  std::vector<double> s = values_of(run.multiply(hopper(how.format), problem));
  const float scale = 1 / (q.scale * k.scale);
  for (double& x : s) x = static_cast<float>(x) * scale;
  return s;
}

/// FP32 sums `o` after one more block: o + P V, P rounded to the format.
void accumulate(Run& run, const Attention& how, const std::vector<float>& p, const Stored& v,
                std::int64_t first, std::vector<float>& o) {
  const std::int64_t depth = v.numbers.columns, rows = std::ssize(o) / depth,
                     count = std::ssize(p) / rows;
  GemmProblem problem;
  problem.a = codes_of(how.format, rows, count, [&](std::int64_t i, std::int64_t j) {
    return static_cast<double>(p[static_cast<std::size_t>(i * count + j)]);
  });
  problem.b = codes_of(how.format, count, depth,
                       [&](std::int64_t j, std::int64_t d) { return v.numbers(first + j, d); });
  problem.c = codes_of(formats::fp32, rows, depth, [&](std::int64_t i, std::int64_t d) {
    return static_cast<double>(o[static_cast<std::size_t>(i * depth + d)]);
  });
  GemmPlan plan = hopper(how.format);
  plan.epilogue.addition = emulator::Epilogue::Addition::initial;
  const std::vector<double> sums = values_of(run.multiply(plan, problem));
  for (std::size_t i = 0; i < o.size(); ++i) o[i] = static_cast<float>(sums[i]);
}

/// Softmax block by block, the sums rescaled whenever a row's largest score grows; or with
/// scores and probabilities stored in the format in between. The output is FP16.
std::vector<double> attended(Run& run, const Head& head, const Attention& how) {
  const Stored q = stored(head.q, how.format), k = stored(head.k, how.format),
               v = stored(head.v, how.format);
  const std::int64_t rows = head.q.rows, depth = head.v.columns, keys = head.k.rows;
  const std::int64_t block = how.block == 0 ? keys : how.block;
  const auto factor =
      static_cast<float>(std::log2(std::exp(1.0)) / std::sqrt(static_cast<double>(depth)));
  std::vector<float> largest(static_cast<std::size_t>(rows), -INFINITY), sum(largest.size(), 0);
  std::vector<float> o(static_cast<std::size_t>(rows * depth), 0);
  for (std::int64_t first = 0; first < keys; first += block) {
    const std::int64_t count = std::min(block, keys - first);
    std::vector<double> s = scores(run, how, q, k, first, count);
    if (how.block == 0)
      for (double& x : s) x = rounded(how.format, x);
    std::vector<float> p(s.size());
    for (std::int64_t i = 0; i < rows; ++i) {
      const auto row = static_cast<std::size_t>(i);
      const auto at = static_cast<std::size_t>(i * count);
      float most = largest[row];
      for (std::int64_t j = 0; j < count; ++j)
        most = std::max(most, static_cast<float>(s[at + static_cast<std::size_t>(j)]));
      const float shrunk = exponential((largest[row] - most) * factor);
      largest[row] = most;
      sum[row] *= shrunk;
      for (std::int64_t d = 0; d < depth; ++d) o[static_cast<std::size_t>(i * depth + d)] *= shrunk;
      for (std::size_t j = at; j < at + static_cast<std::size_t>(count); ++j) {
        p[j] = exponential(std::fma(static_cast<float>(s[j]), factor, -(most * factor)));
        sum[row] += p[j];
      }
      if (how.block != 0) continue;
      for (std::size_t j = at; j < at + static_cast<std::size_t>(count); ++j) p[j] /= sum[row];
      sum[row] = 1;
    }
    accumulate(run, how, p, v, first, o);
  }
  std::vector<double> output(o.size());
  for (std::size_t i = 0; i < o.size(); ++i) {
    const float unscaled = o[i] / sum[i / static_cast<std::size_t>(depth)] / v.scale;
    output[i] = rounded(formats::fp16, unscaled);
  }
  return output;
}

/// In FP64, and the same with |v|: what errors are relative to.
struct Exact {
  std::vector<double> output, magnitude;
  double largest_score = 0;
};

Exact exact_of(const Head& head) {
  const std::int64_t depth = head.v.columns, keys = head.k.rows;
  Exact result;
  std::vector<double> s(static_cast<std::size_t>(keys));
  for (std::int64_t i = 0; i < head.q.rows; ++i) {
    double most = -INFINITY, sum = 0;
    for (std::int64_t j = 0; j < keys; ++j) {
      double x = 0;
      for (std::int64_t d = 0; d < depth; ++d) x += head.q(i, d) * head.k(j, d);
      x /= std::sqrt(static_cast<double>(depth));
      s[static_cast<std::size_t>(j)] = x;
      most = std::max(most, x);
      result.largest_score = std::max(result.largest_score, std::abs(x));
    }
    for (double& x : s) sum += x = power_of_two((x - most) * std::log2(std::exp(1.0)));
    for (std::int64_t d = 0; d < depth; ++d) {
      double o = 0, magnitude = 0;
      for (std::int64_t j = 0; j < keys; ++j) {
        o += s[static_cast<std::size_t>(j)] / sum * head.v(j, d);
        magnitude += s[static_cast<std::size_t>(j)] / sum * std::abs(head.v(j, d));
      }
      result.output.push_back(o);
      result.magnitude.push_back(magnitude);
    }
  }
  return result;
}

/// What FP16 online softmax may be off by, element by element.
///
/// A probability is 2^x with x = (s - m) * c: s is off by what its product allows, and x by four
/// roundings of FP32 of numbers up to X, the largest |s c| twice; 2^x and its share of a rescaling
/// by one each. m is the same number throughout and cancels. So each term of numerator and
/// denominator has a factor within 1 +- theta. The numerator's probabilities are rounded to FP16
/// (relative `u16`, or 2^-25 where they are subnormal), and its sums are one chain of the unit.
std::vector<double> allowed(Run& run, const Head& head, const Exact& exact, std::int64_t block) {
  const std::int64_t depth = head.v.columns, keys = head.k.rows;
  const double u16 = std::ldexp(1.0, -11),
               c = std::log2(std::exp(1.0)) / std::sqrt(static_cast<double>(depth));
  GemmProblem products;
  products.a = codes_of(formats::fp16, head.q.rows, depth, head.q);
  products.b = codes_of(formats::fp16, depth, keys,
                        [&](std::int64_t d, std::int64_t j) { return head.k(j, d); });
  const GemmPlan plan = hopper(formats::fp16);
  const double of_score = std::ranges::max(allowed_errors(run, plan, products));
  const double span = 2 * exact.largest_score * std::sqrt(static_cast<double>(depth)) * c;
  const double blocks = std::ceil(static_cast<double>(keys) / static_cast<double>(block));
  const double argument = of_score * c + 4 * u32 * span;
  const double theta =
      std::expm1(std::log(2.0) * (argument + blocks * 4 * u32 * span) + (3 * blocks + 3) * u32);
  GemmProblem weighted;
  weighted.a = emulator::make_matrix(formats::fp16, 1, head.q.rows, keys);
  weighted.b = codes_of(formats::fp16, keys, depth, head.v);
  const ErrorBound chain = error_bound(plan, weighted, "E37");
  const double n = static_cast<double>(keys) + blocks;
  const double relative = (1 + theta) * (1 + u16) * (1 + chain.sum + blocks * u32) /
                              ((1 - theta) * (1 - n * u32)) * (1 + 2 * u32) * (1 + u16) -
                          1;
  std::vector<double> result = exact.magnitude;
  for (std::size_t i = 0; i < result.size(); ++i) {
    double magnitudes = 0;
    for (std::int64_t j = 0; j < keys; ++j)
      magnitudes += std::abs(head.v(j, static_cast<std::int64_t>(i) % depth));
    // The largest probability of a row is 1, so that their sum is no less.
    result[i] = relative * result[i] +
                (std::ldexp(magnitudes, -25) + chain.absolute) / (1 - theta) * (1 + relative);
    result[i] += std::ldexp(1.0, -25);
  }
  return result;
}

double root_mean_square(const std::vector<double>& x, const std::vector<double>& exact) {
  return std::sqrt(errors_of(x, exact).mean_squared);
}

Outcome run(Run& run) {
  const Settings& s = run.settings();
  const auto lengths = s.integers("keys");
  const std::int64_t rows = s.integer("queries"), depth = s.integer("depth"),
                     block = s.integer("block");
  struct Way {
    std::string name, printed;
    Attention how;
    Certainty certainty;
  };
  const std::vector<Way> ways = {
      {"fp16, scores stored", "3.2e-4", {formats::fp16, 0}, Certainty::recalled},
      {"fp16, online", "1.9e-4", {formats::fp16, block}, Certainty::recalled},
      {"bf16, scores stored", "", {formats::bf16, 0}, Certainty::recalled},
      {"bf16, online", "", {formats::bf16, block}, Certainty::recalled},
      {"e4m3 with one scale per tensor, online",
       "2.4e-2",
       {formats::e4m3, block},
       Certainty::read}};
  run.announce(lengths.size() * (ways.size() + 1));
  Outcome outcome;
  outcome.figure = {"E37: error of attention on a Hopper tensor core", "keys",
                    "root of the mean squared error", true, true};
  outcome.figure.curves.reserve(ways.size());
  for (const Way& way : ways) outcome.figure.curves.push_back({way.name});
  for (const std::int64_t keys : lengths) {
    const Head head{drawn(run, "Q", rows, depth), drawn(run, "K", keys, depth),
                    drawn(run, "V", keys, depth)};
    const Exact exact = exact_of(head);
    const std::string at = "keys=" + std::to_string(keys) + ", ";
    for (std::size_t w = 0; w < ways.size(); ++w) {
      const Way& way = ways[w];
      const auto& found = run.point(at + way.name, [&] {
        const std::vector<double> output = attended(run, head, way.how);
        return std::vector<double>{root_mean_square(output, exact.output),
                                   errors_of(output, exact.output).largest};
      });
      outcome.figure.curves[w].add(static_cast<double>(keys), found[0]);
      Finding finding{at + way.name + ": root of the mean squared error", "", found[0]};
      if (!way.printed.empty() && keys == lengths.back()) {
        finding.reference = Reference{.value = number_of(way.printed),
                                      .tolerance = half_digit(way.printed),
                                      .tolerance_reason = "half a unit of the printed last digit",
                                      .source = "FlashAttention-3, arXiv 2407.08608, table 3",
                                      .certainty = way.certainty,
                                      .undecidable = "their shapes and numbers are not known here"};
      }
      outcome.findings.push_back(finding);
    }
    const auto& share = run.point(at + "bound", [&] {
      return std::vector<double>{largest_share(attended(run, head, {formats::fp16, block}),
                                               exact.output, allowed(run, head, exact, block))};
    });
    outcome.findings.push_back({at + "fp16, online: largest error / bound", "", share[0],
                                Reference{.value = 1,
                                          .source = "rounding errors of every step, one by one",
                                          .relation = Reference::Relation::at_most}});
  }
  outcome.notes.emplace_back(
      "Online softmax keeps scores and probabilities in FP32 until P meets V, and divides once at the end; storing them in between rounds twice more.");
  return outcome;
}

}  // namespace
}  // namespace e37

Experiment online_softmax() {
  using namespace e37;
  using Kind = Parameter::Kind;
  return {
      .name = "E37",
      .slug = "online_softmax",
      .question = "What does attention lose in mixed precision, block by block and in one pass?",
      .method =
          "softmax(Q K^T / sqrt(d)) V on sm_90's wgmma: "
          "online (a block of keys at a time, running maximum and sum in FP32, P rounded to the format, "
          "the accumulator rescaled), and with scores and probabilities stored in the format, against FP64. "
          "FP16 numbers of N(0, 1), one in a thousand with N(0, 100) added.",
      .expected =
          "FlashAttention-3 (arXiv 2407.08608) reports for such numbers 3.2e-4 with stored scores and 1.9e-4 online in FP16 (recalled), "
          "2.4e-2 in FP8 with one scale per tensor (read through quotations). "
          "The error stays within the sum of all rounding errors (derived).",
      .parameters = {{"keys", "and values", "256:2048:x2", "256,512", Kind::integer, true, 16,
                      65536},
                     {"queries", "rows of Q", "64", "32", Kind::integer, false, 1, 4096},
                     {"depth", "columns of Q, K and V", "64", "", Kind::integer, false, 8, 512},
                     {"block", "keys at a time", "128", "", Kind::integer, false, 16, 4096}},
      .run = run,
  };
}

}  // namespace guardbit::experiments
