#include "experiments/accuracy/error_bounds.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "emulator/engine/continuation.hpp"
#include "emulator/gemm/chain.hpp"
#include "emulator/gemm/gemm_operands.hpp"
#include "emulator/gemm/stream_k.hpp"
#include "experiments/accuracy/operand_errors.hpp"
#include "experiments/accuracy/unit_errors.hpp"
#include "formats/support/error.hpp"

// Derivation. Each step of a plan multiplies everything that went into it by 1 + e, with |e| at
// most what roundings.hpp, unit_errors.cpp and operand_errors.cpp say. Factors multiply along a
// chain, through promotion, slices, split and epilogue:
// |computed - exact| <= (product of the factors - 1) S. The steps here are those of
// emulator/gemm: part_sum.cpp, sums.cpp and gemm_epilogue.cpp, in this order.
//
// With independent errors of mean zero the exponents add as squares (Hoeffding's inequality on the
// logarithms of the factors): sqrt(sum of squares) * lambda in place of the sum, for each output
// with probability 1 - 2 exp(-lambda^2 / 2); lambda is chosen so that all outputs hold together.
namespace guardbit::experiments {

namespace {

using emulator::Epilogue;
using emulator::Format;
using emulator::GemmOperands;
using emulator::GemmPlan;
using emulator::GemmProblem;
using emulator::KRange;
using emulator::KRanges;
using emulator::Partition;
using emulator::SumOrder;
using Cut = emulator::InputConversion::Cut;

double growth_by_scales(const GemmProblem& problem) {
  return std::max(1.0, largest_magnitude(problem.scale_a)) *
         std::max(1.0, largest_magnitude(problem.scale_b));
}

/// Factors that are multiplied by each other, and then with a sum, in one format.
double product_of_scales_error(const Format& f, double least) {
  return std::max(unit_roundoff(f), underflow(f) / least);
}

double reduction_depth(const Partition& partition, std::size_t parts) {
  if (parts <= 1) return 0;
  const std::size_t all = std::max(parts, static_cast<std::size_t>(partition.parts));
  const auto halvings = [](std::size_t count) {
    return static_cast<double>(std::bit_width(count - 1));
  };
  switch (partition.order) {
    case SumOrder::adjacent:
    case SumOrder::adjacent_last: return halvings(parts);
    case SumOrder::halves: break;
    default: return static_cast<double>(parts - 1);
  }
  if (partition.group <= 1) return halvings(all);
  const auto group = static_cast<std::size_t>(partition.group);
  return halvings(std::min(group, all)) + halvings((all + group - 1) / group);
}

/// Adds parts up, each with these errors.
void add_up(Roundings& x, const Partition& partition, const Format& compute, std::size_t parts) {
  if (parts <= 1) return;
  if (partition.sums != formats::fp32 && partition.sums != compute) x.convert_to(partition.sums);
  x.convert_to(compute);
  x.absolute *= static_cast<double>(parts);
  x.add_up_in(compute, reduction_depth(partition, parts));
}

/// The sums of a plan's parts.
class SumErrors {
 public:
  SumErrors(const GemmPlan& plan, const GemmProblem& problem, const UnitErrors& unit, double piece,
            std::string_view where)
      : plan_(plan),
        problem_(problem),
        unit_(unit),
        piece_(piece),
        // K as the chains of one output take it.
        x_(emulator::prepare_factors(plan, emulator::part(problem, {0, 1, 0, 1, 0, 1}), where)),
        counts_(products_of_ranks(plan.input)) {}

  /// The part that loses most; of stream-K and most splits, all parts added.
  Roundings operator()() const {
    Roundings most;
    Partition partition = plan_.split;
    if (!plan_.stream_k.none()) {
      partition = {};
      partition.order = plan_.stream_k.order;
      partition.sums = plan_.stream_k.sums;
    }
    bool first = true;
    for (const std::vector<KRanges>& parts : cuts()) {
      Roundings worst = part(parts.front());
      for (std::size_t i = 1; i < parts.size(); ++i) worst = worse(worst, part(parts[i]));
      if (partition.order != SumOrder::in_place)
        add_up(worst, partition, plan_.epilogue.compute, parts.size());
      most = first ? worst : keep_format(worse(most, worst), most, worst);
      first = false;
    }
    return most;
  }
  std::size_t parts() const {
    return plan_.stream_k.none() ? emulator::divide(plan_.split, {{0, x_.k()}}).size() : 1;
  }

