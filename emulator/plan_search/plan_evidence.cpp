#include "emulator/plan_search/plan_evidence.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <tuple>
#include <utility>

#include "emulator/catalogue/instruction_catalogue.hpp"
#include "emulator/faults/real_matrix.hpp"
#include "emulator/gemm/gemm.hpp"
#include "emulator/gemm/scalar.hpp"

namespace guardbit::emulator {

namespace {

/// The median distance of a result's finite elements from exact values.
struct Distance {
  double absolute = 0;
  /// of the result's format
  double ulps = 0;
};

Distance distance_of(const CodeMatrix& d, const CodeMatrix& exact) {
  std::vector<double> absolute, ulps;
  for (std::int64_t at = 0; at < d.size(); ++at) {
    const double x = scalar::decoded(d.format, d[at]);
    const double y = scalar::decoded(exact.format, exact[at]);
    if (!std::isfinite(x) || !std::isfinite(y)) continue;
    const double distance = std::fabs(x - y);
    const int exponent = std::max(y == 0 ? formats::min_exponent(d.format) : std::ilogb(y),
                                  formats::min_exponent(d.format));
    absolute.push_back(distance);
    ulps.push_back(std::ldexp(distance, d.format.fraction_bits - exponent));
  }
  return {median(std::move(absolute)), median(std::move(ulps))};
}

/// A rough bound of the rounding error of each sum of a sample. Each of the K additions may err by
/// an ulp of the accumulator, taken at the largest partial sum. The accumulator may keep as few as
/// 13 bits of FP8 products and 11 of FP16 sums. FP32 operands may have been cut to 16 bits (two
/// pieces of BF16). `products`: the format to which products are rounded, if they are.
std::vector<double> error_bounds(const GemmProblem& sample, const GemmCapture& capture,
                                 const std::optional<Format>& products = {}) {
  const Format &a = sample.a.format, &b = sample.b.format, &d = capture.d.format;
  const bool fp16 = a == formats::fp16 && d == formats::fp16;
  const int bits = formats::bits(a) == 8 ? 13 : fp16 ? 11 : 24;
  std::vector<double> bounds;
  for (std::int64_t g = 0; g < sample.a.batch; ++g) {
    double sum = 0, largest = 0, magnitude = 0;
    for (std::int64_t k = 0; k < sample.k(); ++k) {
      const double product =
          scalar::decoded(a, sample.a(g, 0, k)) * scalar::decoded(b, sample.b(g, k, 0));
      sum += product;
      magnitude += std::fabs(product);
      largest = std::max(largest, std::fabs(sum));
    }
    // Each product of a matrix with a vector may be rounded, too, to the operands' format.
    const double pieces = products             ? std::ldexp(magnitude, -1 - products->fraction_bits)
                          : a == formats::fp32 ? std::ldexp(magnitude, -14)
                          : capture.is_of_vector() ? std::ldexp(magnitude, -1 - a.fraction_bits)
                                                   : 0;
    const double k = static_cast<double>(sample.k());
    bounds.push_back(std::fabs(capture.alpha) * (4 * std::ldexp(k * largest, -bits) + pieces));
  }
  return bounds;
}

/// The median distance from exact values, each over its bound and 32 roundings of D.
double share_of_bounds(const CodeMatrix& d, const CodeMatrix& exact,
                       const std::vector<double>& bounds) {
  constexpr int roundings_log2 = 5;
  std::vector<double> shares;
  for (std::int64_t at = 0; at < d.size(); ++at) {
    const double x = scalar::decoded(d.format, d[at]);
    const double y = scalar::decoded(exact.format, exact[at]);
    if (!std::isfinite(x) || !std::isfinite(y)) continue;
    const double greatest = std::max(std::fabs(x), std::fabs(y));
    const double rounding = std::ldexp(greatest, roundings_log2 - d.format.fraction_bits) +
                            std::ldexp(1.0, formats::min_exponent(d.format));
    shares.push_back(std::fabs(x - y) / (bounds[static_cast<std::size_t>(at)] + rounding));
  }
  return median(std::move(shares));
}

/// How a unit converts operands, if that costs them many bits.
struct OperandChange {
  Format format;
  Rounding rounding = Rounding::nearest_even;
  int pieces = 1;
  /// products are rounded to the format, too
  bool of_products = false;
  /// an operand that alpha multiplies first
  Epilogue::AlphaOn alpha_on = Epilogue::AlphaOn::sum;
};
/// Empty for a unit that takes the operands (nearly) as they are.
using Conversion = std::optional<OperandChange>;

struct ConversionOrder {
  bool operator()(const Conversion& x, const Conversion& y) const {
    const auto key = [](const Conversion& c) {
      return c ? std::tuple(1, c->format.exponent_bits, c->format.fraction_bits,
                            static_cast<int>(c->rounding), c->pieces, c->of_products,
                            static_cast<int>(c->alpha_on))
               : std::tuple(0, 0, 0, 0, 0, false, 0);
    };
    return key(x) < key(y);
  }
};

Conversion conversion_of(const UnitChoice& unit, const Format& a) {
  if (unit.input.has_integer_slices()) return {};
  if (unit.unit.arch == "simt") {
    const std::optional<Format> products = product_format(unit.unit);
    if (!products || products->fraction_bits >= a.fraction_bits) return {};
    return OperandChange{*products, unit.input.rounding, 1, true, unit.alpha_on};
  }
  const MatrixInstruction instruction =
      require_instruction(unit.unit.arch, unit.unit.instruction, "search");
  const bool is_scaled = unit.alpha_on != Epilogue::AlphaOn::sum;
  if (instruction.a == a && !is_scaled) return {};
  // Two pieces of BF16 hold 16 bits; others hold nearly all of FP32.
  const int pieces = unit.input.pieces;
  if (pieces != 1 && (instruction.a != formats::bf16 || pieces != 2)) return {};
  return OperandChange{instruction.a, unit.input.rounding, pieces, false, unit.alpha_on};
}

bool sums_are_fp16(const UnitChoice& unit) {
  if (unit.unit.arch == "simt") return unit.unit.instruction == "fma.fp16";
  return require_instruction(unit.unit.arch, unit.unit.instruction, "search").d == formats::fp16;
}

/// The exact results of A and B as the unit converts them. Operands in pieces become a longer K:
/// it holds all products of pieces that the unit takes, one after the other.
CodeMatrix exact_by(const UnitChoice& unit, const GemmProblem& problem, Epilogue epilogue) {
  GemmProblem x = problem;
  if (!problem.sparse_a) {
    GemmPlan plan;
    plan.unit = unit.unit;
    plan.input = unit.input;
    plan.epilogue.alpha_on = unit.alpha_on;
    plan.epilogue.alpha = unit.alpha;
    GemmOperands operands = prepare_factors(plan, problem, "search");
    x.a = std::move(operands.a);
    x.b = std::move(operands.b);
    if (unit.alpha_on != Epilogue::AlphaOn::sum) epilogue.alpha = 1;
  }
  return nearly_exact(x, epilogue, true, 1);
}

/// The conversions of `units` that D refutes. Two roundings to one format (to nearest even, and to
/// nearest away from zero) differ only where an element lies halfway, so in few outputs: many are
/// looked at.
std::set<Conversion, ConversionOrder> refuted_conversions(const GemmCapture& capture,
                                                          std::span<const UnitChoice> units,
                                                          const Epilogue& epilogue) {
  constexpr std::int64_t most_outputs = 2048, most_products = std::int64_t{1} << 21;
  // The evidence of one output is at most `far`, however far it is off; two such outputs refute.
  constexpr double far = 64, refuting = 2 * far;
  std::map<Conversion, const UnitChoice*, ConversionOrder> conversions;
  for (const UnitChoice& unit : units) {
    const Conversion conversion = conversion_of(unit, capture.problem.a.format);
    if (conversion && conversion->pieces == 1 && !conversion->of_products)
      conversions.try_emplace(conversion, &unit);
  }
  if (conversions.size() < 2) return {};
  const GemmProblem all = capture.lowered({});
  const std::int64_t count =
      std::min(most_outputs, most_products / std::max<std::int64_t>(1, all.k()));
  if (count < 1) return {};
  const std::vector<Output> outputs = telling_outputs(capture, count);
  const GemmProblem sample = select(all, std::span<const Output>(outputs));
  const CodeMatrix d = select(capture.d, std::span<const Output>(outputs));
  double typical = std::numeric_limits<double>::infinity();
  std::map<Conversion, std::vector<double>, ConversionOrder> distances;
  for (const auto& [conversion, unit] : conversions) {
    std::vector<double>& list = distances[conversion];
    const CodeMatrix exact = exact_by(*unit, sample, epilogue);
    for (std::int64_t at = 0; at < d.size(); ++at)
      list.push_back(
          std::fabs(scalar::decoded(d.format, d[at]) - scalar::decoded(exact.format, exact[at])));
    std::vector<double> finite = list;
    std::erase_if(finite, [](double x) { return !std::isfinite(x); });
    if (const double middle = median(std::move(finite)); middle > 0)
      typical = std::min(typical, middle);
  }
  if (std::isinf(typical)) return {};
  std::map<Conversion, double, ConversionOrder> totals;
  double least = std::numeric_limits<double>::infinity();
  for (const auto& [conversion, list] : distances) {
    double total = 0;
    for (const double distance : list)
      total += std::isfinite(distance) ? std::min(distance / typical, far) : 0;
    totals[conversion] = total;
    least = std::min(least, total);
  }
  std::set<Conversion, ConversionOrder> refuted;
  for (const auto& [conversion, total] : totals)
    if (total > least + refuting) refuted.insert(conversion);
  return refuted;
}

/// True if the unit aligns its products to at least the bits of FP32.
bool keeps_fp32(const UnitChoice& unit) {
  if (unit.unit.arch == "simt") return true;
  const MatrixInstruction instruction =
      require_instruction(unit.unit.arch, unit.unit.instruction, "search");
  return instruction.steps.list[0].spec.kept_fraction_bits >= formats::fp32.fraction_bits;
}

/// True if D's errors lean neither to zero nor away from it, as many as they are: FP32 sums of
/// multiply-adds are rounded to nearest, those of matrix units are cut, so that a long one's errors
/// lean to zero.
bool is_rounded_to_nearest(const GemmCapture& capture, const Epilogue& epilogue) {
  constexpr std::int64_t most_outputs = 2048, most_products = std::int64_t{1} << 22;
  constexpr std::int64_t fewest_errors = 256, fewest_products = 128;
  const GemmProblem all = capture.lowered({});
  const bool is_linear =
      capture.activation == Activation::none || capture.activation == Activation::relu;
  if (!is_linear || all.k() < fewest_products || !all.scale_a.empty() || !all.scale_b.empty())
    return false;
  const std::vector<Output> outputs =
      telling_outputs(capture, std::min(most_outputs, most_products / all.k()));
  const GemmProblem sample = select(all, std::span<const Output>(outputs));
  const CodeMatrix d = select(capture.d, std::span<const Output>(outputs));
  const CodeMatrix exact = nearly_exact(sample, epilogue, true, 1);
  Epilogue plain = epilogue;
  plain.activation = Activation::none;
  const CodeMatrix sums = nearly_exact(sample, plain, false, 1);
  const auto number = [](const CodeMatrix& x, std::int64_t at) {
    return scalar::decoded(x.format, x[at]);
  };
  std::int64_t to_zero = 0, away = 0;
  for (std::int64_t at = 0; at < d.size(); ++at) {
    const double error = number(d, at) - number(exact, at);
    if (!std::isfinite(error) || error == 0) continue;
    ++((error < 0) == (number(sums, at) > 0) ? to_zero : away);
  }
  // Three standard deviations of a fair coin.
  const double count = static_cast<double>(to_zero + away);
  return to_zero + away >= fewest_errors &&
         std::fabs(static_cast<double>(to_zero - away)) < 3 * std::sqrt(count);
}

}  // namespace

GemmProblem as_multiplied(const GemmProblem& problem, const GemmPlan& plan) {
  GemmProblem x = problem;
  if (problem.sparse_a || plan.unit.arch == "simt" || plan.input.pieces != 1 ||
      plan.input.has_integer_slices())
    return x;
  GemmPlan unit;
  unit.unit = plan.unit;
  unit.input = plan.input;
  GemmOperands operands = prepare(unit, problem, "search");
  x.a = std::move(operands.a);
  x.b = std::move(operands.b);
  return x;
}

namespace {

/// The operands with the scales of their blocks multiplied in; FP64 holds the products.
GemmProblem with_scales(const GemmProblem& problem) {
  GemmProblem x = problem;
  x.a = make_matrix(formats::fp64, problem.a.batch, problem.m(), problem.k());
  x.b = make_matrix(formats::fp64, problem.b.batch, problem.k(), problem.n());
  const auto fill = [&](CodeMatrix& to, const CodeMatrix& from, const CodeMatrix& scales) {
    for (std::int64_t g = 0; g < to.batch; ++g)
      for (std::int64_t i = 0; i < to.rows; ++i)
        for (std::int64_t j = 0; j < to.columns; ++j)
          to.set(to.index(g, i, j),
                 scalar::encoded(formats::fp64, scalar::decoded(from.format, from(g, i, j)) *
                                                    scale_at(scales, g, i, j, to.rows, to.columns,
                                                             problem.scale_k)));
  };
  fill(x.a, problem.a, problem.scale_a);
  fill(x.b, problem.b, problem.scale_b);
  x.scale_a = x.scale_b = {};
  x.scale_k = 0;
  return x;
}

}  // namespace

CodeMatrix nearly_exact(const GemmProblem& problem, const Epilogue& epilogue, bool addends,
                        int threads) {
  if (problem.scale_k != 0) return nearly_exact(with_scales(problem), epilogue, addends, threads);
  GemmPlan exact;
  exact.unit = {"simt", "fma.fp64"};
  exact.epilogue = epilogue;
  exact.epilogue.compute = exact.epilogue.output = formats::fp64;
  exact.epilogue.addition = Epilogue::Addition::fma_product;
  if (addends) return execute(exact, problem, threads);
  GemmProblem product = problem;
  product.c = product.bias = {};
  exact.epilogue.beta = 0;
  return execute(exact, product, threads);
}

ResultEvidence put_supported_first(const GemmCapture& capture, std::vector<UnitChoice>& units) {
  // Another order of the sums of the same operands takes a result at most this much further away.
  constexpr double likely_factor = 8;
  if (units.size() < 2 || formats::is_integer(capture.problem.a.format) ||
      capture.problem.scale_k != 0 || capture.d.size() == 0)
    return {units.size(), true};
  const std::vector<Output> outputs = telling_outputs(capture, 24);
  const GemmProblem sample = select(capture.lowered({}), std::span<const Output>(outputs));
  const CodeMatrix d = select(capture.d, std::span<const Output>(outputs));
  Epilogue epilogue;
  capture.set_factors(epilogue);
  std::map<Conversion, Distance, ConversionOrder> distances;
  const std::vector<double> bounds = error_bounds(sample, capture);
  double least = std::numeric_limits<double>::infinity();
  double least_share = least;
  for (const UnitChoice& unit : units) {
    const auto [entry, is_new] =
        distances.try_emplace(conversion_of(unit, capture.problem.a.format));
    if (!is_new) continue;
    const CodeMatrix exact =
        entry->first ? exact_by(unit, sample, epilogue) : nearly_exact(sample, epilogue, true, 1);
    entry->second = distance_of(d, exact);
    least = std::min(least, entry->second.absolute);
    const bool of_products = entry->first && entry->first->of_products;
    least_share = std::min(
        least_share,
        share_of_bounds(
            d, exact, of_products ? error_bounds(sample, capture, entry->first->format) : bounds));
  }
  const auto supported = [&](const UnitChoice& unit) {
    return distances.at(conversion_of(unit, capture.problem.a.format)).absolute <=
           likely_factor * least;
  };
  // Integer slices of FP64 take many products: they meet no partition but their own.
  auto rest = std::stable_partition(units.begin(), units.end(), [&](const UnitChoice& unit) {
    return !unit.input.has_integer_slices() && supported(unit);
  });
  const auto refuted = refuted_conversions(
      capture, std::span(units.data(), static_cast<std::size_t>(rest - units.begin())), epilogue);
  if (!refuted.empty())
    rest = std::stable_partition(units.begin(), rest, [&](const UnitChoice& unit) {
      return !refuted.contains(conversion_of(unit, capture.problem.a.format));
    });
  // An FP16 result this far away had FP16 sums. (FP8 products say nothing: their FP32 sums keep so
  // few bits that they lie as far away.)
  const Format &a_format = capture.problem.a.format, &d_format = capture.d.format;
  const bool narrow_sums =
      a_format == formats::fp16 && d_format == formats::fp16 && distances.at({}).ulps > 0.75;
  if (narrow_sums) std::stable_partition(units.begin(), rest, sums_are_fp16);
  // Multiply-adds and matrix units both take operands of 16 bits as they are.
  if (formats::bits(a_format) == 16 && d_format == formats::fp32 &&
      is_rounded_to_nearest(capture, epilogue))
    std::stable_partition(units.begin(), rest,
                          [](const UnitChoice& x) { return x.unit.arch == "simt"; });
  // A unit may keep 13 bits of FP8 products. Its FP32 results then lie further from exact ones than
  // truncated FP32 sums of K products can.
  if (formats::bits(a_format) == 8 && d_format == formats::fp32 && sample.k() > 32) {
    const double k = static_cast<double>(sample.k());
    const bool near = distances.at({}).ulps < 64 * std::max(1.0, k / 512);
    const auto agree = std::stable_partition(
        units.begin(), rest, [&](const UnitChoice& x) { return keeps_fp32(x) == near; });
    if (agree != units.begin()) rest = agree;
  }
  // The bounds know neither how much integer slices of FP64 leave out, nor scales.
  const bool unbounded = a_format == formats::fp64 || !capture.problem.scale_a.empty() ||
                         !capture.problem.scale_b.empty();
  return {static_cast<std::size_t>(rest - units.begin()), unbounded || least_share <= 1};
}

}  // namespace guardbit::emulator
