#include <array>

#include "experiments/harness/repeats.hpp"
#include "experiments/harness/run.hpp"
#include "experiments/suite/fp8_products.hpp"
#include "experiments/suite/recorded_products.hpp"
#include "experiments/suite/suite.hpp"
#include "formats/support/words.hpp"

namespace guardbit::experiments {

namespace e09 {
namespace {

constexpr std::int64_t recorded_interval = 128;
constexpr std::array recorded = {RecordedFp8{"normal", 4096, "0.081", ""},
                                 RecordedFp8{"uniform", 4096, "0.061", "-0.050"}};
constexpr std::array products = {
    RecordedProduct{"cuBLAS, precise accumulation, 64x64x256",
                    "scaledmm_e4m3_e4m3_fp32_fast0_t_1.0_1.0_0_64x64x256.safetensors",
                    "sm_90/wgmma.mma_async.sync.aligned.m64nNk32.f32.e4m3.e4m3 promote=128 d=fp32"},
    RecordedProduct{"cuBLAS, precise accumulation, 48x32x1040",
                    "scaledmm_e4m3_e4m3_fp32_fast0_t_1.0_1.0_0_48x32x1040.safetensors",
                    "sm_90/wgmma.mma_async.sync.aligned.m64nNk32.f32.e4m3.e4m3 promote=128 d=fp32"},
};

Outcome run(Run& run) {
  const Settings& settings = run.settings();
  const auto& distributions = settings.words("distribution");
  const auto intervals = settings.integers("N_C");
  const auto repeats = settings.integer("repeats");
  const std::int64_t k = settings.integer("K");
  run.announce(distributions.size() * intervals.size() * static_cast<std::size_t>(repeats) +
               products.size());
  Outcome outcome;
  add_recorded_products(run, products, outcome);
  outcome.figure = {
      "E09: E4M3 products, Hopper sums added to FP32 every N_C elements, K = " + std::to_string(k),
      "N_C (elements of K)", "largest error (%)", true, true};
  for (const std::string& distribution : distributions) {
    Curve curve{distribution}, known{distribution + ", H200", {}, {}, Look::points, true};
    for (const std::int64_t interval : intervals) {
      const RecordedFp8* found = nullptr;
      for (const RecordedFp8& r : recorded)
        if (r.distribution == distribution && r.k == k && interval == recorded_interval) found = &r;
      emulator::GemmPlan plan = fp8_fast_plan();
      plan.promotion.interval = interval;
      const auto findings =
          fp8_findings(run, {distribution + " N_C=" + std::to_string(interval), distribution, k,
                             settings.integer("MN"), repeats, plan, found});
      curve.add(static_cast<double>(interval), findings.front().measured);
      if (found != nullptr) known.add(static_cast<double>(interval), number_of(found->largest));
      outcome.findings.insert(outcome.findings.end(), findings.begin(), findings.end());
    }
    outcome.figure.curves.push_back(curve);
    if (!known.x.empty()) outcome.figure.curves.push_back(known);
  }
  return outcome;
}

}  // namespace
}  // namespace e09

Experiment promotion_interval() {
  using namespace e09;
  using Kind = Parameter::Kind;
  return {
      .name = "E09",
      .slug = "promotion_interval",
      .question = "How often must an FP8 sum leave the tensor core to stay accurate?",
      .method =
          "As E08, but the sum of every N_C elements of K is added to an FP32 sum outside the unit (rounded to nearest), "
          "as DeepSeek-V3 does every 128 and cuBLAS without fast accumulation. "
          "Recorded products of cuBLAS are computed again.",
      .expected =
          "cuBLAS on an H200 without fast accumulation (N_C = 128) at K = 4096: normal 8.1e-4; uniform 6.1e-4 and bias -5.0e-4 (measured). "
          "Recorded products: every bit (measured).",
      .parameters = {{"N_C", "elements of K between two additions", "32:4096:x2", "128,1024",
                      Kind::integer, true, 32, 65536},
                     {"K", "products in each sum", "4096", "", Kind::integer, false, 32, 65536},
                     {"MN", "rows of A and columns of B", "256", "128", Kind::integer, false, 16,
                      4096},
                     {"repeats", "with other random numbers", "5", "5", Kind::integer, false, 3,
                      100},
                     {"distribution", "of the numbers", "normal,uniform", "", Kind::word, true, 0,
                      0, formats::choices_of<Distribution>()},
                     recordings_parameter()},
      .run = run,
  };
}

}  // namespace guardbit::experiments
