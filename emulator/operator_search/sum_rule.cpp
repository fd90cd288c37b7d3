#include "emulator/operator_search/sum_rule.hpp"

#include <algorithm>

#include "emulator/operators/trees.hpp"

namespace guardbit::emulator {
namespace {

using Order = SumRule::Order;
using Kind = SumRule::Kind;

float pairwise_sum(std::span<const float> row) {
  constexpr std::size_t lanes = 8, longest = 128;
  if (row.size() < lanes) {
    float sum = -0.0F;
    for (const float x : row) sum += x;
    return sum;
  }
  if (row.size() > longest) {
    const std::size_t half = row.size() / 2 / lanes * lanes;
    return pairwise_sum(row.first(half)) + pairwise_sum(row.subspan(half));
  }
  std::vector<float> s(row.begin(), row.begin() + lanes);
  std::size_t i = lanes;
  for (; i + lanes <= row.size(); i += lanes) {
    for (std::size_t k = 0; k < lanes; ++k) s[k] += row[i + k];
  }
  float sum = ((s[0] + s[1]) + (s[2] + s[3])) + ((s[4] + s[5]) + (s[6] + s[7]));
  for (; i < row.size(); ++i) sum += row[i];
  return sum;
}

float brought_together(Order order, std::vector<float>& sums) {
  const auto add = [](float a, float b) { return a + b; };
  switch (order) {
    case Order::halves: return operators::halved(std::span(sums), add);
    case Order::pairs: return operators::paired(std::span(sums), add);
    case Order::warps: return operators::sum_of_two_stages(sums);
    case Order::ascending: break;
  }
  float sum = sums[0];
  for (std::size_t t = 1; t < sums.size(); ++t) sum += sums[t];
  return sum;
}

}  // namespace

std::string SumRule::text() const {
  if (kind == Kind::numpy) return "NumPy's pairwise sum, eight sums of up to 128 elements";
  if (kind == Kind::fp64) return "in FP64, rounded once";
  std::string words =
      threads == 1 ? "one chain in ascending order" : std::to_string(threads) + " threads in turn";
  if (vector > 1) words += ", vectors of " + std::to_string(vector);
  if (has_own_sums) words += " with a sum for each element";
  if (threads == 1) return words;
  switch (order) {
    case Order::halves: return words + ", then t and t + n/2";
    case Order::pairs: return words + ", then neighbours";
    case Order::ascending: return words + ", then in ascending order";
    case Order::warps: return words + ", then warps, then their sums";
  }
  return words;
}

float sum_of(const SumRule& rule, std::span<const float> row) {
  if (rule.kind == Kind::numpy) return pairwise_sum(row);
  if (rule.kind == Kind::fp64) {
    double sum = 0;
    for (const float x : row) sum += double{x};
    return static_cast<float>(sum);
  }
  const auto threads = static_cast<std::size_t>(rule.threads);
  const auto vector = static_cast<std::size_t>(rule.vector);
  const std::size_t own = rule.has_own_sums ? vector : 1;
  std::vector<float> slots(threads * own, 0.0F), sums(threads);
  for (std::size_t begin = 0, t = 0; begin < row.size(); begin += vector) {
    const std::size_t end = std::min(begin + vector, row.size());
    for (std::size_t i = begin; i < end; ++i)
      slots[t * own + (rule.has_own_sums ? i - begin : 0)] += row[i];
    if (++t == threads) t = 0;
  }
  for (std::size_t t = 0; t < threads; ++t) {
    sums[t] = slots[t * own];
    for (std::size_t k = 1; k < own; ++k) sums[t] += slots[t * own + k];
  }
  return brought_together(rule.order, sums);
}

std::vector<SumRule> sum_rules(std::int64_t size) {
  constexpr int most_threads = 1024, warp = 32;
  std::vector<SumRule> rules = {SumRule{}};
  for (int threads = 1; threads <= most_threads && threads < 2 * size; threads *= 2) {
    for (const int vector : {1, 2, 4, 8}) {
      if (std::int64_t{vector} * threads >= 2 * size && vector > 1) continue;
      for (const bool has_own_sums : {false, true}) {
        if (has_own_sums && vector == 1) continue;
        if (threads == 1 && !has_own_sums) continue;
        for (const Order order : {Order::halves, Order::pairs, Order::ascending, Order::warps}) {
          // Of two threads all orders are one; fewer than two warps meet by halves.
          if (threads <= 2 && order != Order::halves) continue;
          if (order == Order::warps && threads <= warp) continue;
          // Threads that get one vector at most, in order, are one chain.
          if (order == Order::ascending && !has_own_sums && std::int64_t{vector} * threads >= size)
            continue;
          rules.push_back({Kind::threads, threads, vector, has_own_sums, order});
        }
      }
    }
  }
  rules.push_back({.kind = Kind::numpy});
  rules.push_back({.kind = Kind::fp64});
  return rules;
}

}  // namespace guardbit::emulator
