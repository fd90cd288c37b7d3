#include "experiments/accuracy/error_bounds.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <numeric>
#include <optional>
#include <string>
#include <utility>

#include "emulator/catalogue/instruction_catalogue.hpp"
#include "emulator/engine/continuation.hpp"
#include "emulator/gemm/gemm.hpp"
#include "emulator/gemm/stream_k.hpp"
#include "formats/codec.hpp"
#include "formats/support/error.hpp"

// Derivation. A fused block cuts each of its L products and the addend to multiples of 2^(E - F),
// losing less than 2^(E - F) each, and E is the exponent of one of them: 2^E is at most the largest
// magnitude among the terms, where factors below the smallest normal number are counted as that
// number, because the unit aligns them by it. So a block's sum is off by less than
// (L + 1) 2^-F (|p_1| + ... + |p_L| + |c|), and its conversion by u of the sum: a factor of at most
// 1 + (L + 1) 2^-F + u for everything that went in. Factors multiply along a chain, through
// promotion, slices, split and epilogue: |computed - exact| <= (product of the factors - 1) S.
//
// With independent errors of mean zero the exponents add as squares (Hoeffding's inequality on the
// logarithms of the factors): sqrt(sum of squares) * lambda in place of the sum, for each output
// with probability 1 - 2 exp(-lambda^2 / 2); lambda is chosen so that all outputs hold together.
namespace guardbit::experiments {

namespace {

using emulator::AccumulatorSpec;
using emulator::Epilogue;
using emulator::Format;
using emulator::GemmPlan;
using emulator::GemmProblem;
using emulator::KRange;
using emulator::KRanges;
using emulator::MatrixInstruction;
using emulator::Operation;
using emulator::Partition;
using emulator::Rounding;
using emulator::Step;
using emulator::Subnormals;
using emulator::Summation;
using emulator::SumOrder;

bool is_nearest(Rounding rounding) {
  return rounding == Rounding::nearest_even || rounding == Rounding::nearest_away;
}

/// The largest relative error of rounding to that many significant bits.
double unit_roundoff(int precision, Rounding rounding) {
  return std::ldexp(1.0, is_nearest(rounding) ? -precision : 1 - precision);
}
double unit_roundoff(const Format& f, Rounding rounding = Rounding::nearest_even) {
  return formats::is_integer(f) ? 0 : unit_roundoff(formats::precision(f), rounding);
}

double smallest_normal(const Format& f) { return std::ldexp(1.0, formats::min_exponent(f)); }

/// Errors on the way from the operands to a result, as factors 1 + e.
struct Roundings {
  double logarithm = 0, squares = 0, largest = 0;
  double absolute = 0;
  bool mean_zero = true;