 private:
  /// Whole tiles hold what the unit gives, others what additions give.
  static Roundings keep_format(Roundings most, const Roundings& x, const Roundings& y) {
    most.held = contains(x.held, y.held) ? x.held : y.held;
    return most;
  }

  /// The ways in which K is cut: of stream-K, every tile's.
  std::vector<std::vector<KRanges>> cuts() const {
    const std::int64_t k = x_.k();
    if (plan_.stream_k.none()) return {emulator::divide(plan_.split, {{0, k}})};
    const emulator::TileOrder order(plan_.stream_k, problem_.a.batch, problem_.m(), problem_.n());
    std::vector<std::vector<KRanges>> list;
    for (std::int64_t tile = 0; tile < order.count(); ++tile) {
      std::vector<KRanges> cuts;
      for (const KRange& range : emulator::stream_k_cuts(plan_.stream_k, order.count(), tile, k))
        cuts.push_back({range});
      if (std::find(list.begin(), list.end(), cuts) == list.end()) list.push_back(std::move(cuts));
    }
    return list;
  }

  Roundings part(const KRanges& ranges) const {
    const auto slices = emulator::divide(plan_.slices, ranges);
    Roundings worst = accumulator(slices.front());
    for (std::size_t i = 1; i < slices.size(); ++i) worst = worse(worst, accumulator(slices[i]));
    add_up(worst, plan_.slices, plan_.epilogue.compute, slices.size());
    return worst;
  }

  Roundings accumulator(const KRanges& ranges) const {
    if (!plan_.input.has_integer_slices()) {
      Roundings x = chain(x_, ranges, true);
      if (plan_.input.cut == Cut::scaled_rest) add_scaled_pieces(x, ranges);
      return x;
    }
    // The chains are exact.
    Roundings x;
    x.multiply_in(plan_.epilogue.compute, slice_additions(plan_.input));
    return x;
  }

  /// What the chains of lesser ranks lose, and their additions.
  void add_scaled_pieces(Roundings& x, const KRanges& ranges) const {
    x.convert_to(formats::fp32);
    for (const emulator::PieceProducts& other : x_.apart) {
      const auto rank = static_cast<std::size_t>(other.rank);
      Roundings apart = chain(other.operands, ranges, false);
      apart.convert_to(formats::fp32);
      x.add(counts_[rank] * std::pow(piece_, other.rank) * apart.worst());
      x.absolute += apart.absolute;
      // Such a chain may hold more than its share of the sum.
      const double held =
          counts_[rank] * std::pow(std::ldexp(piece_, plan_.input.shift), other.rank);
      x.largest_finite = std::min(x.largest_finite, apart.largest_finite / std::max(1.0, held));
      x.multiply_in(formats::fp32);
    }
  }

  /// One accumulator over some k's, with its promotions.
  Roundings chain(const GemmOperands& x, const KRanges& ranges, bool promoted) const {
    KRanges places = ranges;
    for (KRange& range : places) range = {x.place_of(range.begin), x.place_of(range.end)};
    const std::int64_t interval = promoted ? x.place_of(plan_.promotion.interval) : 0;
    if (interval == 0) return executions(x, places, x.place_of(plan_.residue_first));
    std::int64_t length = 0;
    for (const KRange& range : places) length += range.length();
    Partition intervals;
    intervals.tile = interval;
    intervals.parts = static_cast<int>((length + interval - 1) / interval);
    const auto parts = emulator::divide(intervals, places);
    Roundings worst = executions(x, parts.front(), 0);
    for (std::size_t i = 1; i < parts.size(); ++i) worst = worse(worst, executions(x, parts[i], 0));
    worst.convert_to(formats::fp32);
    if (emulator::takes_scales(plan_.promotion)) scale(worst);
    worst.absolute *= static_cast<double>(parts.size());
    worst.add_up_in(formats::fp32, static_cast<double>(parts.size()));
    return worst;
  }

  /// A partial sum, multiplied by the scales of its block.
  void scale(Roundings& x) const {
    const double least = least_magnitude(problem_.scale_a) * least_magnitude(problem_.scale_b);
    x.add(unit_roundoff(formats::fp32), 2);  // of the scales themselves
    x.add(product_of_scales_error(formats::fp32, least));
    x.absolute += 2 * underflow(formats::fp32);
    x.absolute *= growth_by_scales(problem_);
    x.multiply_in(formats::fp32);
  }

