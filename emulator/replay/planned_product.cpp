#include "emulator/replay/planned_product.hpp"

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
  bool is_guessed = false;
};

std::optional<ChosenPlan> by_the_book(const ProductCall& call, const Context& context) {
  if (context.plans == nullptr) return std::nullopt;
  for (const OrderOfK& order : call.orders) {
    const std::vector<GemmPlan>* known = context.plans->find(key_of(call, order));
    if (known != nullptr && !known->empty()) return ChosenPlan{&order, known->front()};
  }
  return std::nullopt;
}

/// By a rule, or as the recorded calls most like it, which is a guess; nothing where the atlas does
/// not know.
std::optional<ChosenPlan> by_the_atlas(const ProductCall& call, const GemmCapture& capture) {
  if (!call.asked || call.orders.size() != 1) return std::nullopt;
  atlas::Answer answer = atlas::plan_of(*call.asked);
  if (answer.known == atlas::Known::unknown) return std::nullopt;
  capture.set_factors(answer.plan.epilogue);
  return ChosenPlan{&call.orders.front(), std::move(answer.plan),
                    answer.known == atlas::Known::nearest};
}

/// One ascending chain of the instruction that libraries of the machine usually take. Nothing where
/// K could be walked in several ways.
std::optional<ChosenPlan> usual(const ProductCall& call, const GemmCapture& capture) {
  if (call.orders.size() != 1 || capture.convolution) return std::nullopt;
  GemmPlan plan = usual_plan(capture.arch, capture.problem.a.format, capture.problem.b.format,
                             capture.d.format, capture.tf32, "a product");
  capture.set_factors(plan.epilogue);
  return ChosenPlan{&call.orders.front(), std::move(plan), true};
}

ProductVerdict executed(const ChosenPlan& chosen, const GemmCapture& capture,
                        const Context& context) {
  ProductVerdict verdict{Status::exact, words_of(*chosen.order, chosen.plan), true, 0};
  verdict.is_guessed = chosen.is_guessed;
  CodeMatrix d = execute(chosen.plan, capture.lowered(chosen.plan.convolution), context.threads);
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
    if (const auto chosen = by_the_book(call, context))
      return executed(*chosen, chosen->order->capture(), context);
    if (const auto chosen = by_the_atlas(call, capture)) return executed(*chosen, capture, context);
    if (const auto chosen = usual(call, capture)) return executed(*chosen, capture, context);
  } catch (const formats::Error& error) {
    return {Status::unmodelled, error.what(), false, 0};
  }
  return {Status::unmodelled, "no plan is known for this shape", false, 0};
}

ProductVerdict verdict_of_product(const ProductCall& call, Context& context) {
  return context.has_results ? judge_product(call, context) : computed_product(call, context);
}

}  // namespace guardbit::emulator::replay
