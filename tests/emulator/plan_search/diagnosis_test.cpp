#include "emulator/plan_search/diagnosis.hpp"

#include <bit>
#include <string>

#include "emulator/faults/judge_capture.hpp"
#include "emulator/faults/mended.hpp"
#include "emulator/gemm/gemm.hpp"
#include "emulator/plan_search/plan_search.hpp"
#include "tests/catch.hpp"
#include "tests/emulator/gemm/gemm_inputs.hpp"

namespace guardbit::tests {
namespace {

using emulator::GemmCapture;
using emulator::GemmPlan;
using emulator::GemmProblem;
using emulator::SearchResult;

/// The first finding. Where the rest of the problem, or the mended one, can be searched, a plan
/// must give it.
std::string finding_of(const GemmCapture& capture) {
  const emulator::CaptureJudgement judged = emulator::judge(capture);
  if (judged.judgement.verdict == emulator::Verdict::wrong) {
    if (const auto mended = emulator::mended(capture, judged.judgement))
      CHECK(search(mended->capture).explained());
    return judged.judgement.faults.front().text;
  }
  const SearchResult result = search(capture);
  CHECK(!result.explained());
  if (result.plans.empty()) return "no plan";
  return diagnose(capture, result.plans.front().plan, 0).findings.front();
}

/// A result of 96 x 96 x 200, or with other columns, with something done to it.
struct Damaged {
  std::int64_t columns;
  GemmCapture capture;
  GemmPlan plan = emulator::parse_plan(
      "sm_90/wgmma.mma_async.sync.aligned.m64nNk16.f32.f16.f16 split=2x64:ceil d=fp32", "test");
  emulator::CodeMatrix right;

