#include "emulator/plan_search/order_control.hpp"

#include <algorithm>
#include <numeric>
#include <random>
#include <span>
#include <utility>
#include <vector>

#include "emulator/gemm/gemm.hpp"
#include "emulator/plan_search/plan_evidence.hpp"
#include "emulator/plan_search/samples.hpp"

namespace guardbit::emulator {

namespace {

/// A random order of the elements of K; each stays in its block of `block` elements.
std::vector<std::int64_t> random_order(std::int64_t k, std::int64_t block) {
  std::mt19937_64 random(1);
  std::vector<std::int64_t> order(static_cast<std::size_t>(k));
  std::iota(order.begin(), order.end(), 0);
  for (std::int64_t begin = 0; begin < k; begin += block) {
    const std::int64_t end = std::min(k, begin + block);
    for (std::int64_t i = end - 1; i > begin; --i) {
      const auto other =
          static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(i - begin + 1));
      std::swap(order[static_cast<std::size_t>(i)], order[static_cast<std::size_t>(begin + other)]);
    }
  }
  return order;
}

/// A batch of dot products with the elements of K in that order.
GemmProblem permuted(const GemmProblem& outputs, const std::vector<std::int64_t>& order) {
  GemmProblem x = outputs;
  const std::int64_t k = outputs.k();
  x.a = make_matrix(outputs.a.format, outputs.a.batch, 1, k);
  x.b = make_matrix(outputs.b.format, outputs.b.batch, k, 1);
  for (std::int64_t g = 0; g < outputs.a.batch; ++g)
    for (std::int64_t i = 0; i < k; ++i) {
      copy_element(outputs.a, g * k + order[static_cast<std::size_t>(i)], x.a, g * k + i);
      copy_element(outputs.b, g * k + order[static_cast<std::size_t>(i)], x.b, g * k + i);
    }
  return x;
}

}  // namespace

std::optional<OrderControl> order_control(const GemmCapture& capture, const GemmPlan& plan,
                                          std::span<const Output> outputs, int threads) {
  const GemmProblem problem = capture.lowered(plan.convolution);
  if (formats::is_integer(problem.a.format) || problem.sparse_a || problem.k() < 2 ||
      outputs.empty() || plan.epilogue.addition == Epilogue::Addition::initial)
    return {};
  const std::int64_t block = problem.scale_k != 0 ? problem.scale_k : problem.k();
  const GemmProblem otherwise =
      permuted(select(problem, outputs), random_order(problem.k(), block));
  const CodeMatrix d = execute(plan, otherwise, threads);
  return OrderControl{d.size(), count_mismatches(select(capture.d, outputs), d)};
}

std::optional<OrderControl> order_control(const GemmCapture& capture, const GemmPlan& plan,
                                          int threads) {
  constexpr std::int64_t most_elements = std::int64_t{1} << 22, most_outputs = 1024;
  const std::int64_t k = capture.lowered(plan.convolution).k();
  if (k < 1 || capture.d.size() == 0) return {};
  const std::vector<Output> outputs =
      telling_outputs(capture, std::clamp<std::int64_t>(most_elements / k, 16, most_outputs));
  return order_control(capture, plan, outputs, threads);
}

}  // namespace guardbit::emulator
