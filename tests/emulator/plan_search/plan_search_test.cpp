#include "emulator/plan_search/plan_search.hpp"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "emulator/faults/judge_capture.hpp"
#include "emulator/faults/mended.hpp"
#include "emulator/gemm/gemm.hpp"
#include "emulator/gemm/plan_library.hpp"
#include "emulator/gemm/scalar.hpp"
#include "emulator/plan_search/candidates.hpp"
#include "emulator/plan_search/diagnosis.hpp"
#include "emulator/plan_search/order_control.hpp"
#include "formats/support/stop.hpp"
#include "formats/support/words.hpp"
#include "tests/catch.hpp"
#include "tests/emulator/gemm/gemm_inputs.hpp"

namespace guardbit::tests {
namespace {

using emulator::GemmCapture;
using emulator::GemmPlan;
using emulator::GemmProblem;
using emulator::SearchResult;

std::vector<std::string> captures_in(const std::filesystem::path& folder) {
  std::vector<std::string> files;
  if (!std::filesystem::exists(folder)) return files;
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    if (entry.path().extension() == ".safetensors") files.push_back(entry.path().string());
  std::sort(files.begin(), files.end());
  return files;
}

/// The found plans, replayed by themselves, must give every output.
void check_explained(const GemmCapture& capture, const SearchResult& result) {
  INFO(capture.path);
  const std::string nearest = result.plans.empty() ? "no plan" : to_text(result.plans[0].plan);
  CAPTURE(nearest, result.tried);
  REQUIRE(result.explained());
  for (const emulator::PlanResult& x : result.plans) {
    CHECK(x.mismatches == 0);
    const GemmPlan plan = emulator::parse_plan(to_text(x.plan), "test");
    REQUIRE(mismatches(capture, execute(plan, capture.lowered(plan.convolution))).empty());
  }
}

/// Every `stride`th recording; returns the rows of the table that were held to one.
std::set<std::string_view> check_recordings(std::size_t stride) {
  const std::vector<std::string> files = captures_in("tests/golden/gemm");
  REQUIRE(files.size() > 60);
  std::set<std::string_view> seen;
  for (std::size_t i = 0; i < files.size(); i += stride) {
    const std::string& file = files[i];
    const GemmCapture capture = emulator::read_gemm_capture(file);
    const SearchResult result = search(capture);
    check_explained(capture, result);
    const auto kernels = capture.metadata.find("kernels");
    if (kernels == capture.metadata.end()) continue;
    for (const emulator::LibraryPlan& row : emulator::library_plans()) {
      if (!emulator::matches_kernel(row.kernel, kernels->second)) continue;
      // The table's plan with what follows from the shape and the call.
      GemmPlan stated = emulator::parse_plan(row.plan, "table");
      const GemmPlan& found = result.plans.front().plan;
      seen.insert(row.kernel);
      stated.split = found.split;
      stated.slices = found.slices;
      stated.residue_first = found.residue_first;
      const emulator::Epilogue own = stated.epilogue;
      stated.epilogue = found.epilogue;
      INFO(file << ": " << row.kernel << " says " << row.plan);
      CHECK((own.output == stated.epilogue.output && own.compute == stated.epilogue.compute));
      const auto wrong = mismatches(capture, execute(stated, capture.lowered(stated.convolution)));
      CHECK(wrong.empty());
      break;
    }
  }
  return seen;
}

TEST_CASE(
    "a sparse A that cannot be stored is no sparse unit's, wherever its first wrong group is") {
  for (const std::int64_t row : {0, 9, 22, 37, 50, 63}) {
    GemmCapture capture =
        emulator::read_gemm_capture("tests/golden/gemm/sparse_f16_64x64x64_cusparselt.safetensors");
    // So little that D is right.
    for (std::int64_t k = 20; k < 24; ++k)
      if ((capture.problem.a(0, row, k) & 0x7fff) == 0)
        capture.problem.a.set(row * capture.problem.k() + k, 1);
    const SearchResult result = search(capture);
    for (const emulator::PlanResult& x : result.plans)
      CHECK((x.mismatches != 0 || x.plan.unit.instruction.find(".sp.") == std::string::npos));
  }
}

TEST_CASE("a recorded kernel of known plan is what its plan gives, and is found") {
  const GemmCapture capture =
      emulator::read_gemm_capture("tests/golden/gemm/own_f16_64x48x256_blocks5.safetensors");
  const GemmPlan plan = emulator::parse_plan(capture.metadata.at("plan"), "metadata");
  CHECK(mismatches(capture, execute(plan, capture.problem)).empty());
  emulator::SearchOptions options;
  options.most_plans = 1;
  const SearchResult result = search_plans(capture, options);
  REQUIRE(result.explained());
  CHECK(result.plans.front().plan == plan);
}

TEST_CASE("a search that is stopped says which stages it ruled out") {
  GemmCapture capture =
      emulator::read_gemm_capture("tests/golden/gemm/mm_fp32_33x17x100.safetensors");
  for (std::int64_t i = 0; i < capture.d.size(); i += 2) capture.d.set(i, capture.d[i] ^ 1U);
  capture.metadata.clear();  // which names a kernel that splits K
  std::set<std::string> heard;
  int asked = 0;
  emulator::SearchOptions options;
  options.threads = 1;
  options.progress = [&](std::string_view stage, std::int64_t) { heard.emplace(stage); };
  options.interrupted = [&] { return ++asked > 3000; };
  const SearchResult result = search_plans(capture, options);
  CHECK(result.stopped);
  CHECK(!result.explained());
  REQUIRE(!result.ruled_out.empty());
  CHECK(result.ruled_out.front() == "one chain over K by every unit");
  CHECK(heard.size() == result.ruled_out.size() + 1);
  for (const std::string& stage : result.ruled_out) CHECK(heard.contains(stage));
}

TEST_CASE("K in a random order shows how much a result says of its order") {
  GemmCapture capture =
      emulator::read_gemm_capture("tests/golden/gemm/mm_fp32_33x17x100.safetensors");
  const GemmPlan plan = search(capture).plans.front().plan;
  const auto told = order_control(capture, plan, 1);
  REQUIRE(told);
  CHECK(told->outputs == 561);
  CHECK(told->refuting > 300);
  // Powers of two add without an error, in any order.
  for (emulator::CodeMatrix* x : {&capture.problem.a, &capture.problem.b})
    for (std::int64_t i = 0; i < x->size(); ++i) x->set(i, 0x3F800000);
  capture.d = execute(plan, capture.problem);
  const auto silent = order_control(capture, plan, 1);
  REQUIRE(silent);
  CHECK(silent->refuting == 0);
  const GemmCapture integers =
      emulator::read_gemm_capture("tests/golden/gemm/int8_17x8x8_n.safetensors");
  CHECK(!order_control(integers, search(integers).plans.front().plan, 1));
}

TEST_CASE("every ninth recorded library result is explained as the table says", "[long]") {
  CHECK(check_recordings(9).size() > 5);
}

TEST_CASE("every recorded library result is explained, and the table has no other rows",
          "[sweep]") {
  const std::set<std::string_view> seen = check_recordings(1);
  for (const emulator::LibraryPlan& row : emulator::library_plans()) {
    INFO(row.kernel);
    CHECK(seen.contains(row.kernel));
  }
}

/// Every `stride`th product that a compiler made.
void check_compiled(std::size_t stride) {
  const std::vector<std::string> files = captures_in("tests/golden/compiled");
  REQUIRE(files.size() > 20);
  for (std::size_t i = 0; i < files.size(); i += stride) {
    const GemmCapture capture = emulator::read_gemm_capture(files[i]);
    check_explained(capture, search(capture));
  }
}

TEST_CASE("every eighth recorded product of XLA and torch.compile is explained") {
  check_compiled(8);
}

TEST_CASE("every recorded product of XLA and torch.compile is explained", "[sweep]") {
  check_compiled(1);
}

TEST_CASE("the shared library results are explained", "[shared]") {
  const char* const place = std::getenv("GUARDBIT_SHARED");
  const std::filesystem::path shared = place != nullptr ? place : "../shared";
  const std::vector<std::string> files = captures_in(shared / "captures" / "gemm");
  if (files.empty()) {
    std::cout << "SKIPPED: no recordings (GUARDBIT_SHARED or ../shared)\n";
    return;
  }
  for (const std::string& file : files) {
    const GemmCapture capture = emulator::read_gemm_capture(file);
    check_explained(capture, search(capture));
  }
}

TEST_CASE("a factor of an operand is rounded to its format before matrix units take it") {
  Random random(94);
  for (const char* const text :
       {"sm_90/wgmma.mma_async.sync.aligned.m64nNk16.f32.f16.f16 alpha=0.37:a",
        "sm_90/wgmma.mma_async.sync.aligned.m64nNk8.f32.tf32.tf32 alpha=0.37:b"}) {
    const GemmPlan plan = emulator::parse_plan(text, "test");
    const bool of_a = plan.epilogue.alpha_on == emulator::Epilogue::AlphaOn::a;
    const Format f = of_a ? formats::fp16 : formats::fp32;
    GemmProblem x;
    x.a = random_matrix(f, 1, 12, 40, random, -1, 1);
    x.b = random_matrix(f, 1, 40, 9, random, -1, 1);
    // The same by hand: the operand is multiplied, rounded, and then the factor is 1.
    GemmProblem scaled = x;
    emulator::CodeMatrix& operand = of_a ? scaled.a : scaled.b;
    for (std::int64_t i = 0; i < operand.size(); ++i)
      operand.set(i, emulator::scalar::encoded(f, emulator::scalar::rounded(f, 0.37) *
                                                      emulator::scalar::decoded(f, operand[i])));
    GemmPlan plain = plan;
    plain.epilogue.alpha = 1;
    plain.epilogue.alpha_on = emulator::Epilogue::AlphaOn::sum;
    const GemmCapture capture = recording_of(plan, x);
    CHECK(mismatches(capture, execute(plain, scaled)).empty());
    check_explained(capture, search(capture));
  }
}

TEST_CASE("a product of a machine is explained by its own instructions") {
  Random random(95);
  for (const std::string unit :
       {"rdna3/v_wmma_f32_16x16x16_f16", "rdna4/v_wmma_f32_16x16x16_f16_w32",
        "rdna4/v_wmma_f32_16x16x16_f16_w64", "cdna3/v_mfma_f32_16x16x16_f16",
        "sm_90/wgmma.mma_async.sync.aligned.m64nNk16.f32.f16.f16"}) {
    INFO(unit);
    GemmProblem x;
    x.a = random_matrix(formats::fp16, 1, 24, 96, random, -1, 1);
    x.b = random_matrix(formats::fp16, 1, 96, 24, random, -1, 1);
    GemmCapture capture = recording_of(emulator::parse_plan(unit + " d=fp32", "test"), x);
    capture.arch = unit.substr(0, unit.find('/'));
    const SearchResult result = search(capture);
    check_explained(capture, result);
    for (const emulator::PlanResult& found : result.plans)
      CHECK(to_text(found.plan).starts_with(unit.substr(0, unit.find('/') + 1)));
  }
}

void check_random_plans(std::uint64_t seed, int rounds) {
  Random random(seed);
  const std::vector<std::string> units = {
      "simt/fma.fp32",
      "sm_90/wgmma.mma_async.sync.aligned.m64nNk16.f32.f16.f16",
      "sm_90/wgmma.mma_async.sync.aligned.m64nNk16.f32.bf16.bf16",
      "sm_90/mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32",
      "sm_90/wgmma.mma_async.sync.aligned.m64nNk8.f32.tf32.tf32 input=rne",
      "sm_90/wgmma.mma_async.sync.aligned.m64nNk8.f32.tf32.tf32 input=rna"};
  const std::vector<std::string> cuts = {"",
                                         "split=3x64:ceil",
                                         "split=5x8:round_robin",
                                         "split=4x32:balanced:descending",
                                         "lanes=4x16:round_robin",
                                         "split=8x8:ceil:halves",
                                         "split=3x32:ceil:in_place",
                                         "stream_k=3x16x16x32",
                                         "stream_k=5x32x16x16:balanced:along_m",
                                         "lanes=2x32:ceil:adjacent",
                                         "residue_first=32"};
  const std::vector<std::string> ends = {"", "alpha=1.7 beta=0.3",
                                         "add=fma_addend alpha=0.7 beta=0.3", "add=rounded beta=1",
                                         "add=separate alpha=1.7 beta=-0.6"};
  for (int round = 0; round < rounds; ++round) {
    const std::string& unit = units[random.below(units.size())];
    const bool half = unit.find(".f16") != std::string::npos;
    const bool brain = unit.find(".bf16") != std::string::npos;
    const Format f = brain ? formats::bf16 : half ? formats::fp16 : formats::fp32;
    const std::string result = random.one_in(2) ? "fp32" : brain ? "bf16" : "fp16";
    const GemmPlan plan = emulator::parse_plan(unit + " " + cuts[random.below(cuts.size())] + " " +
                                                   ends[random.below(ends.size())] + " d=" + result,
                                               "test");
    GemmProblem x;
    const int k = random.between(100, 300);
    x.a = random_matrix(f, 1, 24, k, random, -1, 1);
    x.b = random_matrix(f, 1, k, 24, random, -1, 1);
    if (plan.epilogue.beta != 0) x.c = random_matrix(plan.epilogue.output, 1, 24, 24, random, 2, 5);
    GemmCapture capture = recording_of(plan, x);
    capture.tf32 = unit.find("tf32") != std::string::npos;
    if (!plan.stream_k.none())
      capture.metadata["grids"] = std::to_string(plan.stream_k.blocks) + "x1x1 of 128";
    INFO(to_text(plan) << " K = " << k);
    check_explained(capture, search(capture));
  }
}

TEST_CASE(
    "a result of a random plan is explained by that plan or one that cannot be told from it") {
  check_random_plans(91, 8);
}

TEST_CASE("results of many random plans are explained", "[sweep]") { check_random_plans(92, 200); }

TEST_CASE(
    "sums of FP64 by threads and blocks are found, and a few outputs are not called damaged") {
  Random random(93);
  GemmProblem x;
  x.a = random_matrix(formats::fp64, 1, 6, 400, random);
  x.b = random_matrix(formats::fp64, 1, 400, 1, random);
  const std::string unit = "simt/fma.fp64 lanes=32x1:round_robin:halves ";
  const auto of = [&](const char* split) {
    return recording_of(emulator::parse_plan(unit + split + " compute=fp64 d=fp64", "test"), x);
  };
  const GemmCapture capture = of("split=13x32:round_robin:by_four");
  check_explained(capture, search(capture));
  // Of outputs that a plan near theirs gives in part, by chance, no place is wrong.
  GemmCapture other = capture;
  for (const std::int64_t row : {0, 2, 3}) other.d.set(row, capture.d[row] ^ 1);
  const auto plan = search(capture).plans.front().plan;
  CHECK(!diagnose(other, plan, 1).looks_like_bug);
}

TEST_CASE("a plan that is executed on a large product ends when that is no longer wanted") {
  Random random(59);
  GemmProblem x;
  x.a = random_matrix(formats::fp16, 1, 512, 512, random);
  x.b = random_matrix(formats::fp16, 1, 512, 512, random);
  for (const char* const plan :
       {"simt/fma.fp16 d=fp32", "simt/fma.fp32 split=2x64:ceil d=fp32",
        "sm_90/wgmma.mma_async.sync.aligned.m64nNk16.f32.f16.f16 d=fp16"}) {
    CAPTURE(plan);
    CHECK_FALSE(formats::ends_before([] { return true; },
                                     [&] { execute(emulator::parse_plan(plan, "test"), x, 2); }));
  }
}

TEST_CASE("each plan is told once, a unit's own order of K before that of wide loads") {
  Random random(61);
  // Small whole numbers: any order of the sums fits.
  GemmProblem x;
  x.a = random_matrix(formats::e4m3, 1, 16, 64, random, 0, 0);
  x.b = random_matrix(formats::e4m3, 1, 64, 16, random, 0, 0);
  const GemmCapture capture =
      recording_of(emulator::parse_plan(
                       "sm_90/mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 d=fp32", "test"),
                   x);
  emulator::SearchOptions options;
  options.most_plans = 64;
  const SearchResult result = search_plans(capture, options);
  REQUIRE(result.explained());
  std::set<std::string> texts, plain;
  for (const emulator::PlanResult& found : result.plans) {
    CAPTURE(to_text(found.plan));
    CHECK(texts.insert(to_text(found.plan)).second);
    GemmPlan same = found.plan;
    same.loads = {};
    if (same == found.plan) CHECK(!plain.contains(to_text(same)));
    plain.insert(to_text(same));
  }
}

TEST_CASE("results are explained through ReLU, and scaled after they are rounded") {
  Random random(77);
  const std::string matrix_unit = "sm_90/wgmma.mma_async.sync.aligned.m64nNk16.f32.";
  for (const auto& [text, format] :
       {std::pair{std::string("simt/fma.fp32 split=3x32:ceil activation=relu d=fp32"),
                  formats::fp32},
        {matrix_unit + "f16.f16 activation=relu d=fp16", formats::fp16},
        {matrix_unit + "bf16.bf16 alpha=0.369140625:d d=bf16", formats::bf16},
        {matrix_unit + "f16.f16 alpha=0.37:d beta=1 activation=relu d=fp16", formats::fp16}}) {
    INFO(text);
    const GemmPlan plan = emulator::parse_plan(text, "test");
    CHECK(to_text(plan) == text);
    GemmProblem x;
    x.a = random_matrix(format, 1, 40, 96, random);
    x.b = random_matrix(format, 1, 96, 48, random);
    if (plan.epilogue.beta != 0) x.c = random_matrix(format, 1, 40, 48, random);
    const GemmCapture capture = recording_of(plan, x);
    const SearchResult result = search(capture);
    check_explained(capture, result);
    CHECK(result.plans.front().plan.epilogue.activation == plan.epilogue.activation);
    CHECK(result.plans.front().plan.epilogue.alpha_on == plan.epilogue.alpha_on);
  }
}

TEST_CASE("results are explained through smooth activations, in the form that they have") {
  Random random(79);
  const std::string matrix_unit = "sm_90/wgmma.mma_async.sync.aligned.m64nNk16.f32.";
  for (const auto& [text, asked, format] :
       {std::tuple{std::string("simt/fma.fp32 split=3x32:ceil activation=gelu_cuda12 d=fp32"),
                   "gelu", formats::fp32},
        {"simt/fma.fp32 activation=gelu_erfc d=fp32", "gelu", formats::fp32},
        {"simt/fma.fp32 alpha=0.37 activation=gelu d=fp32", "gelu", formats::fp32},
        {"simt/fma.fp32 activation=silu d=fp32", "silu", formats::fp32},
        {matrix_unit + "f16.f16 activation=gelu_erfc d=fp16", "gelu", formats::fp16},
        {matrix_unit + "f16.f16 via=fp16 activation=gelu_cuda12 d=fp16", "gelu", formats::fp16},
        {matrix_unit + "bf16.bf16 split=2x64:ceil activation=gelu_tanh d=bf16", "gelu_tanh",
         formats::bf16}}) {
    INFO(text);
    const GemmPlan plan = emulator::parse_plan(text, "test");
    CHECK(to_text(plan) == text);
    GemmProblem x;
    x.a = random_matrix(format, 1, 40, 96, random, -2, 1);
    x.b = random_matrix(format, 1, 96, 48, random, -2, 1);
    GemmCapture capture = recording_of(plan, x);
    capture.activation = *formats::find_word<emulator::Activation>(asked);
    CHECK(judge(capture).judgement.verdict == emulator::Verdict::valid_rounding);
    const SearchResult result = search(capture);
    check_explained(capture, result);
    CHECK(result.plans.front().plan.epilogue.activation == plan.epilogue.activation);
  }
}

TEST_CASE("what did not go through the smooth activation that was asked for is wrong", "[long]") {
  Random random(80);
  GemmProblem x;
  x.a = random_matrix(formats::fp32, 1, 40, 96, random, -2, 1);
  x.b = random_matrix(formats::fp32, 1, 96, 48, random, -2, 1);
  const auto of = [&](const std::string& activation) {
    return recording_of(
        emulator::parse_plan("simt/fma.fp32 activation=" + activation + " d=fp32", "test"), x);
  };
  for (const auto& [done, asked, name] : {std::tuple{"none", "gelu", "none"},
                                          {"relu", "gelu", "relu"},
                                          {"silu", "gelu", "silu"},
                                          {"gelu", "silu", "gelu"},
                                          {"gelu_cuda12", "relu", "none"},
                                          {"gelu_tanh", "none", "gelu_tanh"}}) {
    CAPTURE(done, asked);
    GemmCapture capture = of(done);
    capture.activation = *formats::find_word<emulator::Activation>(asked);
    const emulator::Judgement judgement = judge(capture).judgement;
    CHECK(judgement.verdict == emulator::Verdict::wrong);
    REQUIRE(judgement.faults.size() == 1);
    CHECK(judgement.faults[0].kind == emulator::FaultKind::activation);
    CHECK(judgement.faults[0].name == name);
  }
  // Other faults are named through the function.
  GemmCapture capture = of("gelu");
  capture.activation = emulator::Activation::gelu;
  GemmCapture damaged = capture;
  for (std::int64_t row = 16; row < 32; ++row)
    for (std::int64_t column = 8; column < 40; ++column)
      damaged.d.set(damaged.d.index(0, row, column), 0);
  const emulator::Judgement blank = judge(damaged).judgement;
  CHECK(blank.verdict == emulator::Verdict::wrong);
  REQUIRE(blank.faults.size() == 1);
  CHECK(blank.faults[0].kind == emulator::FaultKind::not_written);
  GemmProblem without = x;
  for (std::int64_t row = 0; row < without.a.rows; ++row)
    for (std::int64_t k = 16; k < 24; ++k) without.a.set(without.a.index(0, row, k), 0);
  for (const std::string activation : {"relu", "gelu_cuda12", "gelu_tanh", "silu"}) {
    CAPTURE(activation);
    const std::string unit = "simt/fma.fp32 activation=" + activation;
    const auto fault_of = [&](const std::string& plan, const GemmProblem& computed) {
      GemmCapture wrong = recording_of(emulator::parse_plan(plan, "test"), computed);
      wrong.problem = x;
      wrong.alpha = 1;
      const emulator::Judgement judgement = judge(wrong).judgement;
      CHECK(judgement.verdict == emulator::Verdict::wrong);
      REQUIRE(judgement.faults.size() == 1);
      return judgement.faults[0].kind;
    };
    CHECK(fault_of(unit + " d=fp32", without) == emulator::FaultKind::missing_k);
    CHECK(fault_of(unit + " alpha=1.5 d=fp32", x) == emulator::FaultKind::alpha);
  }
  // A plan is found for what was not asked for.
  GemmCapture asked_without = of("gelu_cuda12");
  asked_without.activation = {};
  const emulator::Judgement unasked = judge(asked_without).judgement;
  REQUIRE(unasked.faults.size() == 1);
  CHECK(unasked.faults[0].name == "gelu");
  const auto mended = emulator::mended(asked_without, unasked);
  REQUIRE(mended);
  CHECK(search(mended->capture).plans.front().plan.epilogue.activation ==
        emulator::Activation::gelu_cuda12);
}

/// FP32 numbers that BF16 holds.
void widen_from_bf16(emulator::CodeMatrix& matrix) {
  for (std::int64_t i = 0; i < matrix.size(); ++i) matrix.set(i, matrix[i] & 0xffff0000);
}

TEST_CASE("what compilers make of products is found among few plans", "[long]") {
  Random random(79);
  const std::string tf32 = "sm_90/wgmma.mma_async.sync.aligned.m64nNk8.f32.tf32.tf32 ";
  const std::string bf16 = "sm_90/wgmma.mma_async.sync.aligned.m64nNk16.f32.bf16.bf16 ";
  struct Product {
    std::string plan;
    int m, n, k;
    bool widened = false;
  };
  for (const Product& x :
       {// Reductions of products with a vector.
        Product{"simt/mul_add.fp32 products=tree lanes=32x4:round_robin:halves "
                "split=4x128:round_robin:halves d=fp32",
                48, 1, 1000},
        {"simt/mul_add.fp32 products=tree lanes=8x1:round_robin:halves "
         "split=8x8:round_robin:halves alpha=0.37:a d=fp32",
         1, 48, 300},
        {"simt/mul_add.fp32 lanes=32x2:round_robin:halves split=8x64:round_robin:halves d=fp32", 1,
         48, 2000},
        {"simt/mul_add.bf16 products=tree lanes=32x1:round_robin:halves d=fp32", 48, 1, 500},
        // Pieces of operands, where parts of K are shorter than a tile.
        {tf32 + "input=rna/rz:2x2:run12 promote=12 split=8x12:ceil d=fp32", 40, 24, 72},
        {bf16 + "input=rne:2x2:run40:b_first promote=40 split=16x40:ceil d=fp32", 40, 40, 640},
        {bf16 + "input=rne:3x3:run32 promote=32 lanes=4x32:ceil:adjacent "
                "split=8x32:round_robin:halves:groups2 d=fp32",
         40, 24, 1000},
        // The last part of K is empty.
        {tf32 + "lanes=2x24:ceil:adjacent split=4x24:round_robin:halves:groups2 d=fp32", 40, 24,
         160},
        // One operand had 16 bits.
        {tf32 + "input=rna loads=8x2:1 split=16x80:ceil d=fp32", 40, 24, 1280, true},
        {tf32 + "split=16x64:ceil alpha=0.37:a d=fp32", 40, 24, 1000}}) {
    INFO(x.plan);
    const GemmPlan plan = emulator::parse_plan(x.plan, "test");
    CHECK(to_text(plan) == x.plan);
    GemmProblem problem;
    problem.a = random_matrix(formats::fp32, 1, x.m, x.k, random);
    problem.b = random_matrix(formats::fp32, 1, x.k, x.n, random);
    if (x.widened) widen_from_bf16(problem.a);
    GemmCapture capture = recording_of(plan, problem);
    capture.tf32 = x.plan.starts_with(tf32);
    emulator::SearchOptions options;
    options.most_plans = 1;
    const SearchResult result = search_plans(capture, options);
    check_explained(capture, result);
    CHECK(result.tried < 6000);
  }
}

TEST_CASE("products with a vector may be rounded to a narrower format before they are added") {
  Random random(80);
  GemmProblem x;
  x.a = random_matrix(formats::fp32, 1, 48, 200, random);
  x.b = random_matrix(formats::fp32, 1, 200, 1, random);
  const GemmCapture capture =
      recording_of(emulator::parse_plan("simt/mul_add.bf16 d=fp32", "test"), x);
  const emulator::Judgement judged = judge(capture).judgement;
  CHECK(judged.verdict == emulator::Verdict::valid_rounding);
  REQUIRE(judged.faults.size() == 2);
  CHECK(judged.faults[0].kind == emulator::FaultKind::converted_input);
  CHECK(judged.faults[1].kind == emulator::FaultKind::narrow_accumulator);
  CHECK(judged.faults[1].name == "bf16");
}

TEST_CASE("chains that begin with C or with the bias are found") {
  Random random(79);
  const std::string matrix_unit = "sm_90/wgmma.mma_async.sync.aligned.m64n";
  for (const auto& [text, format, of_c] :
       {std::tuple{std::string("simt/fma.fp32 add=initial d=fp32"), formats::fp32, false},
        {"simt/fma.fp32 add=initial beta=0.37 activation=relu d=fp32", formats::fp32, true},
        {matrix_unit + "Nk8.f32.tf32.tf32 input=rz add=initial beta=1 d=fp32", formats::fp32, true},
        {matrix_unit + "Nk16.f32.bf16.bf16 add=initial d=fp32", formats::bf16, false},
        {matrix_unit + "Nk16.f32.f16.f16 add=initial alpha=0.37:a beta=1 d=fp32", formats::fp16,
         true}}) {
    INFO(text);
    const GemmPlan plan = emulator::parse_plan(text, "test");
    CHECK(to_text(plan) == text);
    GemmProblem x;
    x.a = random_matrix(format, 1, 40, 24, random, -1, 1);
    x.b = random_matrix(format, 1, 24, 48, random, -1, 1);
    (of_c ? x.c : x.bias) = random_matrix(formats::fp32, 1, of_c ? 40 : 1, 48, random, 2, 4);
    const GemmCapture capture = recording_of(plan, x);
    const SearchResult result = search(capture);
    check_explained(capture, result);
    CHECK(result.plans.front().plan == plan);
  }
}

TEST_CASE("sums that lean to zero are of matrix units, others of multiply-adds") {
  Random random(80);
  GemmProblem x;
  x.a = random_matrix(formats::fp16, 1, 24, 512, random, -1, 1);
  x.b = random_matrix(formats::fp16, 1, 512, 24, random, -1, 1);
  x.bias = random_matrix(formats::fp32, 1, 1, 24, random, -1, 1);
  for (const std::string unit :
       {"simt/fma.fp32", "sm_90/wgmma.mma_async.sync.aligned.m64nNk16.f32.f16.f16"}) {
    const GemmCapture capture =
        recording_of(emulator::parse_plan(unit + " split=4x64:ceil d=fp32", "test"), x);
    const GemmPlan likely = emulator::candidates_for(capture).units.front();
    CHECK(likely.unit.arch + "/" + likely.unit.instruction == unit);
  }
}

TEST_CASE("operands rounded with ties away from zero leave a result right") {
  Random random(81);
  GemmProblem x;
  x.a = random_matrix(formats::fp32, 1, 20, 64, random, -8, -6);
  x.b = random_matrix(formats::fp32, 1, 64, 20, random, -1, 1);
  // One element of each row, halfway between numbers of TF32, is larger than all others.
  for (std::int64_t i = 0; i < 20; ++i) x.a.set(x.a.index(0, i, 7), 0x44801000);
  const GemmCapture capture = recording_of(
      emulator::parse_plan("sm_90/wgmma.mma_async.sync.aligned.m64nNk8.f32.tf32.tf32 input=rna",
                           "test"),
      x);
  CHECK(judge(capture).judgement.verdict == emulator::Verdict::valid_rounding);
  check_explained(capture, search(capture));
}

TEST_CASE("an instruction's recording is explained by a plan of the search, not by the nearest") {
  const SearchResult result = search(emulator::read_gemm_capture(
      "tests/golden/mma.sync/mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32.tiny.safetensors"));
  REQUIRE(result.explained());
  // The search stops where a plan is exact; of the nearest it reports more.
  CHECK(result.plans.size() <= 4);
  for (const emulator::PlanResult& x : result.plans)
    CHECK(x.plan.epilogue.addition == emulator::Epilogue::Addition::initial);
}

TEST_CASE("what a result through ReLU cannot hold is wrong") {
  Random random(78);
  GemmProblem x;
  x.a = random_matrix(formats::fp32, 1, 40, 96, random);
  x.b = random_matrix(formats::fp32, 1, 96, 48, random);
  const GemmCapture capture =
      recording_of(emulator::parse_plan("simt/fma.fp32 activation=relu d=fp32", "test"), x);
  CHECK(judge(capture).judgement.verdict == emulator::Verdict::valid_rounding);

  GemmCapture without = recording_of(emulator::parse_plan("simt/fma.fp32 d=fp32", "test"), x);
  CHECK(judge(without).judgement.verdict == emulator::Verdict::valid_rounding);
  without.activation = emulator::Activation::relu;
  const emulator::Judgement negative = judge(without).judgement;
  CHECK(negative.verdict == emulator::Verdict::wrong);
  REQUIRE(negative.faults.size() == 1);
  CHECK(negative.faults[0].kind == emulator::FaultKind::activation);
  CHECK(negative.faults[0].name == "none");

  GemmCapture asked_without = capture;
  asked_without.activation = {};
  const emulator::Judgement unasked = judge(asked_without).judgement;
  CHECK(unasked.verdict == emulator::Verdict::wrong);
  REQUIRE(unasked.faults.size() == 1);
  CHECK(unasked.faults[0].name == "relu");
  const auto mended = emulator::mended(asked_without, unasked);
  REQUIRE(mended);
  CHECK(search(mended->capture).explained());

  GemmCapture unwritten = capture;
  for (std::int64_t i = 16; i < 32; ++i)
    for (std::int64_t j = 16; j < 32; ++j) unwritten.d.set(unwritten.d.index(0, i, j), 0);
  const emulator::Judgement blank = judge(unwritten).judgement;
  CHECK(blank.verdict == emulator::Verdict::wrong);
  REQUIRE(!blank.faults.empty());
  CAPTURE(blank.faults[0].text);
  CHECK(blank.faults[0].kind == emulator::FaultKind::not_written);
}

TEST_CASE("a result that is no product of the operands is not explained") {
  Random random(92);
  GemmProblem x;
  x.a = random_matrix(formats::fp16, 1, 16, 64, random);
  x.b = random_matrix(formats::fp16, 1, 64, 16, random);
  GemmCapture capture =
      recording_of(emulator::parse_plan(
                       "sm_90/wgmma.mma_async.sync.aligned.m64nNk16.f32.f16.f16 d=fp16", "test"),
                   x);
  capture.d = random_matrix(formats::fp16, 1, 16, 16, random);
  const SearchResult result = search(capture);
  CHECK(!result.explained());
  REQUIRE(!result.plans.empty());
  CHECK(result.plans.front().mismatches > 200);
  CHECK(!diagnose(capture, result.plans.front().plan, 0).looks_like_bug);
}

}  // namespace
}  // namespace guardbit::tests