  explicit Damaged(std::int64_t columns_ = 96) : columns(columns_) {
    Random random(93);
    GemmProblem x;
    x.a = random_matrix(formats::fp16, 1, 96, 200, random, -2, 1);
    x.b = random_matrix(formats::fp16, 1, 200, columns, random, -2, 1);
    capture = recording_of(plan, x);
    right = capture.d;
  }
  void put(std::int64_t i, std::int64_t j, std::uint64_t code) {
    capture.d.set(i * columns + j, code);
  }
  template <class Source>
  void put_tile(std::int64_t row, std::int64_t column, Source source) {
    for (std::int64_t i = 0; i < 16; ++i)
      for (std::int64_t j = 0; j < 16; ++j) put(row + i, column + j, source(i, j));
  }
  /// What the plan makes of the product without those elements of K.
  emulator::CodeMatrix without(std::int64_t begin, std::int64_t end) const {
    GemmProblem cut = capture.problem;
    for (std::int64_t i = 0; i < 96; ++i)
      for (std::int64_t k = begin; k < end; ++k) cut.a.set(i * 200 + k, 0);
    return execute(plan, cut);
  }
  std::string finding() const { return finding_of(capture); }
};

bool says(const std::string& text, const std::string& what) {
  INFO(text);
  const bool found = text.find(what) != std::string::npos;
  CHECK(found);
  return found;
}

TEST_CASE("planted bugs are named", "[long]") {
  Damaged x;
  SECTION("one element off by an ulp") {
    x.put(41, 7, x.right(0, 41, 7) + 1);
    says(x.finding(), "row 41, column 7: a single element 1 ulp off");
  }
  SECTION("a transposed tile") {
    x.put_tile(32, 48, [&](auto i, auto j) { return x.right(0, 32 + j, 48 + i); });
    says(x.finding(), "rows 32 to 47, columns 48 to 63 of D are transposed");
  }
  SECTION("a swapped tile") {
    x.put_tile(32, 48, [&](auto i, auto j) { return x.right(0, 64 + i, 16 + j); });
    says(
        x.finding(),
        "rows 32 to 47, columns 48 to 63 of D hold what belongs to rows 64 to 79, columns 16 to 31");
  }
  SECTION("a tile one row off") {
    x.put_tile(32, 48, [&](auto i, auto j) { return x.right(0, 33 + i, 48 + j); });
    says(x.finding(), "rows 32 to 47, columns 48 to 63 of D hold what belongs to rows 33 to 48");
  }
  SECTION("another factor in one tile") {
    x.put_tile(32, 48, [&](auto i, auto j) {
      const auto half =
          static_cast<float>(0.5 * value_of(formats::fp32, x.right(0, 32 + i, 48 + j)));
      return std::uint64_t{std::bit_cast<std::uint32_t>(half)};
    });
    says(x.finding(), "in rows 32 to 47, columns 48 to 63: the product has the factor 0.5");
  }
  SECTION("elements of K missed everywhere") {
    x.capture.d = x.without(187, 200);
    says(x.finding(), "the products of k = 187 to 199, the last 13 of 200, are missing");
    x.capture.d = x.without(64, 96);
    says(x.finding(), "the products of k = 64 to 95 (tile 2 of 7 tiles of 32) are missing");
  }
  SECTION("a missed K tail of one tile") {
    const emulator::CodeMatrix d = x.without(192, 200);
    x.put_tile(16, 80, [&](auto i, auto j) { return d(0, 16 + i, 80 + j); });
    says(
        x.finding(),
        "in rows 16 to 31, columns 80 to 95: the products of k = 192 to 199, the last 8 of 200, are missing");
  }
  SECTION("a stale accumulator") {
    x.put_tile(32, 48, [&](auto i, auto j) {
      const float sum = static_cast<float>(value_of(formats::fp32, x.right(0, 32 + i, 48 + j)) +
                                           value_of(formats::fp32, x.right(0, i, 16 + j)));
      return std::uint64_t{std::bit_cast<std::uint32_t>(sum)};
    });
    says(
        x.finding(),
        "rows 32 to 47, columns 48 to 63 of D hold, besides their own sum, that of rows 0 to 15, columns 16 to 31");
  }
  SECTION("a tile that was not written") {
    x.put_tile(32, 48, [](auto, auto) { return std::uint64_t{0}; });
    says(x.finding(), "rows 32 to 47, columns 48 to 63 of D are zero");
  }
  SECTION("a row of NaNs") {
    for (std::int64_t j = 0; j < 96; ++j) x.put(50, j, 0x7fffffff);
    says(x.finding(), "row 50, columns 0 to 95 of D are NaN");
  }
  SECTION("the whole result transposed") {
    for (std::int64_t i = 0; i < 96; ++i)
      for (std::int64_t j = 0; j < 96; ++j) x.put(i, j, x.right(0, j, i));
    says(x.finding(), "D is transposed");
  }
  SECTION("a partial sum that one tile did not get") {
    const emulator::CodeMatrix d = x.without(0, 128);
    x.put_tile(16, 80, [&](auto i, auto j) { return d(0, 16 + i, 80 + j); });
    says(x.finding(), "in rows 16 to 31, columns 80 to 95: the products of k = 0 to 127");
  }
  SECTION("another alpha") {
    GemmPlan plan = x.plan;
    plan.epilogue.alpha = 0.75;
    x.capture.d = execute(plan, x.capture.problem);
    says(x.finding(), "the product has the factor 0.75, not alpha = 1");
  }
}

TEST_CASE("planted bugs beside C and a bias are named") {
  Random random(94);
  GemmProblem problem;
  problem.a = random_matrix(formats::fp16, 1, 64, 160, random, -2, 1);
  problem.b = random_matrix(formats::fp16, 1, 160, 64, random, -2, 1);
  problem.c = random_matrix(formats::fp32, 1, 64, 64, random, 2, 5);
  const GemmPlan plan = emulator::parse_plan(
      "sm_90/wgmma.mma_async.sync.aligned.m64nNk16.f32.f16.f16 alpha=0.7 beta=0.3 d=fp32", "test");
  GemmCapture capture = recording_of(plan, problem);
  const emulator::CodeMatrix right = capture.d;
  const auto put_tile = [&](auto source) {
    for (std::int64_t i = 16; i < 32; ++i)
      for (std::int64_t j = 40; j < 56; ++j) capture.d.set(i * 64 + j, source(i, j));
  };
  const auto finding = [&] { return finding_of(capture); };
  SECTION("C left out of a tile") {
    GemmPlan without = plan;
    without.epilogue.beta = 0;
    const emulator::CodeMatrix d = execute(without, problem);
    put_tile([&](auto i, auto j) { return d(0, i, j); });
    says(finding(), "in rows 16 to 31, columns 40 to 55: C is not added");
  }
  SECTION("C left out everywhere") {
    GemmPlan without = plan;
    without.epilogue.beta = 0;
    capture.d = execute(without, problem);
    says(finding(), "C is not added");
  }
  SECTION("alpha left out of a tile") {
    GemmPlan without = plan;
    without.epilogue.alpha = 1;
    const emulator::CodeMatrix d = execute(without, problem);
    put_tile([&](auto i, auto j) { return d(0, i, j); });
    says(finding(),
         "in rows 16 to 31, columns 40 to 55: the product has the factor 1, not alpha = 0.7");
  }
  SECTION("a stale accumulator") {
    GemmPlan sums = plan;
    sums.epilogue.beta = 0;
    const emulator::CodeMatrix d = execute(sums, problem);
    put_tile([&](auto i, auto j) {
      const float sum = static_cast<float>(value_of(formats::fp32, right(0, i, j)) +
                                           value_of(formats::fp32, d(0, i + 16, j - 40)));
      return std::uint64_t{std::bit_cast<std::uint32_t>(sum)};
    });
    says(
        finding(),
        "rows 16 to 31, columns 40 to 55 of D hold, besides their own sum, that of rows 32 to 47, columns 0 to 15");
  }
}

TEST_CASE("a right result is not called wrong") {
  Random random(95);
  for (const char* const plan :
       {"sm_90/wgmma.mma_async.sync.aligned.m64nNk16.f32.f16.f16 split=2x64:ceil d=fp16",
        "sm_90/wgmma.mma_async.sync.aligned.m64nNk16.f16.f16.f16 compute=fp16 d=fp16",
        "simt/fma.fp16 compute=fp16 d=fp16"}) {
    GemmProblem problem;
    problem.a = random_matrix(formats::fp16, 1, 12, 256, random, -6, 1);
    problem.b = random_matrix(formats::fp16, 1, 256, 12, random, -6, 1);
    const auto judged = emulator::judge(recording_of(emulator::parse_plan(plan, "test"), problem));
    for (const emulator::Fault& fault : judged.judgement.faults) UNSCOPED_INFO(plan << fault.text);
    CHECK(judged.judgement.verdict != emulator::Verdict::wrong);
  }
}

TEST_CASE("tiles at an edge whose sums were added in another order are no bug") {
  Damaged x;
  const emulator::CodeMatrix other = execute(
      emulator::parse_plan(
          "sm_90/wgmma.mma_async.sync.aligned.m64nNk16.f32.f16.f16 split=3x32:balanced d=fp32",
          "test"),
      x.capture.problem);
  const auto put = [&](std::int64_t row, std::int64_t rows, std::int64_t column) {
    for (std::int64_t i = row; i < row + rows; ++i)
      for (std::int64_t j = column; j < column + 8; ++j) x.put(i, j, other(0, i, j));
    CHECK(emulator::judge(x.capture).judgement.verdict != emulator::Verdict::wrong);
    return diagnose(x.capture, x.plan, 1);
  };
  SECTION("the last columns") {
    const emulator::Diagnosis diagnosis = put(0, 96, 88);
    CHECK(!diagnosis.looks_like_bug);
    says(diagnosis.findings.front(),
         "in another order, as libraries do in tiles that are not full");
  }
  SECTION("what tiles leave of a D of 90 columns, one element or one column") {
    Damaged y(90);
    const auto put_rows = [&](std::int64_t first, std::int64_t last) {
      for (std::int64_t i = first; i < last; ++i) y.put(i, 88, y.right(0, i, 88) ^ 8);
      return diagnose(y.capture, y.plan, 1);
    };
    const emulator::Diagnosis one = put_rows(2, 3);
    CHECK(!one.looks_like_bug);
    says(one.findings.front(),
         "the sums of row 2, column 88 were added in another order, as libraries do in tiles that "
         "are not full");
    CHECK(!put_rows(0, 96).looks_like_bug);
  }
  SECTION("NaNs in the place of infinities") {
    Damaged y;
    y.capture.problem.a.set(200 * 5, formats::infinity_code(formats::fp16));
    y.capture.d = execute(y.plan, y.capture.problem);
    for (const std::int64_t j : {3, 4, 70}) y.put(5, j, 0x7fffffff);
    const emulator::Diagnosis diagnosis = diagnose(y.capture, y.plan, 1);
    CHECK(!diagnosis.looks_like_bug);
    says(diagnosis.findings.front(), "as sums that overflow in another order give them");
  }
  SECTION("a few elements few ulp off") {
    for (const std::int64_t j : {40, 41, 42}) x.put(32, j, x.capture.d(0, 32, j) ^ 2);
    const emulator::Diagnosis diagnosis = diagnose(x.capture, x.plan, 1);
    CHECK(!diagnosis.looks_like_bug);
    says(
        diagnosis.findings.front(),
        "the sums of row 32, columns 40 to 42 differ by at most 2 ulp, as sums in another order do");
  }
  SECTION("one tile alone, as exact as the rest") {
    const emulator::Diagnosis diagnosis = put(32, 16, 40);
    CHECK(!diagnosis.looks_like_bug);
    says(diagnosis.findings.front(),
         "rows 32 to 47, columns 40 to 47: as near to the exact result as the outputs that agree; "
         "the sums there were added in another order");
  }
  SECTION("one tile alone, further from the exact result than the rest, is one") {
    for (std::int64_t i = 32; i < 48; ++i)
      for (std::int64_t j = 40; j < 48; ++j) x.put(i, j, other(0, i, j) ^ 0x100);
    CHECK(emulator::judge(x.capture).judgement.verdict != emulator::Verdict::wrong);
    const emulator::Diagnosis diagnosis = diagnose(x.capture, x.plan, 1);
    CHECK(diagnosis.looks_like_bug);
    says(diagnosis.findings.front(), "rows 32 to 47, columns 40 to 47: differs by up to ");
  }
}

TEST_CASE("one element of two rows that was added in another order is no bug") {
  Random random(96);
  GemmCapture capture;
  capture.problem.a = random_matrix(formats::fp32, 1, 2, 600, random, -2, 1);
  capture.problem.b = random_matrix(formats::fp32, 1, 600, 130, random, -2, 1);
  const GemmPlan plan = emulator::parse_plan("simt/fma.fp32 d=fp32", "test");
  capture.d = execute(plan, capture.problem);
  const emulator::CodeMatrix other = execute(
      emulator::parse_plan("simt/fma.fp32 split=4x150:ceil d=fp32", "test"), capture.problem);
  capture.d.set(130 + 1, other(0, 1, 1));
  REQUIRE(capture.d(0, 1, 1) != execute(plan, capture.problem)(0, 1, 1));
  const emulator::Diagnosis diagnosis = diagnose(capture, plan, 1);
  CHECK(!diagnosis.looks_like_bug);
  says(diagnosis.findings.front(), "row 1, column 1: as near to the exact result as");
  capture.d.set(130 + 1, other(0, 1, 1) ^ 0x4000);
  CHECK(diagnose(capture, plan, 1).looks_like_bug);
}

TEST_CASE("sums of FP64 numbers are not said to be rounded once") {
  Random random(97);
  GemmCapture capture;
  capture.problem.a = random_matrix(formats::fp64, 1, 20, 60, random, -2, 1);
  capture.problem.b = random_matrix(formats::fp64, 1, 60, 20, random, -2, 1);
  capture.d =
      execute(emulator::parse_plan("simt/fma.fp64 compute=fp64 split=7x9:ceil d=fp64", "test"),
              capture.problem);
  CHECK(emulator::judge(capture).judgement.verdict == emulator::Verdict::valid_rounding);
}

}  // namespace
}  // namespace guardbit::tests
