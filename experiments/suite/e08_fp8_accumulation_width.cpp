#include <array>

#include "experiments/harness/random_numbers.hpp"
#include "experiments/harness/repeats.hpp"
#include "experiments/harness/run.hpp"
#include "experiments/suite/fp8_products.hpp"
#include "experiments/suite/recorded_products.hpp"
#include "experiments/suite/suite.hpp"
#include "formats/support/words.hpp"

namespace guardbit::experiments {

namespace e08 {
namespace {

constexpr std::array recorded = {
    RecordedFp8{"normal", 512, "0.51", ""},      RecordedFp8{"normal", 4096, "1.84", ""},
    RecordedFp8{"normal", 16384, "2.06", ""},    RecordedFp8{"uniform", 512, "0.69", "-0.52"},
    RecordedFp8{"uniform", 4096, "7.1", "-6.6"}, RecordedFp8{"uniform", 16384, "9.9", "-9.6"},
};

constexpr std::array products = {
    RecordedProduct{"cuBLAS, fast accumulation, 64x64x256",
                    "scaledmm_e4m3_e4m3_fp32_fast1_t_1.0_1.0_0_64x64x256.safetensors",
                    "sm_90/wgmma.mma_async.sync.aligned.m64nNk32.f32.e4m3.e4m3 d=fp32"},
    RecordedProduct{"cuBLAS, fast accumulation, 48x32x1040",
                    "scaledmm_e4m3_e4m3_fp32_fast1_t_1.0_1.0_0_48x32x1040.safetensors",
                    "sm_90/wgmma.mma_async.sync.aligned.m64nNk32.f32.e4m3.e4m3 d=fp32"},
};

const RecordedFp8* recorded_of(const std::string& distribution, std::int64_t k) {
  for (const RecordedFp8& r : recorded)
    if (r.distribution == distribution && r.k == k) return &r;
  return nullptr;
}

emulator::GemmPlan plan_of(std::int64_t k) {
  emulator::GemmPlan plan = fp8_fast_plan();
  // cuBLAS cut K = 16384 in three: uncut, the bias would be -24.9 %.
  if (k == 16384) plan.split = {.parts = 3, .tile = 128};
  return plan;
}

Outcome run(Run& run) {
  const Settings& settings = run.settings();
  const auto& distributions = settings.words("distribution");
  const auto lengths = settings.integers("K");
  const auto repeats = settings.integer("repeats");
  run.announce(distributions.size() * lengths.size() * static_cast<std::size_t>(repeats) +
               products.size());
  Outcome outcome;
  add_recorded_products(run, products, outcome);
  outcome.figure = {"E08: E4M3 products accumulated by a Hopper tensor core",
                    "K (products in each sum)", "largest error (%)", true, true};
  for (const std::string& distribution : distributions) {
    Curve curve{distribution}, known{distribution + ", H200", {}, {}, Look::points, true};
    for (const std::int64_t k : lengths) {
      const RecordedFp8* const r = recorded_of(distribution, k);
      const auto findings =
          fp8_findings(run, {distribution + " K=" + std::to_string(k), distribution, k,
                             settings.integer("MN"), repeats, plan_of(k), r});
      curve.add(static_cast<double>(k), findings.front().measured);
      if (r != nullptr) known.add(static_cast<double>(k), number_of(r->largest));
      outcome.findings.insert(outcome.findings.end(), findings.begin(), findings.end());
    }
    outcome.figure.curves.push_back(curve);
    if (!known.x.empty()) outcome.figure.curves.push_back(known);
  }
  outcome.notes.emplace_back(
      "Each block of 32 products is cut to 13 bits below its largest term, and so is the sum so far that takes part in it: "
      "with numbers of one sign every cut loses in the same direction.");
  outcome.notes.emplace_back(
      "The recording does not say how many outputs it had; the largest of more outputs is larger (--set MN=128 and MN=1024 show by how much).");
  return outcome;
}

}  // namespace
}  // namespace e08

Experiment fp8_accumulation_width() {
  using namespace e08;
  using Kind = Parameter::Kind;
  return {
      .name = "E08",
      .slug = "fp8_accumulation_width",
      .question = "How wrong do FP8 products get when a Hopper tensor core accumulates all of K?",
      .method =
          "E4M3 matrices of random numbers are multiplied by one chain of wgmma m64nNk32 with FP32 results, "
          "as cuBLAS does with fast accumulation (K = 16384 in three parts), and compared with the exact product. "
          "Recorded products of cuBLAS are computed again.",
      .expected =
          "cuBLAS on an H200, normal: 0.51, 1.84, 2.06 % at K = 512, 4096, 16384; "
          "uniform: 0.69, 7.1, 9.9 %, bias -0.52, -6.6, -9.6 % (measured). "
          "DeepSeek-V3 (arXiv 2412.19437, 3.3.2): about 14 bits, nearly 2 % at K = 4096 (read). Recorded products: every bit (measured).",
      .parameters =
          {{"K", "products in each sum", "512:16384:x2", "512,4096", Kind::integer, true, 1, 65536},
           {"MN", "rows of A and columns of B", "256", "128", Kind::integer, false, 16, 4096},
           {"repeats", "with other random numbers", "8", "8", Kind::integer, false, 3, 100},
           {"distribution", "of the numbers", "normal,uniform", "", Kind::word, true, 0, 0,
            formats::choices_of<Distribution>()},
           recordings_parameter()},
      .run = run,
  };
}

}  // namespace guardbit::experiments
