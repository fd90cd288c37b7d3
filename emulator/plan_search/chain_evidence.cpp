#include "emulator/plan_search/chain_evidence.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "emulator/catalogue/instruction_catalogue.hpp"
#include "emulator/faults/product_numbers.hpp"
#include "emulator/gemm/problem.hpp"

namespace guardbit::emulator {

namespace {

/// Outputs times K that are looked at.
constexpr std::int64_t most_work = std::int64_t{1} << 24;
constexpr std::int64_t most_side = 64;
/// Ends of the chain whose logarithm of the likelihood is lower by that much are refuted.
constexpr double refuting = 24;
/// A chain that makes D's errors likelier by that much is proved.
constexpr double proving = 60;

/// Fewer outputs tell nothing.
constexpr std::int64_t fewest_outputs = 32;

/// True of a matrix unit that is itself a chain of multiply-adds.
bool is_chain(const GemmUnit& unit) {
  if (unit.arch == "simt") return false;
  const MatrixInstruction instruction =
      require_instruction(unit.arch, unit.instruction, "plan search");
  return instruction.steps.list[0].spec.summation == Summation::fma_chain;
}

/// One chain of FP32 multiply-adds from k = 0, for all outputs. `add` gives the sum after a product
/// from the sum before it. Calls `visit` with k and with each output's error in that step.
template <class Add, class Visit>
void run_chain(const ProductNumbers& x, const Add& add, const Visit& visit) {
  const auto outputs = static_cast<std::size_t>(x.m() * x.n());
  std::vector<float> sums(outputs, 0.0F);
  std::vector<double> errors(outputs);
  for (std::int64_t k = 0; k < x.k(); ++k) {
    std::size_t at = 0;
    for (std::int64_t i = 0; i < x.m(); ++i) {
      const double a = x.a(i, k);
      for (std::int64_t j = 0; j < x.n(); ++j, ++at) {
        const double b = x.b(k, j), before = sums[at];
        sums[at] = add(static_cast<float>(a), static_cast<float>(b), sums[at]);
        errors[at] = sums[at] - (before + a * b);
      }
    }
    visit(k, errors);
  }
}

/// What D says of a chain. Each output counts by the precision with which its error is known.
template <class Add>
std::optional<LeadingRun> leading_run_in(const ProductNumbers& x, const Add& add) {
  const Expected asked = x.asked();
  const auto outputs = static_cast<std::size_t>(x.m() * x.n());
  std::vector<double> error(outputs), weight(outputs, 0.0);
  run_chain(x, add, [&](std::int64_t /*k*/, const std::vector<double>& errors) {
    for (std::size_t at = 0; at < outputs; ++at)
      weight[at] += errors[at] * errors[at] * x.alpha * x.alpha;
  });
  std::vector<double> sizes;
  for (std::size_t at = 0; at < outputs; ++at) {
    const double wanted = asked.result.values[at];
    const double last = half_spacing(x.output, wanted);
    error[at] = x.d.values[at] - wanted;
    weight[at] = 1 / (weight[at] + last * last / 3);
    // An activation hides the errors of outputs that it makes zero, or anything but themselves.
    const bool is_hidden = is_smooth(x.activation)
                               ? wanted < least_unchanged(x.activation)
                               : x.activation != Activation::none && x.is_zero(at);
    if (is_hidden || !std::isfinite(error[at]) || !std::isfinite(weight[at]))
      error[at] = weight[at] = 0;
    sizes.push_back(std::fabs(error[at]) * std::sqrt(weight[at]));
  }
  // Errors that are far larger than most are damage, or say that D is something else.
  const double limit = 8 * median(sizes);
  double squares = 0;
  std::int64_t count = 0;
  for (std::size_t at = 0; at < outputs; ++at) {
    const double square = error[at] * error[at] * weight[at];
    if (square > limit * limit) weight[at] = 0;
    if (weight[at] == 0) continue;
    squares += square;
    ++count;
  }
  if (count < fewest_outputs || squares == 0) return {};
  const double variance = squares / static_cast<double>(count);
  // For each end of the chain: how much likelier D is than without any chain.
  std::vector<double> likelihood = {0};
  run_chain(x, add, [&](std::int64_t /*k*/, const std::vector<double>& errors) {
    double gain = 0;
    for (std::size_t at = 0; at < outputs; ++at) {
      const double step = errors[at] * x.alpha;
      gain += weight[at] * step * (2 * error[at] - step);
    }
    likelihood.push_back(likelihood.back() + gain / (2 * variance));
  });
  const double best = *std::max_element(likelihood.begin(), likelihood.end());
  LeadingRun run{x.k(), 0, best >= proving};
  for (std::int64_t length = 0; length <= x.k(); ++length) {
    if (likelihood[static_cast<std::size_t>(length)] < best - refuting) continue;
    run.least = std::min(run.least, length);
    run.most = length;
  }
  return run;
}

}  // namespace

std::optional<std::int64_t> leading_run(const GemmPlan& plan, std::int64_t k) {
  if (!plan.stream_k.none() || plan.loads.lanes != 0 || plan.residue_first != 0 ||
      plan.convolution != ConvolutionOrder{})
    return {};
  const std::vector<KRanges> parts = divide(plan.split, {{0, k}});
  if (parts.empty()) return {};
  const std::vector<KRanges> slices = divide(plan.slices, parts.front());
  if (slices.empty()) return {};
  std::int64_t length = 0;
  for (const KRange& range : slices.front()) {
    if (range.begin != length) break;
    length = range.end;
  }
  return plan.promotion.interval == 0 ? length
                                      : std::min<std::int64_t>(length, plan.promotion.interval);
}

ChainEvidence::ChainEvidence(const GemmCapture& capture) {
  const GemmProblem& p = capture.problem;
  if (capture.convolution || p.sparse_a || !p.scale_a.empty() || !p.scale_b.empty() ||
      p.scale_k != 0 || formats::is_integer(p.a.format) || p.a.format == formats::fp64 ||
      capture.d.size() == 0)
    return;
  k_ = p.k();
  if (k_ < 2 || most_work / k_ < fewest_outputs) return;
  // As many columns as rows, or more where rows are few.
  const std::int64_t outputs = std::min(most_side * most_side, most_work / k_);
  const auto side = static_cast<std::int64_t>(std::sqrt(static_cast<double>(outputs)));
  const std::int64_t rows =
      std::min(p.m(), std::max(side, outputs / std::max<std::int64_t>(p.n(), 1)));
  const std::int64_t columns = std::min(p.n(), outputs / std::max<std::int64_t>(rows, 1));
  const ProductNumbers x = numbers_of(capture, p, 0, spread(p.m(), rows), spread(p.n(), columns));
  fused_ = leading_run_in(x, [](float a, float b, float sum) { return std::fma(a, b, sum); });
  rounded_products_ = leading_run_in(x, [](float a, float b, float sum) {
    const float product = a * b;
    return product + sum;
  });
}

bool ChainEvidence::refutes(const GemmPlan& plan) const {
  if (plan.epilogue.scales_operand() || plan.products == ProductOrder::tree) return false;
  const bool is_fused = plan.unit.instruction == "fma.fp32";
  if (plan.unit.arch != "simt" || !(is_fused || plan.unit.instruction == "mul_add.fp32"))
    return ((fused_ && fused_->is_proved) || (rounded_products_ && rounded_products_->is_proved)) &&
           !is_chain(plan.unit);
  const auto& run = is_fused ? fused_ : rounded_products_;
  if (!run || plan.input.pieces != 1) return false;
  const auto length = leading_run(plan, k_);
  return length && !run->contains(*length);
}

}  // namespace guardbit::emulator
