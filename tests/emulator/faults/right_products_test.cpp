// Products that are right, whatever order and precision their sums have: none is called wrong.

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <numeric>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "emulator/faults/judge_capture.hpp"
#include "formats/files/array_file.hpp"
#include "tests/catch.hpp"
#include "tests/emulator/faults/wrong_products.hpp"
#include "tests/formats/files/scratch.hpp"
#include "tests/places.hpp"

namespace guardbit::emulator {
namespace {

using Sum = float (*)(const std::vector<float>& products);

float kahan(const std::vector<float>& products) {
  float sum = 0, lost = 0;
  for (const float x : products) {
    const float y = x - lost, t = sum + y;
    lost = (t - sum) - y;
    sum = t;
  }
  return sum;
}

float pairwise(const std::vector<float>& products) {
  std::vector<float> sums = products;
  while (sums.size() > 1) {
    for (std::size_t i = 0; i + 1 < sums.size(); i += 2) sums[i / 2] = sums[i] + sums[i + 1];
    if (sums.size() % 2 == 1) sums[sums.size() / 2] = sums.back();
    sums.resize((sums.size() + 1) / 2);
  }
  return sums.front();
}

float descending(const std::vector<float>& products) {
  return std::accumulate(products.rbegin(), products.rend(), 0.0F);
}

float random_order(const std::vector<float>& products) {
  std::vector<float> shuffled = products;
  std::shuffle(shuffled.begin(), shuffled.end(), std::mt19937(7));
  return std::accumulate(shuffled.begin(), shuffled.end(), 0.0F);
}

/// Lanes of a vector, added at the end.
float sixteen_lanes(const std::vector<float>& products) {
  std::vector<float> lanes(16);
  for (std::size_t i = 0; i < products.size(); ++i) lanes[i % 16] += products[i];
  return std::accumulate(lanes.begin(), lanes.end(), 0.0F);
}

RealMatrix summed(const Subject& x, Sum sum) {
  RealMatrix d(x.a.rows, x.b.columns);
  std::vector<float> products(static_cast<std::size_t>(x.k()));
  for (std::int64_t i = 0; i < d.rows; ++i) {
    for (std::int64_t j = 0; j < d.columns; ++j) {
      for (std::int64_t k = 0; k < x.k(); ++k)
        products[static_cast<std::size_t>(k)] =
            static_cast<float>(x.a(i, k)) * static_cast<float>(x.b(k, j));
      d(i, j) = sum(products);
    }
  }
  return d;
}

bool is_wrong(const ProductNumbers& x) {
  const Judgement judgement = judge(x);
  for (const Fault& fault : judgement.faults) UNSCOPED_INFO(fault.text);
  return judgement.verdict == Verdict::wrong;
}

void check_chains(std::span<const Size> sizes) {
  for (const Size& size : sizes) {
    for (const Types& type : tested_types) {
      for (const bool positive : {false, true}) {
        const Subject x = subject_of(size, type, 2, positive);
        CAPTURE(size.m, size.k, positive);
        CHECK(judge(numbers(x, plus(multiply(x.a, x.b), x.c))).verdict == Verdict::rounded_once);
        for (const std::int64_t step : {1, 4, 8, 32})
          CHECK(judge(numbers(x, plus(chained(x.a, x.b, step), x.c))).faults.empty());
      }
    }
  }
}

TEST_CASE("right products of any order are not accused") {
  check_chains(std::span(tested_sizes).first(1));
}

TEST_CASE("right products of any order are not accused at all sizes", "[sweep]") {
  check_chains(tested_sizes);
}

TEST_CASE("sums of products in FP32 are right, however they are added") {
  const Types type{formats::fp32, formats::fp32};
  for (const Size& size : {Size{24, 24, 64}, Size{12, 20, 4096}}) {
    for (const bool positive : {false, true}) {
      Subject x = subject_of(size, type, 3, positive);
      x.c = RealMatrix(size.m, size.n);
      for (const Sum sum : {kahan, pairwise, descending, random_order, sixteen_lanes}) {
        CAPTURE(size.k, positive);
        const RealMatrix d = summed(x, sum);
        CHECK(judge(numbers(x, d)).faults.empty());
        CHECK(!is_wrong(numbers(x, d)));
      }
    }
  }
}

/// Rows of one number times ones: roundings all go one way.
Subject constant_subject(std::int64_t rows, std::int64_t k) {
  Subject x{RealMatrix(rows, k),
            RealMatrix(k, rows, 1),
            RealMatrix(rows, rows),
            {formats::fp32, formats::fp32}};
  for (std::int64_t i = 0; i < rows; ++i)
    for (std::int64_t l = 0; l < k; ++l)
      x.a(i, l) = static_cast<float>(0.1F * (1 + 0.07F * static_cast<float>(i)));
  return x;
}

TEST_CASE("sums whose roundings all go one way are right") {
  for (const std::int64_t k : {3000, 30000, 100000, 300000}) {
    const Subject x = constant_subject(8, k);
    RealMatrix d(8, 8);
    for (std::int64_t i = 0; i < 8; ++i) {
      // Two chains, the first one somewhat longer.
      float sums[2] = {0, 0};
      for (std::int64_t l = 0; l < k; ++l)
        sums[20 * l < 11 * k ? 0 : 1] += static_cast<float>(x.a(i, l));
      for (std::int64_t j = 0; j < 8; ++j) d(i, j) = sums[0] + sums[1];
    }
    CAPTURE(k);
    const Judgement judgement = judge(numbers(x, d));
    for (const Fault& fault : judgement.faults) UNSCOPED_INFO(fault.text);
    CHECK(judgement.verdict == Verdict::valid_rounding);
    CHECK(judgement.faults.empty());
    CHECK(judgement.wrong == 0);
  }
}

TEST_CASE("terms in the order of their signs are right, and what is missing of such sums is not") {
  // All positive terms first: sums grow before they cancel.
  constexpr std::int64_t k = 4096;
  Subject x = subject_of({6, 6, k}, {formats::fp32, formats::fp32}, 5, true);
  x.c = RealMatrix(6, 6);
  for (std::int64_t i = 0; i < 6; ++i)
    for (std::int64_t l = 0; l < k; ++l) x.a(i, l) = (l < k / 2 ? 0.7F : -0.7F);
  for (double& value : x.b.values) value = 0.3F;
  RealMatrix d(6, 6);
  for (std::int64_t i = 0; i < 6; ++i)
    for (std::int64_t j = 0; j < 6; ++j) {
      float sum = 0;
      for (std::int64_t l = 0; l < k; ++l)
        sum += static_cast<float>(x.a(i, l)) * static_cast<float>(x.b(l, j));
      d(i, j) = sum;
    }
  CHECK(!is_wrong(numbers(x, d)));
  for (double& value : d.values) value += 0.21 * 4;
  CHECK(is_wrong(numbers(x, d)));
}

TEST_CASE("results below the smallest normal number that are zero are named as that") {
  Subject x = subject_of({32, 32, 64}, {formats::fp32, formats::fp32}, 9);
  x.c = RealMatrix(32, 32);
  for (double& value : x.a.values) value *= 0x1p-70;
  for (double& value : x.b.values) value *= 0x1p-61;
  RealMatrix d = chained(x.a, x.b);
  for (double& value : d.values)
    if (std::abs(value) < 0x1p-126) value = 0;
  const Judgement judgement = judge(numbers(x, d));
  CHECK(judgement.verdict == Verdict::valid_rounding);
  REQUIRE(judgement.faults.size() == 1);
  CHECK(judgement.faults[0].kind == FaultKind::converted_output);
  CHECK(judgement.faults[0].text.find("smallest normal number of fp32, are zero") !=
        std::string::npos);
}

TEST_CASE("products that are rounded before they are added are right, and their format is named") {
  std::mt19937_64 random(5);
  for (const formats::Format& format : {formats::fp16, formats::bf16}) {
    Subject x = subject_of({1, 60, 300}, {format, format}, random());
    x.c = RealMatrix(1, 60);
    RealMatrix d(1, 60);
    for (std::int64_t j = 0; j < 60; ++j) {
      double sum = 0;
      for (std::int64_t k = 0; k < 300; ++k) sum += scalar::rounded(format, x.a(0, k) * x.b(k, j));
      d(0, j) = scalar::rounded(format, scalar::rounded(formats::fp32, sum));
    }
    const Judgement judgement = judge(numbers(x, d));
    INFO(formats::name_of(format));
    CHECK(judgement.verdict == Verdict::valid_rounding);
    REQUIRE(judgement.faults.size() == 1);
    CHECK(judgement.faults[0].kind == FaultKind::narrow_accumulator);
    CHECK(judgement.faults[0].name == formats::name_of(format));
    // Rounded to few bits, they are not.
    for (double& value : d.values) value *= 1.25;
    CHECK(judge(numbers(x, d)).verdict == Verdict::wrong);
  }
}

TEST_CASE("sums of parts in a 16-bit workspace are right at any scale, and its format is named") {
  constexpr std::int64_t tile = 64;
  for (const double scale : {1e-3, 1e3}) {
    for (const std::int64_t k : {264, 520}) {
      CAPTURE(scale, k);
      Subject x = subject_of({48, 40, k}, {formats::fp16, formats::fp32}, 11);
      x.c = RealMatrix(48, 40);
      for (double& value : x.a.values) value = scalar::rounded(formats::fp16, value * scale);
      RealMatrix d(48, 40);
      for (std::int64_t i = 0; i < 48; ++i) {
        for (std::int64_t j = 0; j < 40; ++j) {
          for (std::int64_t begin = 0; begin < k; begin += tile) {
            double part = 0;
            for (std::int64_t l = begin; l < std::min(k, begin + tile); ++l)
              part = scalar::rounded(formats::fp32, part + x.a(i, l) * x.b(l, j));
            d(i, j) =
                scalar::rounded(formats::fp32, d(i, j) + scalar::rounded(formats::fp16, part));
          }
        }
      }
      const Judgement judgement = judge(numbers(x, d));
      CHECK(judgement.verdict == Verdict::valid_rounding);
      for (const Fault& fault : judgement.faults) {
        CHECK(fault.kind == FaultKind::narrow_accumulator);
        CHECK(fault.name == "fp16");
      }
      if (k == 520) CHECK(judgement.faults.size() == 1);
    }
  }
}

TEST_CASE("results that went through a narrower format are right, and the format is named") {
  const Types type{formats::fp32, formats::fp32};
  for (const std::int64_t k : {64, 1024}) {
    const Subject x = subject_of({32, 48, k}, type, 4);
    const RealMatrix d = plus(chained(x.a, x.b), x.c);
    const auto truncated = [](double value) {
      const double spacing = 2 * half_spacing(formats::bf16, value);
      return std::trunc(value / spacing) * spacing;
    };
    const auto check = [&](const RealMatrix& seen, const std::string& text) {
      const Judgement judgement = judge(numbers(x, seen));
      CHECK(judgement.verdict == Verdict::valid_rounding);
      REQUIRE(judgement.faults.size() == 1);
      CHECK(judgement.faults[0].kind == FaultKind::converted_output);
      CHECK(judgement.faults[0].text == text);
    };
    const auto through = [](const formats::Format& format) {
      return [=](double value) { return scalar::rounded(format, value); };
    };
    check(mapped(d, through(formats::fp16)), "D was rounded to fp16 and back");
    check(mapped(d, through(formats::bf16)), "D was rounded to bf16 and back");
    check(mapped(d, truncated), "D was truncated to bf16 and back");
  }
}

TEST_CASE("what NumPy's library multiplies is right", "[tool]") {
  const std::string interpreter = tests::python_with_numpy();
  if (interpreter.empty()) {
    WARN("SKIPPED: python3 with numpy is not here");
    return;
  }
  const formats::Scratch scratch;
  formats::write_text(scratch / "products.py", R"(
import numpy, sys
folder = sys.argv[1]
random = numpy.random.default_rng(3)
for name, m, n, k, draw in [('plain', 40, 56, 300, random.standard_normal), ('long', 24, 24, 4096, random.standard_normal),
                            ('positive', 40, 40, 1000, random.random)]:
    a, b = draw((m, k)).astype('f4'), draw((k, n)).astype('f4')
    numpy.save(folder + '/' + name + '_a.npy', a)
    numpy.save(folder + '/' + name + '_b.npy', b)
    numpy.save(folder + '/' + name + '_d.npy', a @ b)
)");
  REQUIRE(
      std::system((interpreter + " '" + (scratch / "products.py") + "' '" + (scratch / "") + "'")
                      .c_str()) == 0);
  for (const std::string name : {"plain", "long", "positive"}) {
    const auto matrix = [&](const char* which) {
      return matrix_of(formats::read_tensors(scratch / (name + "_" + which + ".npy")).tensors[0]);
    };
    GemmCapture capture;
    capture.kind = "gemm";
    capture.problem.a = matrix("a"), capture.problem.b = matrix("b"), capture.d = matrix("d");
    CAPTURE(name);
    const CaptureJudgement judged = judge(capture);
    CHECK(judged.judgement.verdict != Verdict::wrong);
    CHECK(judged.judgement.faults.empty());
  }
}

}  // namespace
}  // namespace guardbit::emulator
