#include "emulator/replay/product_verdict.hpp"

#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <utility>

#include "emulator/gemm/gemm.hpp"
#include "emulator/gemm/plan_fit.hpp"
#include "emulator/plan_search/order_control.hpp"
#include "emulator/plan_search/plan_search.hpp"
#include "emulator/replay/plan_book.hpp"
#include "formats/support/error.hpp"

namespace guardbit::emulator::replay {

std::string key_of(const ProductCall& call, const OrderOfK& order) {
  return order.words.empty() ? call.shape : call.shape + " k=" + order.words;
}

std::string words_of(const OrderOfK& order, const GemmPlan& plan) {
  return to_text(plan) + (order.words.empty() ? "" : ", K as " + order.words);
}

namespace {

/// A chain over K in ascending order, not cut and not promoted: what libraries take for most
/// products.
bool is_one_chain(const GemmPlan& plan) {
  return plan.slices.whole() && plan.split.whole() && plan.stream_k.none() &&
         plan.promotion.interval == 0 && plan.loads == LoadOrder{} && plan.residue_first == 0 &&
         plan.input == InputConversion{} && plan.products == ProductOrder::chain;
}

std::int64_t mismatches_of(const GemmCapture& capture, const GemmPlan& plan, int threads) {
  const CodeMatrix d = execute(plan, capture.lowered(plan.convolution), threads);
  return std::ssize(mismatches(capture, d));
}

bool is_narrow(const GemmCapture& capture) { return formats::bits(capture.d.format) <= 16; }

/// Do the recorded results speak for the order of that plan?
bool is_supported(const GemmCapture& capture, const GemmPlan& plan, int threads) {
  if (!is_narrow(capture) || is_one_chain(plan)) return true;
  const auto control = order_control(capture, plan, threads);
  if (!control) return false;
  if (control->refuting > 0) return true;
  // Of a sample none told the order: all of them, where they are not too many.
  constexpr std::int64_t most_elements = std::int64_t{1} << 24;
  const std::int64_t k = capture.lowered(plan.convolution).k();
  if (capture.d.size() > most_elements / k) return false;
  std::vector<Output> outputs;
  for (std::int64_t g = 0; g < capture.d.batch; ++g) {
    for (std::int64_t i = 0; i < capture.d.rows; ++i) {
      for (std::int64_t j = 0; j < capture.d.columns; ++j) outputs.push_back({g, i, j});
    }
  }
  const auto of_all = order_control(capture, plan, outputs, threads);
  return of_all && of_all->refuting > 0;
}

/// Where the book keeps plans whose order no result has told yet.
std::string untold(const std::string& key) { return key + " order=untold"; }

ProductVerdict order_is_untold(const std::string& words) {
  return {Status::unmodelled, "any order of K gives the result, one is " + words, false, 0};
}

/// By plans that gave a former result as any other order of K did: that order may show here.
std::optional<ProductVerdict> by_untold_plans(const ProductCall& call, Context& context) {
  for (const OrderOfK& order : call.orders) {
    const std::string key = key_of(call, order);
    const std::vector<GemmPlan>* known = context.plans->find(untold(key));
    if (known == nullptr) continue;
    const GemmCapture capture = order.capture();
    for (const GemmPlan& plan : *known) {
      if (mismatches_of(capture, plan, context.threads) != 0) continue;
      const std::string words = words_of(order, plan);
      if (!is_supported(capture, plan, context.threads)) return order_is_untold(words);
      context.plans->set(key, {plan});
      return ProductVerdict{Status::exact, words, true, 0};
    }
  }
  return std::nullopt;
}

/// By the book: predicted if the likeliest plan gives the result. Plans that do not are struck out.
std::optional<ProductVerdict> by_the_book(const ProductCall& call, Context& context) {
  for (const OrderOfK& order : call.orders) {
    const std::string key = key_of(call, order);
    const std::vector<GemmPlan>* known = context.plans->find(key);
    if (known == nullptr) continue;
    const GemmCapture capture = order.capture();
    std::vector<GemmPlan> right;
    std::int64_t wrong = 0;
    for (const GemmPlan& plan : *known) {
      const std::int64_t misses = mismatches_of(capture, plan, context.threads);
      if (misses == 0) right.push_back(plan);
      if (&plan == &known->front()) wrong = misses;
      // The others are looked at only where the first one failed.
      if (&plan == &known->front() && misses == 0) break;
    }
    if (right.empty()) continue;
    const std::string words = words_of(order, right.front());
    const bool is_predicted = wrong == 0;
    if (!is_predicted) context.plans->set(key, std::move(right));
    return ProductVerdict{Status::exact, words, is_predicted, 0};
  }
  return std::nullopt;
}

/// The product without rows of A that are all zero, which tell nothing of a plan: gradients of
/// which few rows are used have many. Nothing where there are none such, or too much else to it.
std::optional<GemmCapture> without_empty_rows(const GemmCapture& capture) {
  const CodeMatrix& a = capture.problem.a;
  if (capture.convolution || a.batch != 1 || a.strides || capture.d.strides ||
      !capture.problem.c.empty())
    return std::nullopt;
  std::vector<std::int64_t> rows;
  const std::uint64_t magnitude = (std::uint64_t{1} << (formats::bits(a.format) - 1)) - 1;
  for (std::int64_t i = 0; i < a.rows; ++i) {
    bool is_empty = true;
    for (std::int64_t j = 0; j < a.columns && is_empty; ++j)
      is_empty = (a(0, i, j) & magnitude) == 0;
    if (!is_empty) rows.push_back(i);
  }
  const auto taken = static_cast<std::int64_t>(rows.size());
  if (taken == 0 || taken == a.rows) return std::nullopt;
  GemmCapture rest = capture;
  rest.problem.a = make_matrix(a.format, 1, taken, a.columns);
  rest.d = make_matrix(capture.d.format, 1, taken, capture.d.columns);
  for (std::int64_t i = 0; i < taken; ++i) {
    const std::int64_t from = rows[static_cast<std::size_t>(i)];
    for (std::int64_t j = 0; j < a.columns; ++j)
      copy_element(a, a.place(0, from, j), rest.problem.a, i * a.columns + j);
    for (std::int64_t j = 0; j < rest.d.columns; ++j)
      copy_element(capture.d, capture.d.place(0, from, j), rest.d, i * rest.d.columns + j);
  }
  rest.shape = {taken, rest.d.columns};
  return rest;
}

/// `simple`: only plans whose K is one chain.
std::vector<GemmPlan> searched(const GemmCapture& capture, Context& context, double seconds,
                               bool simple) {
  const auto end = std::chrono::steady_clock::now() +
                   std::chrono::duration_cast<std::chrono::steady_clock::duration>(
                       std::chrono::duration<double>(seconds));
  SearchOptions options;
  options.threads = context.threads;
  constexpr std::size_t most_plans = 12;
  options.most_plans = most_plans;
  options.simple = simple;
  options.interrupted = [&] {
    return context.plans->interrupted() || std::chrono::steady_clock::now() > end;
  };
  const SearchResult result = search_plans(capture, options);
  std::vector<GemmPlan> plans;
  for (const PlanResult& found : result.plans) {
    if (found.mismatches == 0) plans.push_back(found.plan);
  }
  std::stable_partition(plans.begin(), plans.end(), is_one_chain);
  if (!plans.empty()) return plans;
  if (const auto rest = without_empty_rows(capture)) {
    plans = searched(*rest, context, seconds, simple);
    std::erase_if(plans, [&](const GemmPlan& plan) {
      return mismatches_of(capture, plan, context.threads) != 0;
    });
  }
  return plans;
}

}  // namespace

CodeMatrix matrix_of(const Tensor& tensor) {
  const std::size_t rank = tensor.shape.size();
  if (rank != 2 && rank != 3) throw UnknownArguments{"a matrix is needed"};
  return {tensor.type,
          rank == 3 ? tensor.shape[0] : 1,
          tensor.shape[rank - 2],
          tensor.shape[rank - 1],
          {tensor.bytes, tensor.owner},
          {}};
}

std::optional<Tensor> result_of(const ProductVerdict& verdict, const Tensor& form) {
  if (verdict.status != Status::exact) return std::nullopt;
  if (!verdict.computed) return form;
  Tensor result = form;
  result.bytes = {verdict.computed->bytes.data(), form.bytes.size()};
  result.owner = std::make_shared<CodeMatrix>(*verdict.computed);
  return result;
}

Answer answer_of(const ProductVerdict& verdict, const Tensor& form) {
  Answer answer;
  answer.status = verdict.status;
  answer.plan = verdict.plan;
  answer.is_predicted = verdict.is_predicted;
  answer.agree = verdict.agree;
  if (auto result = result_of(verdict, form)) answer.results.push_back(std::move(result));
  return answer;
}

ProductVerdict judge_product(const ProductCall& call, Context& context) {
  if (context.plans == nullptr) return {Status::unmodelled, "no plan is known", false, 0};
  // In every order of K they have the same sizes, but for zeros.
  const GemmCapture usual = call.orders.front().capture();
  if (usual.d.size() == 0) return {Status::exact, "nothing to compute", true, 0};
  if (usual.problem.k() == 0) return {Status::unmodelled, "a K of 0", false, 0};
  try {
    if (auto verdict = by_the_book(call, context)) return *verdict;
    if (auto verdict = by_untold_plans(call, context)) return *verdict;
    if (context.plans->has_failed(call.shape))
      return {Status::unmodelled, "no plan was found for this shape", false, 0};
    std::string unsupported;
    // One chain in any order of K is likelier than a partition in the first order.
    for (const bool simple : {true, false}) {
      for (const OrderOfK& order : call.orders) {
        const double share = simple ? 0.25 : 0.75;
        const double seconds =
            share * context.plans->search_seconds / static_cast<double>(call.orders.size());
        const GemmCapture capture = order.capture();
        std::vector<GemmPlan> plans = searched(capture, context, seconds, simple);
        if (plans.empty()) continue;
        const std::string words = words_of(order, plans.front());
        if (is_supported(capture, plans.front(), context.threads)) {
          context.plans->set(key_of(call, order), std::move(plans));
          return {Status::exact, words, false, 0};
        }
        if (!unsupported.empty()) continue;
        unsupported = words;
        context.plans->set(untold(key_of(call, order)), std::move(plans));
      }
    }
    if (!unsupported.empty()) return order_is_untold(unsupported);
  } catch (const formats::Error& error) {
    return {Status::unmodelled, error.what(), false, 0};
  }
  context.plans->set_failed(call.shape);
  return {Status::unmodelled, "no plan was found", false, 0};
}

}  // namespace guardbit::emulator::replay