  /// The executions of a unit in one chain, or a tree of products.
  Roundings executions(const GemmOperands& x, const KRanges& ranges, std::int64_t residue) const {
    std::int64_t length = 0, count = 0;
    for (const KRange& range : ranges) {
      length += range.length();
      count += (range.length() + unit_.k - 1) / unit_.k;
      if (residue != 0 && range.length() % residue != 0) ++count;
    }
    if (x.instruction) emulator::require_chain(*x.instruction, length, "plan");
    const bool is_tree = plan_.products == emulator::ProductOrder::tree;
    Roundings sum;
    sum.add(unit_.product, 1);
    sum.absolute *= static_cast<double>(length);
    // A tree adds a product once for each of its levels.
    const auto levels =
        static_cast<std::int64_t>(std::bit_width(static_cast<std::uint64_t>(length)));
    sum.add(unit_.execution, static_cast<double>(is_tree ? levels : count));
    sum.pass(unit_.sum);
    sum.held = unit_.sum;
    return sum;
  }

  const GemmPlan& plan_;
  const GemmProblem& problem_;
  const UnitErrors& unit_;
  double piece_;
  GemmOperands x_;
  std::vector<int> counts_;
};

/// beta C, or the bias where there is no C, with which the first chain begins.
void begin_with_addend(Roundings& x, const Epilogue& e, const GemmProblem& problem,
                       const Format& first) {
  const Format sums = x.held;
  const emulator::CodeMatrix& addend = problem.c.empty() ? problem.bias : problem.c;
  double largest = largest_magnitude(addend);
  x.held = addend.format;
  if (!problem.c.empty() && e.beta != 0 && e.beta != 1) {
    if (std::max(std::fabs(e.beta), largest) > largest_number(e.compute)) x.overflow();
    x.convert_to(e.compute);
    x.add(constant_error(e.compute, e.beta));
    x.multiply_in(e.compute);
    x.absolute *= std::max(1.0, std::fabs(e.beta));
    largest *= std::max(1.0, std::fabs(e.beta));
  }
  if (largest > largest_number(first)) x.overflow();
  x.convert_to(first);
  x.held = sums;
}

/// The epilogue, up to the rounding to D's format. Of a split in place, `parts` go through it.
void finish(Roundings& x, const Epilogue& e, const GemmProblem& problem, std::size_t parts) {
  const Format& compute = e.compute;
  const bool initial = e.addition == Epilogue::Addition::initial;
  const bool scaled = problem.scale_k == 0 && !(problem.scale_a.empty() && problem.scale_b.empty());
  const bool has_c = !initial && !problem.c.empty() && e.beta != 0;
  const double alpha = initial || e.scales_operand() ? 1 : e.alpha;
  if (e.alpha_on == Epilogue::AlphaOn::d && !initial) x.convert_to(e.output);
  x.convert_to(compute);
  double growth = std::max(1.0, std::fabs(alpha));
  if (scaled) {
    const double least = least_magnitude(problem.scale_a) * least_magnitude(problem.scale_b);
    for (const emulator::CodeMatrix* scales : {&problem.scale_a, &problem.scale_b}) {
      if (!scales->empty() && !contains(compute, scales->format)) x.add(unit_roundoff(compute));
    }
    growth *= growth_by_scales(problem);
    x.add(product_of_scales_error(compute, least));
    x.add(product_of_scales_error(compute, least * std::min(1.0, std::fabs(alpha))));
    x.multiply_in(compute);
  }
  if (growth > largest_number(compute)) x.overflow();
  x.add(constant_error(compute, alpha));
  if (alpha != 1 || scaled) x.multiply_in(compute);
  const bool adds = has_c || !problem.bias.empty();
  if (adds && e.addition == Epilogue::Addition::rounded) {
    x.convert_to(e.output);
    x.convert_to(compute);
  }
  if (has_c) {
    x.held = problem.c.format;
    x.convert_to(compute);
    if (std::max(std::fabs(e.beta), largest_magnitude(problem.c)) > largest_number(compute))
      x.overflow();
    x.add(constant_error(compute, e.beta));
    x.multiply_in(compute, 2);
    growth *= std::max(1.0, std::fabs(e.beta));
  }
  if (!problem.bias.empty()) {
    if (largest_magnitude(problem.bias) > largest_number(compute)) x.overflow();
    x.held = problem.bias.format;
    x.convert_to(compute);
    x.add_up_in(compute);
  }
  x.absolute *= growth;
  if (parts > 1) {
    // What stands in D goes through it with each part.
    x.absolute *= static_cast<double>(parts);
    for (std::size_t part = 1; part < parts; ++part) {
      x.convert_to(e.output);
      x.convert_to(compute);
      x.add_up_in(compute);
    }
  }
  if (e.via) x.convert_to(*e.via);
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

/// The rounding to D's format.
void round_to_d(ErrorBound& bound, const Epilogue& e, const Format& held) {
  const Format& d = e.output;
  if (contains(d, held)) return;
  if (formats::precision(d) < formats::precision(held)) bound.last = unit_roundoff(d);
  bound.absolute += underflow(d);
}

/// Where D cannot show an overflow on the way as an infinity or a NaN, sums must stay below it.
void limit_sums(ErrorBound& bound, const Roundings& x, const Epilogue& e,
                const GemmProblem& problem) {
  const bool hides = !formats::has_infinity(e.output) || std::isfinite(x.largest_limited) ||
                     e.activation != emulator::Activation::none;
  const double largest = hides ? std::min(x.largest_limited, x.largest_finite) : x.largest_limited;
  if (std::isinf(largest)) return;
  double least = std::min(1.0, least_magnitude(problem.scale_a)) *
                 std::min(1.0, least_magnitude(problem.scale_b));
  if (e.addition != Epilogue::Addition::initial) least *= std::min(1.0, std::fabs(e.alpha));
  bound.largest_sum = largest * least / (1 + bound.sum);
}

/// Plans that give something else than what is asked for.
void require_sum(const GemmPlan& plan, const GemmProblem& problem, std::string_view where) {
  const bool initial = plan.epilogue.addition == Epilogue::Addition::initial;
  const bool scaled = !(problem.scale_a.empty() && problem.scale_b.empty());
  const auto refuse = [&](const char* why) {
    throw formats::Error(std::string(where), std::string("no bound: ") + why);
  };
  if (initial && scaled) refuse("with add=initial the scales multiply C as well");
  if (problem.scale_k != 0 && !emulator::takes_scales(plan.promotion))
    refuse("scales of blocks of K need a promotion that takes them");
}

}  // namespace

ErrorBound error_bound(const GemmPlan& plan, const GemmProblem& problem, std::string_view where) {
  require_sum(plan, problem, where);
  const Epilogue& e = plan.epilogue;
  const UnitErrors unit = unit_errors(plan, problem, where);
  const OperandErrors input = operand_errors(plan, problem, unit);
  const SumErrors sums(plan, problem, unit, input.piece, where);
  Roundings x = sums();
  if (plan.input.has_integer_slices())
    x.absolute += slices_error(plan, problem, unit, x.worst(), where);
  const bool scales_parts = emulator::takes_scales(plan.promotion);
  x.absolute += input.error.absolute * (scales_parts ? growth_by_scales(problem) : 1);
  if (e.addition == Epilogue::Addition::initial) begin_with_addend(x, e, problem, unit.c);
  const bool in_place = plan.split.order == SumOrder::in_place;
  GemmProblem left = problem;  // for the epilogue
  if (scales_parts) left.scale_a = left.scale_b = {};
  finish(x, e, left, in_place ? sums.parts() : 1);

  ErrorBound bound;
  const double outputs =
      static_cast<double>(problem.a.batch * problem.m()) * static_cast<double>(problem.n());
  bound.confidence = 0.99;
  bound.lambda = std::sqrt(2 * std::log(2 * outputs / (1 - bound.confidence)));
  bound.sum = input.error.worst() + input.magnitude * x.worst();
  bound.likely = input.error.likely(bound.lambda) + input.magnitude * x.likely(bound.lambda);
  bound.mean_zero = input.error.mean_zero && x.mean_zero;
  bound.absolute = x.absolute * (1 + bound.sum);
  bound.least_a = input.least_a, bound.least_b = input.least_b;
  limit_sums(bound, x, e, problem);
  if (!input.fit) bound.largest_sum = -1;  // not even of zeros
  go_through_activation(bound, e);
  round_to_d(bound, e, emulator::is_smooth(e.activation) ? formats::fp32 : x.held);
  return bound;
}

}  // namespace guardbit::experiments
