#include "emulator/replay/planned_product.hpp"

#include <algorithm>
#include <utility>

#include "emulator/gemm/atlas/atlas.hpp"
#include "emulator/gemm/gemm.hpp"
#include "emulator/gemm/usual_plan.hpp"
#include "emulator/replay/plan_book.hpp"
#include "formats/support/error.hpp"

namespace guardbit::emulator::replay {
namespace {

/// A plan and how well it is known.
struct ChosenPlan {
  const OrderOfK* order;
  GemmPlan plan;
  /// as in Answer
  int agree = sure;
};

std::optional<ChosenPlan> planned_by_the_book(const ProductCall& call, const Context& context) {
  if (context.plans == nullptr) return std::nullopt;
  for (const OrderOfK& order : call.orders) {
    const std::vector<GemmPlan>* known = context.plans->find(key_of(call, order));
    if (known != nullptr && !known->empty()) return ChosenPlan{&order, known->front()};
  }
  return std::nullopt;
}

/// One ascending chain of the instruction that libraries of the machine usually take.
std::optional<GemmPlan> usual(const GemmCapture& capture) {
  if (capture.convolution) return std::nullopt;
  return usual_plan(capture.arch, capture.problem.a.format, capture.problem.b.format,
                    capture.d.format, capture.tf32, "a product");
}

/// Of 1000 products for which the atlas was asked of another call so many are taken to agree.
constexpr int most_of_another = 990;

/// By a rule of the atlas, or as the recorded calls most like it, which is a guess; else what such
/// calls usually get, another guess. Nothing where K could be walked in several ways.
std::optional<ChosenPlan> by_the_call(const ProductCall& call, const GemmCapture& capture,
                                      const Context& context) {
  if (call.orders.size() != 1 || call.is_usual_alone) return std::nullopt;
  std::optional<GemmPlan> plan;
  atlas::Answer answer;
  // The atlas holds for PyTorch's default workspace.
  if (call.asked.call && context.flag("usual_workspace", true))
    answer = atlas::plan_of(*call.asked.call);
  if (call.asked.is_another) answer.agree = std::min(answer.agree, most_of_another);
  if (answer.known != atlas::Known::unknown) {
    plan = std::move(answer.plan);
  } else {
    plan = usual(capture);
  }
  if (!plan) return std::nullopt;
  capture.set_factors(plan->epilogue);
  // What adds the parts adds C, too.
  const bool is_reduced = plan->split.parts > 1 && plan->split.order != SumOrder::in_place;
  if (is_reduced && capture.beta != 0 && !capture.problem.c.empty() &&
      plan->epilogue.addition == Epilogue::Addition::fma_product)
    plan->epilogue.addition = Epilogue::Addition::fma_addend;
  return ChosenPlan{&call.orders.front(), std::move(*plan), answer.agree};
}

std::optional<ChosenPlan> by_the_kind(const ProductCall& call) {
  if (!call.usual) return std::nullopt;
  const auto order = std::ranges::find(call.orders, call.usual->order, &OrderOfK::words);
  if (order == call.orders.end()) return std::nullopt;
  return ChosenPlan{&*order, parse_plan(call.usual->plan, "a convolution"), call.usual->agree};
}

/// With one product to each element, do all kernels give these? Each rounds it once; but some keep
/// the sign of a zero, which others add to +0, and not all keep what is below the normal numbers.
bool is_whatever_the_plan(const GemmCapture& capture, const CodeMatrix& d) {
  const CodeMatrix &a = capture.problem.a, &b = capture.problem.b;
  const Format& format = d.format;
  const bool is_simple =
      format == formats::fp32 || format == formats::fp16 || format == formats::bf16;
  if (capture.problem.k() != 1 || capture.convolution || capture.tf32 || !is_simple ||
      !(a.format == format) || !(b.format == format) || !capture.problem.c.empty())
    return false;
  const std::uint64_t sign = std::uint64_t{1} << (formats::bits(format) - 1);
  const std::uint64_t least_normal = std::uint64_t{1} << format.fraction_bits;
  for (std::int64_t g = 0; g < d.batch; ++g) {
    for (std::int64_t i = 0; i < d.rows; ++i) {
      for (std::int64_t j = 0; j < d.columns; ++j) {
        const std::uint64_t magnitude = d(g, i, j) & (sign - 1);
        const bool is_negative = ((a(g, i, 0) ^ b(g, 0, j)) & sign) != 0;
        if (magnitude == 0 ? is_negative : magnitude < least_normal) return false;
      }
    }
  }
  return true;
}

ProductVerdict executed(const ChosenPlan& chosen, const GemmCapture& capture,
                        const Context& context) {
  ProductVerdict verdict{Status::exact, words_of(*chosen.order, chosen.plan), true, 0};
  verdict.agree = chosen.agree;
  CodeMatrix d = execute(chosen.plan, capture.lowered(chosen.plan.convolution), context.threads);
  if (is_whatever_the_plan(capture, d)) verdict.agree = sure;
  if (capture.convolution) d = raise_output(*capture.convolution, d);
  if (chosen.order->raise) d = chosen.order->raise(d);
  verdict.computed = d.contiguous();
  return verdict;
}

}  // namespace

ProductVerdict computed_product(const ProductCall& call, const Context& context) {
  try {
    const GemmCapture capture = call.orders.front().capture();
    if (capture.d.size() == 0) return {Status::exact, "nothing to compute", true, 0};
    if (capture.problem.k() == 0) return {Status::unmodelled, "a K of 0", false, 0};
    std::optional<ChosenPlan> chosen = planned_by_the_book(call, context);
    if (!chosen) chosen = by_the_kind(call);
    if (!chosen) chosen = by_the_call(call, capture, context);
    if (chosen) {
      const bool is_first = chosen->order == &call.orders.front();
      return executed(*chosen, is_first ? capture : chosen->order->capture(), context);
    }
  } catch (const formats::Error& error) {
    return {Status::unmodelled, error.what(), false, 0};
  }
  return {Status::unmodelled, "no plan is known for this shape", false, 0};
}

bool is_in_the_book(const ProductCall& call, const Context& context) {
  return planned_by_the_book(call, context).has_value();
}

ProductVerdict verdict_of_product(const ProductCall& call, Context& context) {
  return context.has_results ? judge_product(call, context) : computed_product(call, context);
}

}  // namespace guardbit::emulator::replay