  void add(double error, double count = 1) { add(error, error * error, count); }
  void add(double error, double square, double count) {
    logarithm += count * std::log1p(error);
    squares += count * square;
    if (count > 0) largest = std::max(largest, error);
  }
  void add(const Roundings& other, double count) {
    logarithm += count * other.logarithm;
    squares += count * other.squares;
    largest = std::max(largest, count > 0 ? other.largest : 0);
    absolute += count * other.absolute;
    mean_zero = mean_zero && (other.mean_zero || count == 0);
  }
  double worst() const { return std::expm1(logarithm * (1 + 1e-9)); }
  double likely(double lambda) const {
    const double few = lambda * std::sqrt(squares) + squares / (1 - std::min(largest, 0.5));
    return std::min(worst(), std::expm1(few));
  }
};

/// One accumulation of `products` products.
Roundings accumulation(const Step& step, const MatrixInstruction& instruction, int products) {
  const AccumulatorSpec& s = step.spec;
  Roundings x;
  if (s.summation == Summation::integer) return x;
  const int precision =
      s.result_fraction_bits != 0 ? s.result_fraction_bits + 1 : formats::precision(step.result);
  const double u = unit_roundoff(precision, s.result);
  const int length = s.terms == 0 ? products : std::min(s.terms, products);
  const int blocks = (products + length - 1) / length;
  const auto terms = static_cast<double>(length + 1);
  const auto cut = [](int kept_bits) { return std::ldexp(1.0, -kept_bits); };
  x.mean_zero = is_nearest(s.result);
  const bool flushes = s.output != Subnormals::keep;
  // Half a subnormal spacing or all of it, or everything below the normal numbers.
  double lost = (flushes ? 1 : u) * smallest_normal(step.result);
  switch (s.summation) {
    case Summation::fused:
    case Summation::two_stage: {
      const double grid = cut(s.kept_fraction_bits);
      double error = terms * grid + u, square = terms * grid * grid + u * u;
      if (s.summation == Summation::two_stage) {
        // The sum and the addend are floored once more each, the total twice
        // (emulator/model/dot.hpp).
        const double floors = 2 * grid + 2 * cut(s.sum_kept_fraction_bits) +
                              2 * cut(s.total_kept_fraction_bits) +
                              (s.addend_cutoff == 0 ? 0 : cut(s.addend_cutoff - 1));
        error += floors, square += floors * floors;
      }
      x.add(error, square, blocks);
      x.mean_zero = false;
      const int least = std::max(s.min_exponent, formats::min_exponent(instruction.c));
      lost += terms * std::ldexp(grid, least);
      break;
    }
    case Summation::exact: x.add(u, blocks); break;
    case Summation::pairwise: {
      const int depth = 2 + static_cast<int>(std::bit_width(static_cast<unsigned>(length - 1)));
      x.add(u, static_cast<double>(blocks) * depth);
      lost *= 2 * length;
      break;
    }
    case Summation::fma_chain:
      x.add(u, products);
      lost *= products;
      break;
    case Summation::integer: break;
  }
  x.absolute = lost * blocks;
  return x;
}

/// One execution of an instruction.
Roundings execution(const MatrixInstruction& instruction) {
  Roundings x;
  const int stored = emulator::stored_k(instruction, instruction.shape.k);
  for (const Step& step : instruction.steps) {
    if (step.operation != Operation::dot) {
      x.add(unit_roundoff(step.result, step.spec.result));
      x.mean_zero = x.mean_zero && is_nearest(step.spec.result);
      x.absolute += smallest_normal(step.result) * (step.spec.output == Subnormals::keep ? 0 : 1) +
                    smallest_normal(step.result) * unit_roundoff(step.result, step.spec.result);
      continue;
    }
    int products = 0;
    for (int k = 0; k < stored; ++k) products += step.selection.contains(k) ? 1 : 0;
    if (products != 0) x.add(accumulation(step, instruction, products), 1);
  }
  return x;
}

struct Unit {
  /// of its operands
  Format a{}, b{};
  /// whose smallest exponent it aligns by
  Format least_a{}, least_b{};
  /// of `k` products
  Roundings execution;
  std::int64_t k = 1;
  bool flushes = false;
  /// nothing for a multiply-add
  std::optional<MatrixInstruction> instruction;
};

Unit unit_of(const GemmPlan& plan, const GemmProblem& problem, std::string_view where) {
  Unit x;
  if (plan.unit.arch == "simt") {
    const Format f = emulator::scalar_format(plan.unit, where);
    x.a = x.b = x.least_a = x.least_b = formats::is_integer(f) ? problem.a.format : f;
    if (formats::is_integer(f)) return x;
    x.execution.add(unit_roundoff(f));
    x.execution.absolute = unit_roundoff(f) * smallest_normal(f);
    if (const auto products = emulator::product_format(plan.unit)) {
      x.a = x.b = x.least_a = x.least_b = *products;
      x.execution.add(unit_roundoff(*products));
      x.execution.absolute += unit_roundoff(*products) * smallest_normal(*products);
    }
    return x;
  }
  const MatrixInstruction instruction =
      emulator::require_instruction(plan.unit.arch, plan.unit.instruction, where);
  x.instruction = instruction;
  x.k = instruction.shape.k;
  x.a = x.least_a = instruction.a, x.b = x.least_b = instruction.b;
  for (const Step& step : instruction.steps) {
    if (step.widened) x.least_a = x.least_b = *step.widened;
    x.flushes = x.flushes || step.spec.input != Subnormals::keep;
  }
  x.execution = execution(instruction);
  return x;
}

/// Relative error of an element of `from` converted to `to`.
double conversion(const Format& from, const Format& to, Rounding rounding) {
  if (from == to || formats::is_integer(from)) return 0;
  const bool contained = formats::precision(from) <= formats::precision(to) &&
                         formats::max_exponent(from) <= formats::max_exponent(to) &&
                         formats::min_exponent(from) - from.fraction_bits >=
                             formats::min_exponent(to) - to.fraction_bits;
  return contained ? 0 : unit_roundoff(to, rounding);
}

/// What conversions and pieces do to a product, and how much its pieces' products add up to.
struct Conversions {
  Roundings error;
  double magnitude = 1;
  /// of the smallest normal number, so that all pieces are normal
  double least_growth = 1;
};

Conversions conversions(const GemmPlan& plan, const GemmProblem& problem, const Unit& core) {
  Conversions x;
  if (plan.input.has_integer_slices()) return x;  // their error is absolute
  const int pieces = plan.input.pieces;
  const double a = conversion(problem.a.format, core.a, plan.input.rounding);
  const double b = conversion(problem.b.format, core.b, plan.input.rounding);
  const Rounding last = plan.input.last.value_or(plan.input.rounding);
  x.error.mean_zero = (a == 0 && b == 0) || (is_nearest(plan.input.rounding) && is_nearest(last));
  if (pieces == 1) {
    x.error.add(a);
    x.error.add(b);
    x.magnitude = (1 + a) * (1 + b);
    return x;
  }
  const double u = std::max({a, b, conversion(problem.a.format, core.a, last),
                             conversion(problem.b.format, core.b, last)});
  x.magnitude = 0;
  double omitted = 0;
  for (int i = 0; i < pieces; ++i)
    for (int j = 0; j < pieces; ++j)
      (i + j < plan.input.ranks ? x.magnitude : omitted) += std::pow(u, i + j) * (1 + u) * (1 + u);
  x.error.add(std::pow(u, pieces), 2);
  x.error.add(omitted);
  x.least_growth =
      std::max(1.0, std::pow(std::ldexp(1 / std::max(u, 1e-300), -plan.input.shift), pieces - 1));
  return x;
}

double reduction_depth(const Partition& partition, std::size_t parts) {
  if (parts <= 1) return 0;
  const bool tree = partition.order == SumOrder::adjacent ||
                    partition.order == SumOrder::adjacent_last ||
                    partition.order == SumOrder::halves;
  if (!tree) return static_cast<double>(parts - 1);
  if (partition.group <= 1) return static_cast<double>(std::bit_width(parts - 1));
  const auto group = static_cast<std::size_t>(partition.group);
  return static_cast<double>(std::bit_width(std::min(group, parts) - 1) +
                             std::bit_width((parts + group - 1) / group - 1));
}

void reduce(Roundings& x, const Partition& partition, const Epilogue& epilogue, std::size_t parts) {
  const Format &compute = epilogue.compute, &output = epilogue.output;
  if (parts <= 1) return;
  if (partition.sums != compute) x.add(unit_roundoff(partition.sums));
  if (partition.order == SumOrder::in_place)
    x.add(unit_roundoff(output), static_cast<double>(parts));
  const double depth = reduction_depth(partition, parts);
  x.add(unit_roundoff(compute), depth);
  x.absolute *= static_cast<double>(parts);
}

/// The longest sum of a unit in an accumulator over so many k's.
std::int64_t longest_chain(const GemmPlan& plan, std::int64_t length, std::int64_t expansion) {
  const std::int64_t interval = plan.promotion.interval;
  return (interval == 0 ? length : std::min(length, interval)) * expansion;
}

/// Executions of a unit over so many k's. Runs of pieces take whole ones.
std::int64_t executions_of(const GemmPlan& plan, const Unit& core, std::int64_t length,
                           std::int64_t expansion) {
  const std::int64_t run = plan.input.run;
  if (run == 0) return (length * expansion + core.k - 1) / core.k;
  return (length + run - 1) / run * expansion * ((run + core.k - 1) / core.k);
}

/// One accumulator over some k's, with its promotions.
Roundings chain(const GemmPlan& plan, const Unit& core, const KRanges& ranges,
                std::int64_t expansion) {
  std::int64_t length = 0, executions = 0;
  for (const KRange& range : ranges) {
    length += range.length();
    executions += executions_of(plan, core, range.length(), expansion);
    if (plan.residue_first != 0) ++executions;
  }
  if (core.instruction)
    emulator::require_chain(*core.instruction, longest_chain(plan, length, expansion), "plan");
  Roundings x;
  const std::int64_t interval = plan.promotion.interval;
  if (plan.products == emulator::ProductOrder::tree && interval == 0) {
    // A product is rounded once, and added once for each level of the tree.
    x.add(core.execution, static_cast<double>(std::bit_width(static_cast<std::uint64_t>(length))));
    x.absolute = core.execution.absolute * static_cast<double>(length);
    return x;
  }
  if (interval == 0) {
    x.add(core.execution, static_cast<double>(executions));
    return x;
  }
  const std::int64_t each = executions_of(plan, core, std::min(interval, length), expansion) + 1;
  const std::int64_t promotions = (length + interval - 1) / interval;
  x.add(core.execution, static_cast<double>(each));
  x.absolute *= static_cast<double>(promotions);
  const bool plain = plan.promotion.adder == emulator::Promotion::Adder::add;
  x.add(unit_roundoff(formats::fp32), static_cast<double>(promotions + (plain ? 0 : 2)));
  return x;
}

/// The ways in which K is cut: of stream-K, every tile's.
std::vector<std::vector<KRanges>> cuts_of(const GemmPlan& plan, const GemmProblem& problem) {
  const std::int64_t k = problem.k();
  if (plan.stream_k.none()) return {emulator::divide(plan.split, {{0, k}})};
  const emulator::TileOrder order(plan.stream_k, problem.a.batch, problem.m(), problem.n());
  std::vector<std::vector<KRanges>> list;
  for (std::int64_t tile = 0; tile < order.count(); ++tile) {
    std::vector<KRanges> cuts;
    for (const KRange& range : emulator::stream_k_cuts(plan.stream_k, order.count(), tile, k))
      cuts.push_back({range});
    if (std::find(list.begin(), list.end(), cuts) == list.end()) list.push_back(std::move(cuts));
  }
  return list;
}

/// The accumulator that loses most.
Roundings accumulation(const GemmPlan& plan, const Unit& core, const GemmProblem& problem,
                       std::int64_t expansion) {
  Roundings most;
  Partition reduction = plan.split;
  if (!plan.stream_k.none()) reduction.order = plan.stream_k.order;
  if (!plan.stream_k.none()) reduction.sums = plan.stream_k.sums;
  for (const std::vector<KRanges>& parts : cuts_of(plan, problem)) {
    Roundings worst;
    for (const KRanges& part : parts) {
      const auto slices = emulator::divide(plan.slices, part);
      Roundings of_part;
      for (const KRanges& slice : slices) {
        const Roundings x = chain(plan, core, slice, expansion);
        if (x.logarithm >= of_part.logarithm) of_part = x;
      }
      reduce(of_part, plan.slices, plan.epilogue, slices.size());
      if (of_part.logarithm >= worst.logarithm) worst = of_part;
    }
    reduce(worst, reduction, plan.epilogue, parts.size());
    if (worst.logarithm >= most.logarithm) most = worst;
  }
  return most;
}

void finish(Roundings& x, const Epilogue& e, const GemmProblem& problem) {
  const bool initial = e.addition == Epilogue::Addition::initial;
  const bool scaled = !(problem.scale_a.empty() && problem.scale_b.empty());
  const bool addend = !initial && !problem.c.empty() && e.beta != 0;
  const double u = unit_roundoff(e.compute);
  // alpha, the scales' product, alpha times it, the sum times that; or the addend's own.
  if ((!initial && e.alpha != 1) || scaled || addend) x.add(u, 4);
  if (addend || !problem.bias.empty()) x.add(u, 3);
  if (e.addition == Epilogue::Addition::rounded) x.add(unit_roundoff(e.output));
  if (e.via) {
    x.add(unit_roundoff(*e.via));
    x.absolute += unit_roundoff(*e.via) * smallest_normal(*e.via);
  }
  if (u != 0) x.absolute += 4 * u * smallest_normal(e.compute);
}

bool holds_subnormals(const emulator::CodeMatrix& x) {
  for (std::int64_t i = 0; i < x.size(); ++i) {
    const std::uint64_t magnitude = x[i] & formats::magnitude_mask(x.format);
    if (magnitude != 0 && magnitude < formats::min_normal_code(x.format)) return true;
  }
  return false;
}

double largest_magnitude(const emulator::CodeMatrix& scales) {
  double largest = scales.empty() ? 1 : 0;  // of factors that are not there
  for (std::int64_t i = 0; i < scales.size(); ++i) {
    const formats::Value v = formats::decode(scales.format, scales[i]);
    if (v.kind == formats::Kind::finite)
      largest = std::max(largest, std::ldexp(static_cast<double>(v.significand), v.exponent));
  }
  return largest;
}

/// Products of pieces of each total rank below `ranks`.
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

/// Pieces with chains of their own: what those of the lesser ranks lose, and their additions.
void add_scaled_pieces(Roundings& x, const GemmPlan& plan, const Unit& core,
                       const GemmProblem& problem, double piece) {
  GemmPlan unpromoted = plan;
  unpromoted.promotion = {};
  const std::vector<int> counts = products_of_ranks(plan.input);
  double share = 1;
  for (std::size_t rank = 1; rank < counts.size(); ++rank) {
    share *= piece;
    const Roundings apart = accumulation(unpromoted, core, problem, counts[rank]);
    x.add(counts[rank] * share * apart.worst());
    x.absolute += apart.absolute;
    x.add(unit_roundoff(formats::fp32));
  }
}

/// Slices: with lines below 2^E, slice s of `bits` bits is below w^s 2^E, w = 2^-bits, and what the
/// last of p leaves below w^p 2^E. So products of slices of total rank t are below w^t K 2^(Ea+Eb);
/// those from rank r on are left out, and the additions of the others round sums of less than
/// (1 + 2 w + 3 w^2 + ...) K 2^(Ea+Eb). Chains are exact where INT32 holds them.
double slices_error(const GemmPlan& plan, const Unit& core, const GemmProblem& problem,
                    Roundings& x, std::string_view where) {
  const int bits = formats::bits(core.a) - 1;
  const double w = std::ldexp(1.0, -bits), k = static_cast<double>(problem.k());
  const std::vector<int> counts = products_of_ranks(plan.input);
  const bool grouped = plan.input.cut == emulator::InputConversion::Cut::grouped_slices;
  const int most = grouped ? *std::max_element(counts.begin(), counts.end()) : 1;
  if (std::ldexp(k * most, 2 * bits) >= std::ldexp(1.0, 31))
    throw formats::Error(std::string(where), "no bound: INT32 sums of this K may wrap");
  double kept = 0,
         left_out = 2 * std::pow(w, plan.input.pieces) + std::pow(w, 2 * plan.input.pieces);
  double additions = 1;
  for (std::size_t t = 0; t < counts.size(); ++t) {
    kept += counts[t] * std::pow(w, t);
    additions += grouped ? 1 : counts[t];
  }
  for (int t = plan.input.ranks; t <= 2 * plan.input.pieces - 2; ++t)
    left_out += (2 * plan.input.pieces - 1 - t) * std::pow(w, t);
  x.add(unit_roundoff(plan.epilogue.compute), additions);
  return k * 4 * largest_magnitude(problem.a) * largest_magnitude(problem.b) *
         (left_out * (1 + x.worst()) + kept * x.worst());
}

/// A smooth activation is nowhere steeper than 1.13, and its programs err by less than some units
/// of their argument, in FP32 or in the format to which their steps are rounded.
void go_through_activation(ErrorBound& bound, const Epilogue& e) {
  if (!emulator::is_smooth(e.activation)) return;
  constexpr double steepest = 1.13;
  double own = 16 * unit_roundoff(formats::fp32);
  if (e.activation == emulator::Activation::gelu_erfc) own += 8 * unit_roundoff(e.output);
  bound.sum = steepest * bound.sum + own * (1 + bound.sum);
  bound.likely = steepest * bound.likely + own * (1 + bound.likely);
  bound.absolute = steepest * bound.absolute + smallest_normal(e.output);
}

}  // namespace

ErrorBound error_bound(const GemmPlan& plan, const GemmProblem& problem, std::string_view where) {
  const Unit core = unit_of(plan, problem, where);
  const Conversions input = conversions(plan, problem, core);
  const std::vector<int> counts = products_of_ranks(plan.input);
  const bool one_chain = plan.input.cut == emulator::InputConversion::Cut::rest;
  Roundings x = accumulation(plan, core, problem,
                             one_chain ? std::accumulate(counts.begin(), counts.end(), 0) : 1);
  if (plan.input.has_integer_slices()) {
    x.absolute += slices_error(plan, core, problem, x, where);
  } else if (!one_chain) {
    add_scaled_pieces(x, plan, core, problem,
                      std::max(conversion(problem.a.format, core.a, plan.input.rounding),
                               conversion(problem.b.format, core.b, plan.input.rounding)));
  }
  finish(x, plan.epilogue, problem);

  ErrorBound bound;
  const double outputs =
      static_cast<double>(problem.a.batch * problem.m()) * static_cast<double>(problem.n());
  bound.confidence = 0.99;
  bound.lambda = std::sqrt(2 * std::log(2 * outputs / (1 - bound.confidence)));
  bound.sum = input.error.worst() + input.magnitude * x.worst();
  bound.likely = input.error.likely(bound.lambda) + input.magnitude * x.likely(bound.lambda);
  bound.mean_zero = input.error.mean_zero && x.mean_zero;
  const bool flushed = core.flushes && (holds_subnormals(problem.a) || holds_subnormals(problem.b));
  if (flushed) bound.sum += 1, bound.likely += 1;
  const Format& d = plan.epilogue.output;
  if (formats::is_integer(d)) {
    bound.absolute = plan.epilogue.compute == d ? 0 : 0.5;
  } else if (formats::precision(d) < formats::precision(plan.epilogue.compute) ||
             formats::is_integer(plan.epilogue.compute)) {
    bound.last = unit_roundoff(d);
    bound.absolute = unit_roundoff(d) * smallest_normal(d);
  }
  bound.absolute +=
      x.absolute * (1 + bound.sum) * std::max(1.0, std::fabs(plan.epilogue.alpha)) *
      std::max(1.0, largest_magnitude(problem.scale_a) * largest_magnitude(problem.scale_b));
  if (!formats::is_integer(core.a)) {
    bound.least_a = smallest_normal(core.least_a) * input.least_growth;
    bound.least_b = smallest_normal(core.least_b) * input.least_growth;
  }
  go_through_activation(bound, plan.epilogue);
  return bound;
}

}  // namespace guardbit::experiments
