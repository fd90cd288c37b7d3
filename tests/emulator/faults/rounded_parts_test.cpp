// Splits of K whose parts are rounded to 16 bits: right results are not accused, their split is
// named, and bugs of such kernels have their own names.

#include <algorithm>
#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include "tests/catch.hpp"
#include "tests/emulator/faults/wrong_products.hpp"

namespace guardbit::emulator {
namespace {

enum class Way { workspace, in_place, atomic };

/// The product in `count` parts of equal tiles of 16, each rounded to D's format, or added in D.
RealMatrix in_parts(const Subject& x, std::int64_t count, Way way, double alpha = 1) {
  const formats::Format& format = x.types.output;
  const auto round = [&](double value) { return scalar::rounded(format, value); };
  const std::int64_t tiles = (x.k() + 15) / 16, length = (tiles + count - 1) / count * 16;
  const std::int64_t m = x.a.rows, n = x.b.columns;
  RealMatrix d = way == Way::workspace ? RealMatrix(m, n) : x.c;
  for (std::int64_t k = 0; k < x.k(); k += length) {
    const std::int64_t here = std::min(length, x.k() - k);
    RealMatrix sums = chained(part(x.a, 0, m, k, here), part(x.b, k, here, 0, n));
    for (double& value : sums.values)
      value = way == Way::in_place ? alpha * value : round(alpha * value);
    d = plus(std::move(d), sums);
    if (way != Way::workspace && k + length < x.k()) d = mapped(d, round);
  }
  return way == Way::workspace ? plus(std::move(d), x.c) : d;
}

Subject subject(const formats::Format& format, std::int64_t k, std::uint64_t seed,
                bool positive = false) {
  return subject_of({40, 36, k}, {format, format}, seed, positive);
}

TEST_CASE("parts of K that are rounded to 16 bits are right, and their split is named", "[long]") {
  std::uint64_t seed = 0;
  for (const formats::Format& format : {formats::bf16, formats::fp16}) {
    for (const Way way : {Way::workspace, Way::in_place, Way::atomic}) {
      for (const std::int64_t count : {2, 5, 16}) {
        ++seed;
        const Subject x = subject(format, count * 48 + 8, seed, seed % 2 == 0);
        const Judgement judgement = judge(numbers(x, in_parts(x, count, way)));
        CAPTURE(static_cast<int>(way), count, formats::name_of(format));
        for (const Fault& fault : judgement.faults) UNSCOPED_INFO(fault.text);
        CHECK(judgement.verdict == Verdict::valid_rounding);
        REQUIRE(judgement.split);
        CHECK(judgement.split->sums == format);
        const auto parts = divide(*judgement.split, {{0, x.k()}});
        const std::int64_t tiles = (x.k() + 15) / 16;
        CHECK(parts.front().front().end == (tiles + count - 1) / count * 16);
      }
    }
  }
}

TEST_CASE("bugs of kernels that round parts of K are named, and no others") {
  using enum FaultKind;
  struct Bug {
    FaultKind kind;
    std::function<RealMatrix(Subject)> kernel;
  };
  constexpr std::int64_t count = 4;
  const auto kernel = [](const Subject& x) { return in_parts(x, count, Way::workspace); };
  const std::vector<Bug> bugs = {
      {alpha, [](const Subject& x) { return in_parts(x, count, Way::workspace, 1.25); }},
      {activation,
       [=](const Subject& x) {
         return mapped(kernel(x), [](double value) { return std::max(value, 0.0); });
       }},
      {missing_k,
       [=](Subject x) {
         scale_k(x, 80, 96, 0);
         return kernel(x);
       }},
      {stale_k,
       [=](Subject x) {
         const RealMatrix a = x.a;
         for (std::int64_t k = 80; k < 96; ++k) copy_a(x, a, k, k - 16);
         return kernel(x);
       }},
      {not_written,
       [=](const Subject& x) {
         RealMatrix d = kernel(x);
         for (std::int64_t i = 8; i < 16; ++i)
           for (std::int64_t j = 0; j < 8; ++j) d(i, j) = 0;
         return d;
       }},
      {wrong_element,
       [=](Subject x) {
         x.b(9, 3) = 16;
         return kernel(x);
       }},
  };
  for (const Bug& bug : bugs) {
    const Subject x = subject(formats::bf16, 256, 9);
    const Judgement judgement = judge(numbers(x, bug.kernel(x)));
    CAPTURE(formats::word_of(bug.kind));
    std::string texts;
    for (const Fault& fault : judgement.faults) texts += fault.text + "\n";
    INFO(texts);
    CHECK(judgement.verdict == Verdict::wrong);
    REQUIRE(!judgement.faults.empty());
    CHECK(judgement.faults.front().kind == bug.kind);
    for (const Fault& fault : judgement.faults)
      CHECK((fault.kind == bug.kind || fault.kind == narrow_accumulator));
  }
}

TEST_CASE("a double rounding is no split of K") {
  const Subject x = subject_of({96, 80, 200}, {formats::bf16, formats::bf16}, 1);
  const RealMatrix d = mapped(plus(chained(x.a, x.b), x.c),
                              [](double value) { return scalar::rounded(formats::fp16, value); });
  const Judgement judgement = judge(numbers(x, d));
  CHECK(!judgement.split);
  CHECK(judgement.verdict == Verdict::valid_rounding);
}

TEST_CASE("a D that is truncated is no split of K") {
  for (const std::uint64_t seed : {1U, 2U, 3U}) {
    const Subject x = subject_of({96, 48, 92}, {formats::bf16, formats::bf16}, seed, true);
    const RealMatrix d = mapped(plus(chained(x.a, x.b), x.c),
                                [](double value) { return truncated(formats::bf16, value); });
    const Judgement judgement = judge(numbers(x, d));
    CHECK(!judgement.split);
    REQUIRE(!judgement.faults.empty());
    CHECK(judgement.faults.front().kind == FaultKind::converted_output);
  }
}

TEST_CASE("sums in FP32 show no parts that are rounded") {
  for (const formats::Format& format : {formats::bf16, formats::fp16}) {
    const Subject x = subject(format, 512, 5);
    CHECK(!judge(numbers(x, plus(chained(x.a, x.b), x.c))).split);
    RealMatrix d = plus(chained(x.a, x.b), x.c);
    d(3, 4) *= 1.5;
    CHECK(!judge(numbers(x, d)).split);
  }
}

}  // namespace
}  // namespace guardbit::emulator
