#include "emulator/operator_search/operator_search.hpp"

#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "emulator/operator_search/sum_rule.hpp"
#include "emulator/operators/kernels/array_math.hpp"
#include "emulator/operators/reductions.hpp"
#include "emulator/operators/softmax.hpp"
#include "formats/support/error.hpp"
#include "tests/catch.hpp"

// The order of a sum, told from its results.
namespace guardbit::tests {
namespace {

namespace ops = emulator::operators;
using emulator::OperatorAnswer;
using emulator::OperatorQuestion;
using emulator::SearchedOperator;
using emulator::SumRule;
using formats::fp32;

constexpr std::int64_t rows = 24, size = 1000;

std::vector<float> numbers() {
  std::mt19937_64 random(4);
  std::normal_distribution<float> normal;
  std::vector<float> all(static_cast<std::size_t>(rows * size));
  for (float& x : all) x = normal(random);
  return all;
}

std::span<const float> row(const std::vector<float>& x, std::int64_t r) {
  return std::span(x).subspan(static_cast<std::size_t>(r * size), static_cast<std::size_t>(size));
}

OperatorAnswer asked(SearchedOperator op, const std::vector<float>& x, ops::Dimensions shape,
                     const std::vector<float>& y) {
  OperatorQuestion question;
  question.op = op;
  question.input = ops::tensor_of_numbers(fp32, {rows, size}, x);
  question.output = ops::tensor_of_numbers(fp32, std::move(shape), y);
  question.dimension = -1;
  return emulator::search_operator(question);
}

std::vector<float> sums_by(const SumRule& rule, const std::vector<float>& x) {
  std::vector<float> sums;
  for (std::int64_t r = 0; r < rows; ++r) sums.push_back(emulator::sum_of(rule, row(x, r)));
  return sums;
}

}  // namespace

TEST_CASE("the order of a sum is found, and its results speak for it") {
  const std::vector<float> x = numbers();
  for (const SumRule& rule :
       {SumRule{}, SumRule{.threads = 8, .vector = 4, .order = SumRule::Order::pairs},
        SumRule{.threads = 64, .order = SumRule::Order::ascending},
        SumRule{.kind = SumRule::Kind::numpy}}) {
    INFO(rule.text());
    const OperatorAnswer answer = asked(SearchedOperator::sum, x, {rows}, sums_by(rule, x));
    REQUIRE(answer.explained());
    CHECK(answer.exact.front().rule == rule.text());
    CHECK(answer.exact.size() == 1);
    CHECK(answer.refuting > rows / 2);
  }
}

TEST_CASE("PyTorch's sum and softmax are found first") {
  const std::vector<float> x = numbers();
  const ops::Tensor input = ops::tensor_of_numbers(fp32, {rows, size}, x);
  ops::ReductionRequest request;
  request.dimensions = {-1};
  const OperatorAnswer sum =
      asked(SearchedOperator::sum, x, {rows}, ops::numbers_of(ops::sum(input, request).result));
  REQUIRE(sum.explained());
  CHECK(sum.exact.front().rule.starts_with("PyTorch 2.11 on sm_90"));
  const OperatorAnswer softmax =
      asked(SearchedOperator::softmax, x, {rows, size},
            ops::numbers_of(ops::softmax(input, -1, false, fp32, 1).result));
  REQUIRE(softmax.explained());
  CHECK(softmax.exact.front().rule.starts_with("PyTorch 2.11 on sm_90"));
  CHECK(softmax.refuting > rows * size / 8);
}

TEST_CASE("another exponential and a product in place of a division are told apart") {
  const std::vector<float> x = numbers();
  std::vector<float> y;
  for (std::int64_t r = 0; r < rows; ++r) {
    const auto of = row(x, r);
    float greatest = of[0];
    for (const float v : of) greatest = std::max(greatest, v);
    std::vector<float> powers;
    for (const float v : of)
      powers.push_back(
          emulator::cuda_math::intrinsic_expf(emulator::HostNumber(v - greatest)).number());
    const float inverse =
        1 / emulator::sum_of({.threads = 128, .order = SumRule::Order::warps}, powers);
    for (const float p : powers) y.push_back(p * inverse);
  }
  const OperatorAnswer answer = asked(SearchedOperator::softmax, x, {rows, size}, y);
  REQUIRE(answer.explained());
  CHECK(
      answer.exact.front().rule.starts_with("__expf of x - max; 128 threads in turn, then warps"));
  CHECK(answer.exact.front().rule.ends_with("times 1 / sum"));
}

TEST_CASE("a wrong sum is not explained") {
  const std::vector<float> x = numbers();
  std::vector<float> y = sums_by({}, x);
  y[20] = std::nextafter(y[20], 1e9F);
  const OperatorAnswer answer = asked(SearchedOperator::sum, x, {rows}, y);
  CHECK(!answer.explained());
  REQUIRE(answer.nearest);
  CHECK(answer.nearest->rule == SumRule{}.text());
  CHECK(answer.nearest->mismatches >= 1);
  CHECK_THROWS_AS(asked(SearchedOperator::sum, x, {3}, {1, 2, 3}), formats::Error);
  // No more are said to differ than there are.
  const OperatorAnswer of_none = asked(SearchedOperator::softmax, x, {rows, size}, x);
  REQUIRE(of_none.nearest);
  CHECK(of_none.nearest->mismatches <= of_none.outputs);
  OperatorQuestion empty;
  empty.input = empty.output = ops::tensor_of_numbers(fp32, {0, 4}, {});
  CHECK_THROWS_AS(emulator::search_operator(empty), formats::Error);
}

}  // namespace guardbit::tests
