#include "emulator/replay/product_verdict.hpp"

#include <cmath>
#include <string>
#include <vector>

#include "emulator/gemm/gemm.hpp"
#include "emulator/gemm/plan.hpp"
#include "emulator/operators/operator_tensor.hpp"
#include "emulator/replay/plan_book.hpp"
#include "tests/catch.hpp"

// What the plan book may say of a product before its result is looked at.
namespace guardbit::tests {
namespace {

using emulator::GemmCapture;
using emulator::GemmPlan;
using emulator::replay::PlanBook;
using emulator::replay::Status;

constexpr std::int64_t rows = 4, inner = 64;

GemmPlan split_plan() {
  return emulator::parse_plan(
      "sm_90/wgmma.mma_async.sync.aligned.m64nNk16.f32.f16.f16 split=2x32:ceil d=fp16", "test");
}

/// A product in FP16 of equal rows and equal columns with the result that the plan gives.
template <class Left, class Right>
emulator::replay::ProductCall product_of(const Left& left, const Right& right) {
  std::vector<float> a, b;
  for (int i = 0; i < rows * inner; ++i) {
    a.push_back(left(i % static_cast<int>(inner)));
    b.push_back(right(i / static_cast<int>(rows)));
  }
  GemmCapture capture;
  capture.kind = "gemm";
  capture.arch = "sm_90";
  const auto matrix = [](const std::vector<float>& numbers, emulator::operators::Dimensions shape) {
    return emulator::replay::matrix_of(
        emulator::operators::tensor_of_numbers(formats::fp16, std::move(shape), numbers));
  };
  capture.problem.a = matrix(a, {rows, inner});
  capture.problem.b = matrix(b, {inner, rows});
  capture.d = emulator::execute(split_plan(), capture.problem, 1);
  capture.shape = {rows, rows};
  return {"a shape", {{"", [=] { return capture; }}}};
}

}  // namespace

TEST_CASE("Products: a plan whose order no result has told predicts only what tells its order") {
  PlanBook book;
  book.set("a shape order=untold", {split_plan()});
  emulator::replay::Context context;
  context.plans = &book;
  // Small integers: every order of K gives their sum.
  const auto same = judge_product(
      product_of([](int k) { return static_cast<float>(k % 3); }, [](int) { return 1.0F; }),
      context);
  CHECK(same.status == Status::unmodelled);
  CHECK(same.plan.find("any order of K") != std::string::npos);
  CHECK(!same.is_predicted);
  CHECK(book.find("a shape") == nullptr);
  // The first block cancels. Beside its products the small ones would be cut.
  const auto told =
      judge_product(product_of(
                        [](int k) {
                          const float large = k % 2 == 0 ? 1024.0F : -1024.0F;
                          return k < 16 ? large : std::ldexp(static_cast<float>(1 + k % 5), -7);
                        },
                        [](int k) { return k < 16 ? 1024.0F : 1.0F; }),
                    context);
  INFO(told.plan);
  CHECK(told.status == Status::exact);
  CHECK(told.is_predicted);
  CHECK(book.find("a shape") != nullptr);
}

}  // namespace guardbit::tests
