#include "experiments/accuracy/forward_errors.hpp"

#include <bit>
#include <cmath>
#include <string>
#include <vector>

#include "emulator/gemm/gemm.hpp"
#include "experiments/accuracy/error_norms.hpp"
#include "experiments/accuracy/exact_number.hpp"
#include "formats/codec.hpp"
#include "formats/format_catalogue.hpp"
#include "formats/support/error.hpp"
#include "tests/catch.hpp"
#include "tests/emulator/gemm/gemm_inputs.hpp"
#include "tests/oracle/arithmetic.hpp"

// Deviations against the judge of the tests: Boost's integers, one product after the other.
namespace guardbit::experiments {
namespace {

using emulator::CodeMatrix;
using emulator::GemmProblem;
using formats::Format;
using tests::Random;

struct Judged {
  Format format;
  oracle::FormatParameters judge;
};
const std::vector<Judged> judged = {{formats::fp64, oracle::fp64}, {formats::fp32, oracle::fp32},
                                    {formats::bf16, oracle::bf16}, {formats::fp16, oracle::fp16},
                                    {formats::e4m3, oracle::e4m3}, {formats::e5m2, oracle::e5m2},
                                    {formats::int8, oracle::int8}};

oracle::Number number(const CodeMatrix& from, std::int64_t g, std::int64_t i, std::int64_t j) {
  for (const Judged& x : judged)
    if (x.format == from.format)
      return oracle::decode(x.judge, from(from.batch == 1 ? 0 : g, i, j));
  FAIL("a format without a judge");
  return {};
}

oracle::Number number(double x) {
  return oracle::decode(oracle::fp64, std::bit_cast<std::uint64_t>(x));
}

double nearest(const oracle::Number& x) {
  if (x.is_nan()) return NAN;
  return std::bit_cast<double>(oracle::encode(oracle::fp64, x, oracle::nearest_even));
}

oracle::Number shifted(oracle::Number x, int places) {
  x.magnitude.exponent += places;
  return x;
}

/// Of one element, as the definitions say.
Deviation judge(const CodeMatrix& d, const GemmProblem& p, double alpha, double beta,
                std::int64_t g, std::int64_t i, std::int64_t j) {
  oracle::Number sum = oracle::zero();
  for (std::int64_t k = 0; k < p.k(); ++k) {
    oracle::Number x = oracle::exact_product(number(p.a, g, i, k), number(p.b, g, k, j));
    if (!p.scale_a.empty()) x = oracle::exact_product(x, number(p.scale_a, g, i, 0));
    if (!p.scale_b.empty()) x = oracle::exact_product(x, number(p.scale_b, g, 0, 0));
    sum = oracle::exact_sum(sum, x);
  }
  sum = oracle::exact_product(number(alpha), sum);
  if (!p.c.empty() && beta != 0)
    sum = oracle::exact_sum(sum, oracle::exact_product(number(beta), number(p.c, g, i, j)));
  if (!p.bias.empty()) sum = oracle::exact_sum(sum, number(p.bias, g, 0, j));
  const oracle::Number result = number(d, g, i, j);
  Deviation x{nearest(result), nearest(sum), NAN, NAN};
  if (!sum.is_finite() || !result.is_finite()) return x;
  const oracle::Number error = oracle::exact_sum(result, oracle::negated(sum));
  int exponent = formats::min_exponent(d.format);
  if (!sum.is_zero()) exponent = std::max(exponent, oracle::floor_log2(sum.magnitude));
  if (formats::is_integer(d.format)) exponent = d.format.fraction_bits;
  x.error = nearest(error);
  x.ulps = nearest(shifted(error, d.format.fraction_bits - exponent));
  return x;
}

bool same(double x, double y) { return x == y || (std::isnan(x) && std::isnan(y)); }

void check(const CodeMatrix& d, const GemmProblem& p, double alpha, double beta) {
  const std::vector<Deviation> list = exact_deviations(d, p, alpha, beta, 2, "test");
  REQUIRE(std::ssize(list) == d.size());
  int wrong = 0;
  for (std::int64_t at = 0; at < d.size(); ++at) {
    const Deviation& x = list[static_cast<std::size_t>(at)];
    const Deviation y = judge(d, p, alpha, beta, at / (d.rows * d.columns), at / d.columns % d.rows,
                              at % d.columns);
    if (same(x.result, y.result) && same(x.reference, y.reference) && same(x.error, y.error) &&
        same(x.ulps, y.ulps))
      continue;
    if (++wrong > 3) continue;
    INFO("element " << at << ": " << x.reference << " " << x.error << " " << x.ulps << ", not "
                    << y.reference << " " << y.error << " " << y.ulps);
    CHECK(false);
  }
  CHECK(wrong == 0);
}

/// Fills a matrix with codes of that kind.
template <class Code>
CodeMatrix filled(const Format& f, std::int64_t batch, std::int64_t rows, std::int64_t columns,
                  Code code) {
  CodeMatrix m = emulator::make_matrix(f, batch, rows, columns);
  for (std::int64_t i = 0; i < m.size(); ++i) m.set(i, code(i));
  return m;
}

struct Inputs {
  std::string name;
  std::function<std::uint64_t(const Format&, std::int64_t, Random&)> code;
};
const std::vector<Inputs> families = {
    {"narrow",
     [](const Format& f, std::int64_t, Random& r) { return tests::code_between(f, -2, 2, r); }},
    {"huge range",
     [](const Format& f, std::int64_t, Random& r) { return tests::finite_code(f, r); }},
    {"subnormal",
     [](const Format& f, std::int64_t i, Random& r) {
       return i % 3 == 0 ? tests::code_between(f, -1, 1, r) : tests::subnormal_code(f, r);
     }},
    {"special",
     [](const Format& f, std::int64_t i, Random& r) {
       return i % 11 == 0 ? tests::special_code(f, r) : tests::finite_code(f, r);
     }},
    {"zeros", [](const Format& f, std::int64_t i,
                 Random& r) { return i % 4 != 0 ? 0 : tests::code_between(f, -3, 3, r); }},
};

TEST_CASE("exact deviations agree with the judge on adversarial operands") {
  Random random(7);
  for (const Judged& in : judged) {
    for (const Inputs& family : families) {
      if (formats::is_integer(in.format) && family.name != "narrow") continue;
      for (const Format& out : {formats::fp32, formats::fp16, formats::fp64}) {
        CAPTURE(formats::name_of(in.format), formats::name_of(out), family.name);
        const std::int64_t m = 3, n = 4, k = random.between(1, 40);
        const auto code = [&](std::int64_t i) {
          return formats::is_integer(in.format) ? tests::random_code(in.format, random)
                                                : family.code(in.format, i, random);
        };
        GemmProblem p;
        p.a = filled(in.format, 2, m, k, code);
        p.b = filled(in.format, 2, k, n, code);
        const CodeMatrix d =
            filled(out, 2, m, n, [&](std::int64_t i) { return family.code(out, i, random); });
        check(d, p, 1, 0);
      }
    }
  }
}

TEST_CASE("exact deviations agree with the judge where everything cancels") {
  // The second half of K is the negated first one but for the last bit of a few elements.
  Random random(8);
  for (const Judged& in : judged) {
    if (formats::is_integer(in.format)) continue;
    CAPTURE(formats::name_of(in.format));
    const std::int64_t m = 4, n = 4, half = 23;
    GemmProblem p;
    p.a = emulator::make_matrix(in.format, 1, m, 2 * half);
    p.b = emulator::make_matrix(in.format, 1, 2 * half, n);
    for (std::int64_t k = 0; k < half; ++k) {
      for (std::int64_t i = 0; i < m; ++i) {
        const std::uint64_t code = tests::code_between(in.format, -6, 6, random);
        p.a.set(p.a.index(0, i, k), code);
        p.a.set(p.a.index(0, i, k + half),
                (code ^ formats::sign_mask(in.format)) ^ (random.one_in(9) ? 1U : 0U));
        const std::uint64_t other = tests::code_between(in.format, -6, 6, random);
        p.b.set(p.b.index(0, k, i), other);
        p.b.set(p.b.index(0, k + half, i), other);
      }
    }
    emulator::GemmPlan plan;  // a chain in FP32
    check(emulator::execute(plan, p), p, 1, 0);
  }
}

TEST_CASE("exact deviations take alpha, beta, bias and scales") {
  Random random(9);
  for (const double alpha : {1.0, 0.37, -3e-30, 0.0}) {
    for (const double beta : {0.0, 1.0, -1.9}) {
      GemmProblem p;
      p.a = tests::random_matrix(formats::e4m3, 2, 3, 20, random);
      p.b = tests::random_matrix(formats::e5m2, 2, 20, 4, random);
      p.c = tests::random_matrix(formats::fp16, 1, 3, 4, random);
      p.bias = tests::random_matrix(formats::fp32, 1, 1, 4, random);
      p.scale_a = tests::random_matrix(formats::fp32, 1, 3, 1, random);
      p.scale_b = tests::random_matrix(formats::fp32, 1, 1, 1, random);
      CAPTURE(alpha, beta);
      check(tests::random_matrix(formats::bf16, 2, 3, 4, random), p, alpha, beta);
    }
  }
}

TEST_CASE("exact deviations refuse what FP64 cannot hold") {
  Random random(10);
  GemmProblem p;
  p.a = tests::random_matrix(formats::fp64, 1, 2, 2, random);
  p.b = p.a;
  p.scale_a = tests::random_matrix(formats::fp32, 1, 1, 1, random);
  CHECK_THROWS_AS(exact_deviations(p.a, p, 1, 0, 1, "here"), formats::Error);
}

TEST_CASE("deviations from a reference are exact differences") {
  Random random(11);
  for (const Judged& x : judged) {
    if (formats::is_integer(x.format)) continue;
    for (const Judged& y : judged) {
      if (formats::is_integer(y.format)) continue;
      CAPTURE(formats::name_of(x.format), formats::name_of(y.format));
      const auto code = [&](const Format& f, std::int64_t i) {
        return i % 7 == 0 ? tests::special_code(f, random) : tests::finite_code(f, random);
      };
      const CodeMatrix d =
          filled(x.format, 1, 5, 8, [&](std::int64_t i) { return code(x.format, i); });
      const CodeMatrix reference =
          filled(y.format, 1, 5, 8, [&](std::int64_t i) { return code(y.format, i); });
      const Deviations list = deviations(d, reference, "test"), computed(d, reference);
      for (std::int64_t at = 0; at < d.size(); ++at) {
        const Deviation got = list[static_cast<std::size_t>(at)];
        const oracle::Number a = number(d, 0, at / 8, at % 8),
                             b = number(reference, 0, at / 8, at % 8);
        CHECK(same(got.reference, nearest(b)));
        const double error = a.is_finite() && b.is_finite()
                                 ? nearest(oracle::exact_sum(a, oracle::negated(b)))
                                 : NAN;
        CHECK(same(got.error, error));
        const Deviation again = computed[static_cast<std::size_t>(at)];
        CHECK((same(again.result, got.result) && same(again.reference, got.reference) &&
               same(again.error, got.error) && same(again.ulps, got.ulps)));
      }
    }
  }
}

TEST_CASE("an exact number is the judge's sum of its terms") {
  Random random(12);
  ExactNumber x;
  for (int round = 0; round < 200; ++round) {
    const int lowest = random.between(-3000, 1000), width = random.between(140, 3000);
    x.reset(lowest, lowest + width);
    CHECK(x.is_zero());
    oracle::Number sum = oracle::zero();
    for (int i = 0; i < 20; ++i) {
      const auto high = static_cast<std::int64_t>(random.bits()) >> random.between(0, 63);
      const auto low = static_cast<std::int64_t>(random.bits()) >> random.between(0, 63);
      const int exponent = lowest + random.between(0, width - 133);
      x.add(formats::int128{high} * low, exponent);
      sum = oracle::exact_sum(
          sum, oracle::exact_product(oracle::dyadic(high, exponent), oracle::dyadic(low)));
    }
    const int scale = random.between(-50, 50);
    CHECK(x.nearest(scale) == nearest(shifted(sum, scale)));
    CHECK(x.is_zero() == sum.is_zero());
    if (sum.is_zero()) continue;
    CHECK(x.is_negative() == sum.negative);
    CHECK(x.leading_exponent() == oracle::floor_log2(sum.magnitude));
  }
}

TEST_CASE("infinities and NaNs are counted apart, and what overflows is no error") {
  const auto number_code = [](double x) { return tests::nearest_code(formats::fp16, x); };
  const std::uint64_t infinity = formats::infinity_code(formats::fp16), nan = infinity | 1;
  const std::vector<std::uint64_t> results = {number_code(1),  nan,      nan,      number_code(2),
                                              infinity,        infinity, infinity, number_code(3),
                                              number_code(1.5)};
  const std::vector<double> wanted = {1, NAN, 1, NAN, INFINITY, 70000, 60000, INFINITY, 1};
  CodeMatrix d = emulator::make_matrix(formats::fp16, 1, 1, 9);
  CodeMatrix reference = emulator::make_matrix(formats::fp64, 1, 1, 9);
  for (std::size_t i = 0; i < results.size(); ++i) {
    d.set(static_cast<std::int64_t>(i), results[i]);
    reference.set(static_cast<std::int64_t>(i), std::bit_cast<std::uint64_t>(wanted[i]));
  }
  const ErrorAnalysis x = analyse(deviations(d, reference, "test"), d.format, {}, {}, {});
  CHECK(x.outputs == 9);
  CHECK(x.compared == 2);
  CHECK(x.equal == 1);
  CHECK(x.specials.nan_both == 1);
  CHECK(x.specials.nan_result == 1);
  CHECK(x.specials.nan_reference == 1);
  CHECK(x.specials.infinity_both == 2);
  CHECK(x.specials.infinity_result == 1);
  CHECK(x.specials.infinity_reference == 1);
  CHECK(x.specials.disagreements() == 4);
  CHECK(x.largest_ulps == 512);
  CHECK(x.largest_relative == 0.5);
  CHECK(x.bias_ulps == 256);
  REQUIRE(x.worst);
  CHECK(*x.worst == 2);  // the first special that disagrees
}

TEST_CASE("a heat map shows the tile that is wrong") {
  CodeMatrix d = emulator::make_matrix(formats::fp32, 2, 64, 200);
  CodeMatrix reference = emulator::make_matrix(formats::fp32, 2, 64, 200);
  d.set(d.index(1, 37, 150), std::bit_cast<std::uint32_t>(1.0F));
  const Deviations list = deviations(d, reference, "test");
  const HeatMap map = heat_map(list, d, {}, 1, 24, 64);
  CHECK(map.tile_rows == 4);
  CHECK(map.tile_columns == 4);
  CHECK(map.rows == 16);
  CHECK(map.columns == 50);
  for (std::size_t at = 0; at < map.largest.size(); ++at)
    CHECK((map.largest[at] != 0) == (at == 9 * 50 + 37));
  const HeatMap other = heat_map(list, d, {}, 0, 24, 64);
  for (const double tile : other.largest) CHECK(tile == 0);
}

}  // namespace
}  // namespace guardbit::experiments
