#include "emulator/gemm/plan.hpp"

#include <algorithm>
#include <string>

#include "emulator/gemm/plan_library.hpp"
#include "formats/support/error.hpp"
#include "tests/catch.hpp"
#include "tests/emulator/gemm/gemm_inputs.hpp"

namespace guardbit::tests {
namespace {

using emulator::Division;
using emulator::GemmPlan;
using emulator::KRange;
using emulator::KRanges;
using emulator::parse_plan;
using emulator::Partition;
using emulator::to_text;

std::string error_of(const std::string& text) {
  try {
    parse_plan(text, "here");
  } catch (const formats::Error& error) {
    return error.what();
  }
  return "";
}

TEST_CASE("a plan reads back what it prints") {
  Random random(71);
  for (int i = 0; i < 3000; ++i) {
    GemmPlan plan = random_plan(random);
    if (random.one_in(3)) plan.products = emulator::ProductOrder::tree;
    emulator::Epilogue& e = plan.epilogue;
    if (random.one_in(4)) e.via = random.one_in(2) ? formats::fp16 : formats::bf16;
    if (random.one_in(3) && e.compute == formats::fp32)
      e.activation = random.one_in(2) ? emulator::Activation::gelu : emulator::Activation::silu;
    const std::string text = to_text(plan);
    INFO(text);
    REQUIRE(parse_plan(text, "here") == plan);
    CHECK(!describe(plan).empty());
  }
  GemmPlan plain;
  plain.unit = {"sm_90", "wgmma.mma_async.sync.aligned.m64nNk16.f32.f16.f16"};
  plain.epilogue.output = formats::fp16;
  plain.split = {3, 64, Division::ceil, emulator::SumOrder::ascending, formats::fp32};
  CHECK(to_text(plain) ==
        "sm_90/wgmma.mma_async.sync.aligned.m64nNk16.f32.f16.f16 split=3x64:ceil d=fp16");
}

TEST_CASE("a plan that says nothing is refused with its place and the choices") {
  CHECK(error_of("d=fp16").find("here: the plan names no unit") == 0);
  CHECK(error_of("simt/fma.fp32 simt/fma.fp32").find("no part of a plan") != std::string::npos);
  CHECK(error_of("simt/fma.fp32 colour=red").find("split") != std::string::npos);
  CHECK(error_of("simt/fma.fp32 split=3").find("split=3") != std::string::npos);
  CHECK(error_of("simt/fma.fp32 split=0x8").find("at least 1") != std::string::npos);
  CHECK(error_of("simt/fma.fp32 split=3x8:sideways").find("round_robin") != std::string::npos);
  CHECK(error_of("simt/fma.fp32 input=up").find("rne, rna, rz") != std::string::npos);
  CHECK(error_of("simt/fma.fp32 input=rne:2x4").find("ranks") != std::string::npos);
  CHECK(error_of("simt/fma.fp32 input=rne:2x2:slices").find("truncated") != std::string::npos);
  CHECK(error_of("simt/fma.fp32 input=rz:21x21:slices").find("20 pieces") != std::string::npos);
  CHECK(error_of("simt/fma.fp32 input=rne:2x2:scaled0").find("a shift") != std::string::npos);
  CHECK(error_of("simt/fma.fp32 input=rne:2x2:run0").find("a run") != std::string::npos);
  CHECK(error_of("simt/fma.fp32 input=rne:b_first").find("two numbers") != std::string::npos);
  CHECK(error_of("simt/fma.fp32 input=rz:2x2:slices:b_first").find("of rests") !=
        std::string::npos);
  CHECK(error_of("simt/fma.fp32 split=4x8:adjacent:groups2").find("of halves") !=
        std::string::npos);
  CHECK(error_of("simt/fma.fp32 products=forest").find("chain, tree") != std::string::npos);
  CHECK(error_of("simt/fma.fp32 input=rne/rz").find("of pieces") != std::string::npos);
  CHECK(error_of("simt/fma.fp32 stream_k=4x8x8").find("TILE_K") != std::string::npos);
  CHECK(error_of("simt/fma.fp32 stream_k=4x8x8x8:round_robin").find("balanced") !=
        std::string::npos);
  CHECK(error_of("simt/fma.fp32 stream_k=4x8x8x8 split=2x8:ceil").find("both") !=
        std::string::npos);
  CHECK(error_of("simt/fma.fp32 d=fp17").find("fp17") != std::string::npos);
  CHECK(error_of("simt/fma.fp32 alpha=one").find("a number") != std::string::npos);
  CHECK(error_of("simt/fma.fp32 activation=gello").find("gelu_cuda12") != std::string::npos);
  CHECK(error_of("simt/fma.fp64 compute=fp64 activation=silu d=fp64").find("compute=fp32") !=
        std::string::npos);
  CHECK(error_of("simt/fma.fp32 activation=gelu_erfc d=e4m3").find("d=bf16") != std::string::npos);
  CHECK(error_of("simt/fma.fp32 activation=gelu d=e4m3").empty());
  CHECK(error_of("simt/fma.fp32 via=fp17").find("fp17") != std::string::npos);
  CHECK(error_of("simt/fma.fp32 promote=64:twice").find("scaled_fma") != std::string::npos);
}

TEST_CASE("K is partitioned as the division says") {
  const auto divide = [](Partition p, KRanges k) { return emulator::divide(p, k); };
  const KRanges k = {{0, 100}};
  CHECK(divide({3, 16, Division::ceil}, k) ==
        std::vector<KRanges>{{{0, 48}}, {{48, 96}}, {{96, 100}}});
  CHECK(divide({3, 16, Division::balanced}, k) ==
        std::vector<KRanges>{{{0, 48}}, {{48, 80}}, {{80, 100}}});
  CHECK(divide({3, 16, Division::round_robin}, k) ==
        std::vector<KRanges>{
            {{0, 16}, {48, 64}, {96, 100}}, {{16, 32}, {64, 80}}, {{32, 48}, {80, 96}}});
  CHECK(divide({1, 16, Division::ceil}, k) == std::vector<KRanges>{k});
  // 7 parts of ceil(7 tiles / 5) = 2 tiles are 4 parts.
  CHECK(divide({5, 16, Division::ceil}, k).size() == 4);
  CHECK(divide({2, 8, Division::ceil}, {{0, 8}, {40, 56}}) ==
        std::vector<KRanges>{{{0, 8}, {40, 48}}, {{48, 56}}});
  Random random(72);
  for (int i = 0; i < 2000; ++i) {
    Partition p{random.between(2, 40), random.between(1, 40),
                static_cast<Division>(random.below(4))};
    const std::int64_t first = random.between(1, 300), second = random.between(0, 300);
    std::vector<bool> seen(1000);
    std::vector<std::int64_t> lengths;
    std::int64_t count = 0;
    for (const KRanges& part : divide(p, {{0, first}, {600, 600 + second}})) {
      const std::int64_t before = count;
      std::int64_t last = -1;
      for (const KRange& range : part) {
        for (std::int64_t x = range.begin; x < range.end; ++x, ++count) {
          CHECK(!seen[static_cast<std::size_t>(x)]);
          CHECK(x > last);
          seen[static_cast<std::size_t>(x)] = true;
          last = x;
        }
      }
      lengths.push_back(count - before);
    }
    REQUIRE(count == first + second);
    CHECK(lengths_of_parts(p, first + second) == lengths);
  }
}

TEST_CASE("the table of plans names plans") {
  for (const emulator::LibraryPlan& row : emulator::library_plans()) {
    INFO(row.kernel);
    const GemmPlan plan = parse_plan(row.plan, "table");
    CHECK(to_text(plan) == row.plan);
  }
  CHECK(emulator::matches_kernel("nvjet_sm90_*_splitK", "void nvjet_sm90_hsh_64x8_splitK_NNT"));
  CHECK(!emulator::matches_kernel("nvjet_sm90_*_splitK", "nvjet_sm90_hsh_64x8_NNT"));
  const auto like = [](const std::string& name, const Format& f) {
    return emulator::parse_plan(emulator::require_library_plan(name, f, f, "--like").plan, "table")
        .unit.instruction;
  };
  CHECK(like("cublas-13:sm_90", formats::fp16).find("f32.f16.f16") != std::string::npos);
  CHECK(like("cublas-13:sm_90", formats::fp32) == "fma.fp32");
  CHECK(like("cublas-13:sm_90:cutlass_80_tensorop_s1688gemm_64x64_16x6_nn_align4", formats::fp32)
            .find("tf32") != std::string::npos);
  CHECK_THROWS_AS(like("cublas-9:sm_90", formats::fp16), formats::Error);
  CHECK_THROWS_AS(like("cublas-13:sm_90", formats::e2m1), formats::Error);
}

}  // namespace
}  // namespace guardbit::tests
