#include "experiments/accuracy/error_bounds.hpp"

#include <cmath>
#include <string>
#include <vector>

#include "emulator/gemm/gemm.hpp"
#include "experiments/accuracy/error_norms.hpp"
#include "formats/format_catalogue.hpp"
#include "formats/support/error.hpp"
#include "tests/catch.hpp"
#include "tests/emulator/gemm/gemm_inputs.hpp"

namespace guardbit::experiments {
namespace {

using emulator::CodeMatrix;
using emulator::GemmPlan;
using emulator::GemmProblem;
using formats::Format;
using tests::Random;

const std::string f16 = "sm_90/wgmma.mma_async.sync.aligned.m64nNk16.f32.f16.f16";
const std::string bf16 = "sm_90/wgmma.mma_async.sync.aligned.m64nNk16.f32.bf16.bf16";
const std::string tf32 = "sm_90/wgmma.mma_async.sync.aligned.m64nNk8.f32.tf32.tf32";
const std::string int8 = "sm_90/wgmma.mma_async.sync.aligned.m64nNk32.s32.s8.s8";
const std::string e4m3 = "sm_90/wgmma.mma_async.sync.aligned.m64nNk32.f32.e4m3.e4m3";

struct Tried {
  std::string plan;
  Format in;
};
const std::vector<Tried> plans = {
    {"simt/fma.fp32 d=fp32", formats::fp32},
    {"simt/fma.fp32 split=7x8:round_robin:halves lanes=4x1:round_robin d=fp16", formats::fp32},
    {"simt/mul_add.bf16 d=fp32", formats::fp32},
    {"simt/mul_add.fp16 products=tree lanes=4x2:round_robin:halves d=fp32", formats::fp32},
    {"simt/mul_add.fp32 products=tree split=8x4:round_robin:halves:groups2 d=fp32", formats::fp32},
    {"simt/fma.fp64 compute=fp64 d=fp64", formats::fp64},
    {"simt/fma.fp16 compute=fp16 d=fp16", formats::fp16},
    {f16 + " d=fp16", formats::fp16},
    {f16 + " split=3x64:ceil:bf16 add=rounded d=bf16", formats::fp16},
    {f16 + " d=fp32", formats::fp32},
    {bf16 + " input=rne:3x5 d=fp32", formats::fp32},
    {bf16 + " input=rz d=bf16", formats::fp32},
    {tf32 + " input=rz residue_first=16 d=fp32", formats::fp32},
    {tf32 + " input=rne:2x3 d=fp32", formats::fp32},
    {tf32 + " input=rna/rz:2x2:run12:b_first promote=12 d=fp32", formats::fp32},
    {f16 + " input=rne:2x2:scaled11 promote=16 d=fp32", formats::fp32},
    {f16 + " stream_k=3x2x2x32:balanced:bf16 d=fp32", formats::fp16},
    {f16 + " split=3x32:ceil:in_place d=fp16", formats::fp16},
    {"simt/fma.fp32 activation=gelu_cuda12 d=fp32", formats::fp32},
    {"simt/fma.fp32 via=bf16 activation=silu d=fp32", formats::fp32},
    {f16 + " activation=gelu_tanh d=fp16", formats::fp16},
    {f16 + " activation=gelu_erfc d=fp16", formats::fp16},
    {bf16 + " activation=gelu_erfc d=bf16", formats::bf16},
    {int8 + " input=rz:4x4:slices compute=fp64 d=fp64", formats::fp64},
    {int8 + " input=rz:3x4:grouped_slices compute=fp64 d=fp32", formats::fp32},
    {e4m3 + " d=fp32", formats::e4m3},
    {e4m3 + " promote=128 d=bf16", formats::e4m3},
    {"sm_90/mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32 d=fp32", formats::e4m3},
    {"sm_90/wgmma.mma_async.sync.aligned.m64nNk16.f16.f16.f16 compute=fp16 d=fp16", formats::fp16},
    {"cdna1/v_mfma_f32_32x32x8f16 d=fp32", formats::fp16},
    {"cdna2/v_mfma_f32_32x32x8f16 d=fp32", formats::fp16},
    {"cdna3/v_mfma_f32_32x32x8_f16 d=fp32", formats::fp16},
};

/// Element j of one of several kinds of operands.
std::uint64_t operand(int kind, const Format& f, std::int64_t i, Random& random) {
  switch (kind) {
    case 0: return tests::code_between(f, -3, 1, random);
    case 1: return tests::code_between(f, -3, -1, random) & formats::magnitude_mask(f);
    case 2:
      return i % 5 == 0 ? tests::code_between(f, -8, 2, random) : tests::subnormal_code(f, random);
    default: return tests::code_between(f, -12, 3, random);
  }
}

ErrorAnalysis analysed(const GemmPlan& plan, const GemmProblem& problem) {
  const CodeMatrix d = emulator::execute(plan, problem, 2);
  const double alpha = plan.epilogue.alpha, beta = plan.epilogue.beta;
  const ErrorBound bound = error_bound(plan, problem, "test");
  return analyse(exact_deviations(d, problem, alpha, beta, 2, "test", {}, plan.epilogue.activation),
                 d.format, magnitudes(problem, alpha, beta, 2, "test"), bound,
                 magnitudes(problem, alpha, beta, 2, "test", bound.least_a, bound.least_b));
}

TEST_CASE("the deterministic bound holds for every unit, split and conversion") {
  Random random(21);
  double closest = 0;
  for (const Tried& x : plans) {
    for (int kind = 0; kind < 4; ++kind) {
      for (const std::int64_t k : {1, 31, 160}) {
        CAPTURE(x.plan, kind, k);
        GemmPlan plan = emulator::parse_plan(x.plan, "test");
        GemmProblem p;
        p.a = emulator::make_matrix(x.in, 1, 5, k);
        p.b = emulator::make_matrix(x.in, 1, k, 6);
        for (CodeMatrix* m : {&p.a, &p.b})
          for (std::int64_t i = 0; i < m->size(); ++i) m->set(i, operand(kind, x.in, i, random));
        if (kind == 3) {
          p.c = tests::random_matrix(plan.epilogue.output, 1, 5, 6, random);
          plan.epilogue.beta = 0.75;
          plan.epilogue.alpha = -1.25;
        }
        const ErrorAnalysis found = analysed(plan, p);
        REQUIRE(found.deterministic);
        CHECK(found.deterministic->largest_part <= 1);
        closest = std::max(closest, found.deterministic->largest_part);
      }
    }
  }
  CHECK(closest > 0.3);  // it says something, too
}

TEST_CASE("the probabilistic bound holds where errors have mean zero, and is smaller") {
  Random random(22);
  for (const std::string text : {"simt/fma.fp32 d=fp32", "simt/fma.fp16 compute=fp16 d=fp16"}) {
    const GemmPlan plan = emulator::parse_plan(text, "test");
    const Format f = plan.epilogue.output;
    for (const bool positive : {false, true}) {
      CAPTURE(text, positive);
      GemmProblem p;
      const std::int64_t k = f == formats::fp16 ? 100 : 3000;
      p.a = tests::random_matrix(f, 1, 16, k, random, -6, -1);
      p.b = tests::random_matrix(f, 1, k, 16, random, -6, -1);
      for (std::int64_t i = 0; positive && i < p.a.size(); ++i)
        p.a.set(i, p.a[i] & formats::magnitude_mask(f)),
            p.b.set(i, p.b[i] & formats::magnitude_mask(f));
      const ErrorBound bound = error_bound(plan, p, "test");
      CHECK(bound.mean_zero);
      CHECK(bound.likely < bound.sum * (f == formats::fp16 ? 0.7 : 0.15));
      const ErrorAnalysis found = analysed(plan, p);
      REQUIRE(found.probabilistic);
      CHECK(found.probabilistic->holds());
      CHECK(found.probabilistic->largest_part > found.deterministic->largest_part);
    }
  }
  GemmProblem small;
  small.a = tests::random_matrix(formats::fp16, 1, 2, 8, random);
  small.b = tests::random_matrix(formats::fp16, 1, 8, 2, random);
  CHECK_FALSE(error_bound(emulator::parse_plan(f16 + " d=fp32", "test"), small, "test").mean_zero);
}

TEST_CASE("leading terms are those of the block fused multiply-add analysis") {
  // Blanchard et al. 2020 for n = 4096 and blocks of 4, FP32 operands: FP16 throughout (n + 2) u16,
  // blocks with FP16 sums (n / 4 + 2) u16, blocks with FP32 sums 2 u16 + n u32, FP32 n u32.
  Random random(23);
  GemmProblem p;
  p.a = tests::random_matrix(formats::fp32, 1, 1, 4096, random);
  p.b = tests::random_matrix(formats::fp32, 1, 4096, 1, random);
  const auto relative = [&](const std::string& plan) {
    return std::log1p(error_bound(emulator::parse_plan(plan, "test"), p, "test").sum);
  };
  const double u16 = 0x1p-11, u32 = 0x1p-24, n = 4096;
  const auto near = [](double x, double wanted) { return x > 0.9 * wanted && x < 1.2 * wanted; };
  CHECK(near(relative("simt/fma.fp32 d=fp32"), n * u32));
  CHECK(near(relative("simt/fma.fp16 compute=fp16 d=fp16"), (n + 2) * u16));
  CHECK(near(relative("sm_70/mma.sync.aligned.m8n8k4.row.col.f16.f16.f16.f16 compute=fp16 d=fp16"),
             (n / 4 + 2) * u16));
  // V100 keeps no bits below FP32's and truncates: five cuts and a conversion, of 2^-23 each.
  CHECK(near(relative("sm_70/mma.sync.aligned.m8n8k4.row.col.f32.f16.f16.f32 d=fp32"),
             2 * u16 + n / 4 * 6 * 2 * u32));
}

}  // namespace
}  // namespace guardbit::experiments
