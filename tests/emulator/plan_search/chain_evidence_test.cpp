#include "emulator/plan_search/chain_evidence.hpp"

#include <string>

#include "emulator/gemm/gemm.hpp"
#include "tests/catch.hpp"
#include "tests/emulator/gemm/gemm_inputs.hpp"

namespace guardbit::tests {
namespace {

using emulator::ChainEvidence;
using emulator::GemmCapture;
using emulator::GemmPlan;
using emulator::GemmProblem;
using emulator::leading_run;

GemmPlan plan_of(const std::string& text) { return emulator::parse_plan(text, "test"); }

GemmProblem problem_of(std::int64_t m, std::int64_t n, std::int64_t k, Random& random,
                       const Format& format = formats::fp32) {
  GemmProblem x;
  x.a = random_matrix(format, 1, m, k, random);
  x.b = random_matrix(format, 1, k, n, random);
  return x;
}

}  // namespace

TEST_CASE("a result tells where its first chain ends") {
  Random random(31);
  const GemmProblem x = problem_of(48, 40, 512, random);
  for (const std::string unit : {"simt/fma.fp32", "simt/mul_add.fp32"}) {
    for (const std::string cut :
         {"", " split=4x32:ceil", " split=2x8:ceil:halves", " lanes=4x32:round_robin",
          " lanes=2x64:round_robin:adjacent", " promote=128"}) {
      const GemmPlan plan = plan_of(unit + cut);
      CAPTURE(unit, cut);
      const ChainEvidence evidence(recording_of(plan, x));
      const auto& run = unit == "simt/fma.fp32" ? evidence.fused() : evidence.rounded_products();
      const std::int64_t length = leading_run(plan, 512).value();
      REQUIRE(run);
      CHECK(run->contains(length));
      CHECK(run->most - run->least <= 80);
      CHECK(!evidence.refutes(plan));
      CHECK(evidence.refutes(plan_of(unit + (length == 512 ? " split=2x8:ceil" : ""))));
      // Short chains leave little of their errors in D.
      if (length < 64) continue;
      CHECK(evidence.refutes(plan_of(unit + " lanes=32x1:round_robin:halves")));
      if (length < 128) continue;
      CHECK(evidence.refutes(
          plan_of("sm_80/mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 input=rz")));
    }
  }
}

TEST_CASE("what is damaged in a result does not hide where its first chain ends") {
  Random random(32);
  const GemmPlan plan = plan_of("simt/fma.fp32 split=4x32:ceil");
  GemmCapture capture = recording_of(plan, problem_of(48, 40, 512, random));
  for (std::int64_t at = 0; at < capture.d.size(); at += 97) capture.d.set(at, 0x41200000);
  const ChainEvidence evidence(capture);
  CHECK(!evidence.refutes(plan));
  CHECK(evidence.refutes(plan_of("simt/fma.fp32")));
}

TEST_CASE("a result of a matrix unit proves no multiply-adds") {
  Random random(33);
  const GemmPlan plan = plan_of("sm_90/wgmma.mma_async.sync.aligned.m64nNk16.f32.bf16.bf16");
  const ChainEvidence evidence(recording_of(plan, problem_of(48, 40, 512, random, formats::bf16)));
  CHECK(!evidence.refutes(plan));
  REQUIRE(evidence.fused());
  CHECK(!evidence.fused()->is_proved);
  CHECK(evidence.refutes(plan_of("simt/fma.fp32")));
}

TEST_CASE("no result refutes its own plan") {
  Random random(34);
  int looked_at = 0;
  for (int i = 0; i < 150; ++i) {
    GemmPlan plan = random_plan(random);
    plan.unit = {"simt", i % 2 == 0 ? "fma.fp32" : "mul_add.fp32"};
    plan.input = {};
    plan.loads = {};
    plan.stream_k = {};
    plan.convolution = {};
    plan.epilogue = {};
    const GemmProblem x = problem_of(1 + i % 40, 1 + i * 7 % 40, 2 + i * 11 % 300, random);
    const ChainEvidence evidence(recording_of(plan, x));
    CAPTURE(emulator::to_text(plan), x.m(), x.n(), x.k());
    looked_at += evidence.fused() ? 1 : 0;
    CHECK(!evidence.refutes(plan));
  }
  CHECK(looked_at > 100);
}

TEST_CASE("a matrix unit that is a chain of multiply-adds is not refuted by their errors") {
  Random random(35);
  const GemmPlan plan = plan_of("cdna1/v_mfma_f32_32x32x2f32");
  const ChainEvidence evidence(recording_of(plan, problem_of(48, 40, 512, random)));
  REQUIRE(evidence.fused());
  CHECK(evidence.fused()->is_proved);
  CHECK(!evidence.refutes(plan));
  CHECK(evidence.refutes(plan_of("cdna3/v_mfma_f32_32x32x8_f16")));
}

TEST_CASE("sums of more products than are looked at tell nothing") {
  GemmCapture capture;
  const std::int64_t k = (std::int64_t{1} << 24) + 1;
  capture.problem.a = emulator::make_matrix(formats::e4m3, 1, 1, k);
  capture.problem.b = emulator::make_matrix(formats::e4m3, 1, k, 1);
  capture.d = emulator::make_matrix(formats::fp32, 1, 1, 1);
  const ChainEvidence evidence(capture);
  CHECK(!evidence.fused());
  CHECK(!evidence.refutes(plan_of("simt/fma.fp32")));
}

}  // namespace guardbit::tests
