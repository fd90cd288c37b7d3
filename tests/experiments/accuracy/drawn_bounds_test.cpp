#include <algorithm>
#include <string>

#include "emulator/gemm/gemm.hpp"
#include "experiments/accuracy/error_bounds.hpp"
#include "experiments/accuracy/error_norms.hpp"
#include "formats/support/error.hpp"
#include "tests/catch.hpp"
#include "tests/emulator/inputs/drawn_products.hpp"

// The deterministic bound holds of what a plan computes, whatever the plan says.
namespace guardbit::experiments {
namespace {

using tests::DrawnProduct;
using tests::Random;

ErrorAnalysis analysed(const DrawnProduct& x) {
  const emulator::GemmProblem& p = x.problem;
  const emulator::Epilogue& e = x.plan.epilogue;
  const emulator::CodeMatrix d = emulator::execute(x.plan, p, 1);
  const ErrorBound bound = error_bound(x.plan, p, "drawn");
  return analyse(exact_deviations(d, p, e.alpha, e.beta, 1, "drawn", {}, e.activation), d.format,
                 magnitudes(p, e.alpha, e.beta, 1, "drawn"), bound,
                 magnitudes(p, e.alpha, e.beta, 1, "drawn", bound.least_a, bound.least_b));
}

/// Is the plan one of those that are refused for what they say?
bool is_refused(const DrawnProduct& x) {
  try {
    error_bound(x.plan, x.problem, "drawn");
    return false;
  } catch (const formats::Error&) {
    return true;
  }
}

struct Tally {
  std::int64_t plans = 0, outputs = 0, judged = 0, refused = 0, tight = 0;
};

Tally judge(std::uint64_t seed, int count) {
  Random random(seed);
  Tally tally;
  for (int i = 0; i < count; ++i) {
    const DrawnProduct x = tests::drawn_product(random);
    CAPTURE(seed, i, emulator::to_text(x.plan), x.problem.k(), x.problem.a.format.fraction_bits);
    if (is_refused(x)) {
      ++tally.refused;
      continue;
    }
    const ErrorAnalysis found = analysed(x);
    REQUIRE(found.deterministic);
    CHECK(found.deterministic->largest_part <= 1);
    ++tally.plans;
    tally.outputs += found.compared;
    tally.judged += found.deterministic->judged;
    tally.tight += found.deterministic->largest_part > 0.01 ? 1 : 0;
  }
  return tally;
}

TEST_CASE("the deterministic bound holds for plans drawn over every key") {
  const Tally tally = judge(17, 2000);
  CHECK(tally.refused * 20 < tally.plans);
  // Most outputs are judged, and many bounds are not far above what happens.
  CHECK(tally.judged * 4 > tally.outputs * 3);
  CHECK(tally.tight * 4 > tally.plans);
}

TEST_CASE("the deterministic bound holds for many drawn plans", "[sweep]") {
  for (std::uint64_t seed = 100; seed < 150; ++seed) {
    const Tally tally = judge(seed, 2000);
    CHECK(tally.judged * 4 > tally.outputs * 3);
  }
}

}  // namespace
}  // namespace guardbit::experiments
