#include <cmath>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "emulator/gemm/atlas/atlas.hpp"
#include "emulator/gemm/gemm.hpp"
#include "tests/catch.hpp"
#include "tests/emulator/gemm/gemm_inputs.hpp"

// Calls of which a library may choose any kernel without changing a bit: docs/ATLAS.md states the
// classes that are tried here, each beside neighbours that do change bits.
namespace guardbit::tests {
namespace {

using emulator::CodeMatrix;
using emulator::GemmProblem;

const std::string f16 = "sm_90/wgmma.mma_async.sync.aligned.m64nNk16.f32.f16.f16";
const std::string tf32 = "sm_90/wgmma.mma_async.sync.aligned.m64nNk8.f32.tf32.tf32";

/// The plans that the atlas knows of a product of that unit and K without lanes: whole, with an
/// incomplete tile first, cut.
std::vector<std::string> plans_of(const std::string& unit) {
  std::vector<std::string> plans;
  for (const char* const keys :
       {"", " residue_first=32", " residue_first=64", " residue_first=128", " split=2x64:ceil",
        " split=5x64:ceil", " split=3x64:round_robin", " split=4x64:ceil:in_place"})
    plans.push_back(unit + keys + " d=fp32");
  return plans;
}

GemmProblem problem_of(const Format& format, std::int64_t k, Random& random) {
  GemmProblem x;
  x.a = random_matrix(format, 1, 9, k, random, -8, 8);
  x.b = random_matrix(format, 1, k, 11, random, -8, 8);
  return x;
}

/// Plans whose result differs from the first one's.
std::vector<std::string> unlike_the_first(const std::vector<std::string>& plans,
                                          const GemmProblem& x) {
  std::vector<std::string> unlike;
  CodeMatrix first;
  for (const std::string& text : plans) {
    const CodeMatrix d = execute(emulator::parse_plan(text, "test"), x);
    if (first.empty()) first = d;
    bool is_equal = true;
    for (std::int64_t i = 0; i < d.rows; ++i)
      for (std::int64_t j = 0; j < d.columns; ++j)
        is_equal = is_equal && d(0, i, j) == first(0, i, j);
    if (!is_equal) unlike.push_back(text);
  }
  return unlike;
}

TEST_CASE("up to 32 elements of K, where every kernel has one tile, all plans are one") {
  Random random(1);
  for (const std::int64_t k : {1, 7, 8, 13, 16, 17, 31, 32}) {
    INFO(k);
    CHECK(unlike_the_first(plans_of(f16), problem_of(formats::fp16, k, random)).empty());
    CHECK(unlike_the_first(plans_of(tf32), problem_of(formats::fp32, k, random)).empty());
  }
  // A kernel whose tile is incomplete, and one that cuts after 64 elements, are others beyond.
  CHECK(unlike_the_first(plans_of(f16), problem_of(formats::fp16, 33, random)) ==
        std::vector{f16 + " residue_first=32 d=fp32"});
  CHECK(unlike_the_first(plans_of(f16), problem_of(formats::fp16, 200, random)).size() == 7);
}

TEST_CASE("where K is whole instructions no tile is incomplete first") {
  Random random(2);
  for (const std::int64_t k : {48, 128, 144, 272, 1040}) {
    INFO(k);
    const std::vector<std::string> plans = plans_of(f16);
    const std::vector<std::string> uncut(plans.begin(), plans.begin() + 4);
    CHECK(unlike_the_first(uncut, problem_of(formats::fp16, k, random)).empty());
    CHECK(unlike_the_first(uncut, problem_of(formats::fp16, k + 150, random)).size() == 3);
    // Cuts after 64 elements are others.
    const std::size_t cuts = k <= 64 ? 0 : plans.size() - uncut.size();
    CHECK(unlike_the_first(plans, problem_of(formats::fp16, k, random)).size() == cuts);
  }
}

TEST_CASE("where every sum is exact all plans of all units are one") {
  Random random(3);
  GemmProblem x;
  x.a = random_matrix(formats::fp16, 1, 9, 700, random, 0, 2);
  x.b = random_matrix(formats::fp16, 1, 700, 11, random, 0, 2);
  const auto to_whole_numbers = [](CodeMatrix& m) {
    for (std::int64_t i = 0; i < m.rows; ++i)
      for (std::int64_t j = 0; j < m.columns; ++j) {
        const double whole = std::trunc(value_of(m.format, m(0, i, j)));
        m.set(m.index(0, i, j), nearest_code(m.format, whole));
      }
  };
  to_whole_numbers(x.a);
  to_whole_numbers(x.b);
  std::vector<std::string> plans = plans_of(f16);
  for (const char* const keys :
       {"", " lanes=32x4:round_robin:halves", " lanes=16x1:round_robin promote=32",
        " split=7x8:round_robin", " lanes=256x1:round_robin:halves:groups2 split=2x256:ceil"})
    plans.push_back(std::string("simt/fma.fp32") + keys + " d=fp32");
  CHECK(unlike_the_first(plans, x).empty());
  CHECK(unlike_the_first(plans, problem_of(formats::fp16, 700, random)).size() == plans.size() - 1);
}

TEST_CASE("of one element of K all plans are one, whose product is rounded once") {
  Random random(4);
  const auto bits_of = [](const Format& format, const std::string& d) {
    std::vector<std::string> plans;
    for (const char* const keys : {"", " lanes=32x4:round_robin:halves",
                                   " lanes=16x1:round_robin promote=32", " split=2x8:round_robin"})
      plans.push_back(std::string("simt/fma.fp32") + keys + " d=" + d);
    if (format == formats::fp16) {
      plans.push_back(f16 + " d=" + d);
      plans.push_back("sm_90/mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 d=" + d);
    }
    if (format == formats::bf16)
      plans.push_back("sm_90/mma.sync.aligned.m16n8k8.row.col.f32.bf16.bf16.f32 d=" + d);
    return plans;
  };
  const std::vector<std::pair<Format, std::string>> numbers = {
      {formats::fp32, "fp32"}, {formats::fp16, "fp16"}, {formats::bf16, "bf16"}};
  for (const auto& [format, name] : numbers) {
    INFO(name);
    GemmProblem x = problem_of(format, 1, random);
    // Products that are zero, of either sign.
    x.a.set(x.a.index(0, 2, 0), nearest_code(format, 0));
    x.b.set(x.b.index(0, 0, 3), nearest_code(format, 0));
    CHECK(unlike_the_first(bits_of(format, name), x).empty());
    const CodeMatrix d = execute(emulator::parse_plan(bits_of(format, name).back(), "test"), x);
    int wrong = 0;
    for (std::int64_t i = 0; i < d.rows; ++i)
      for (std::int64_t j = 0; j < d.columns; ++j) {
        const double product = value_of(format, x.a(0, i, 0)) * value_of(format, x.b(0, 0, j));
        wrong += d(0, i, j) != nearest_code(format, product + 0.0);
      }
    CHECK(wrong == 0);
  }
}

TEST_CASE("the plan of one product is a rule, but where a kernel keeps the signs of zeros") {
  using namespace emulator::atlas;
  const auto known = [](Operator op, Numbers numbers, std::int64_t m, std::int64_t n,
                        std::int64_t leading = 1) {
    const Answer answer = plan_of({op, numbers, m, n, 1, 1, false, false, leading, n});
    CHECK((answer.known != Known::rule || answer.agree >= rule_agrees));
    return answer.known;
  };
  for (const Operator op : {Operator::mm, Operator::addmm})
    for (const Numbers numbers : {Numbers::f32, Numbers::f16, Numbers::bf16})
      for (const std::int64_t m : {1, 2, 17, 64, 319, 1281, 8000})
        for (const std::int64_t n : {1, 3, 64, 500, 1024}) {
          INFO(m << ' ' << n);
          CHECK(known(op, numbers, m, n) == Known::rule);
        }
  CHECK(known(Operator::mm, Numbers::f16, 320, 1280) == Known::nearest);
  CHECK(known(Operator::addmm, Numbers::f16, 320, 1280) == Known::rule);
  // With gaps other kernels may be taken.
  CHECK(known(Operator::mm, Numbers::f16, 700, 900, 5) != Known::recorded);
}

}  // namespace
}  // namespace guardbit::tests
