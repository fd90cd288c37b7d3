#include "tests/oracle/dot.hpp"

#include <bit>
#include <cmath>

#include "tests/catch.hpp"
#include "tests/oracle/amd_dot.hpp"
#include "tests/oracle/rules.hpp"

// Names Q1, Q2 ... are the questions of NUMERICS.md section 2 with the answers of section 0.1.
namespace {

using namespace guardbit::oracle;

std::uint64_t code_of(const FormatParameters& format, double value) {
  const std::uint64_t code =
      encode(format, decode(fp64, std::bit_cast<std::uint64_t>(value)), nearest_even);
  const Number number = decode(format, code);
  // A test that asks for a number the format lacks is wrong.
  if (number.is_finite() && std::ldexp(static_cast<double>(number.magnitude.significand),
                                       number.magnitude.exponent) != std::fabs(value))
    throw std::invalid_argument("not representable");
  return code;
}

Vector vector_of(const FormatParameters& format, const std::vector<double>& values,
                 std::size_t length = 0) {
  Vector result{format, {}};
  for (const double value : values) result.codes.push_back(code_of(format, value));
  if (length > values.size()) result.codes.resize(length, code_of(format, 0));
  return result;
}

Scalar scalar(const FormatParameters& format, double value) {
  return {format, code_of(format, value)};
}

/// nvidia_fused with a, b in one format and c in the result's.
std::uint64_t fused(const FusedRule& rule, const FormatParameters& format,
                    const std::vector<double>& a, const std::vector<double>& b, double c) {
  return nvidia_fused(rule, vector_of(format, a), vector_of(format, b), scalar(rule.result, c));
}

double p2(int exponent) { return std::ldexp(1.0, exponent); }

}  // namespace

TEST_CASE("one probe, every architecture") {
  const std::vector<double> a = {-p2(13), -0.5, -0.25, -0.125};
  const std::vector<double> b = {p2(10), 1, 1, 1};
  const auto answer = [&](const FusedRule& rule, const FormatParameters& format) {
    return fused(rule, format, a, b, p2(23));
  };
  CHECK(answer(volta_fp32, fp16) == code_of(fp32, 0));
  CHECK(answer(turing_fp32, fp16) == code_of(fp32, -0.5));
  CHECK(answer(ampere_fp32, bf16) == code_of(fp32, -0.5));
  CHECK(answer(hopper_fp32, fp16) == code_of(fp32, -0.75));
  CHECK(answer(ada_fp8_fp32, e5m2) == code_of(fp32, 0));
  CHECK(answer(hopper_fp8_fp32, e5m2) == code_of(fp32, 0));
  const Scalar c = scalar(fp32, p2(23));
  const auto row = [&](const FormatParameters& format, const std::vector<double>& values) {
    return vector_of(format, values, 16);
  };
  CHECK(cdna1_exact(4, row(fp16, a), row(fp16, b), c) == code_of(fp32, -0.875));
  CHECK(cdna2_pairwise(2, row(bf16, a), row(bf16, b), c) == code_of(fp32, -0.375));
  CHECK(cdna2_pairwise(4, row(bf16, a), row(bf16, b), c) == code_of(fp32, 0));
  CHECK(cdna2_pairwise(4, row(fp16, a), row(fp16, b), c) == code_of(fp32, 0));
  CHECK(cdna3_truncated({}, row(fp16, a), row(fp16, b), c) == code_of(fp32, -0.5));
  const Cdna3Rule fp8{16, 24, 32, 24, 31, true};
  CHECK(cdna3_truncated(fp8, row(e5m2fnuz, a), row(e5m2fnuz, b), c) == code_of(fp32, -1.0));
}

TEST_CASE("the probe in NVFP4 is exact") {
  std::vector<double> a(16, -4), b(16, 4);
  a.insert(a.end(), {-0.5, -0.5, -0.5});
  b.insert(b.end(), {1, 0.5, 0.5});
  // Group 0: -2^8 * 2^8 * 2^7 = -2^23; group 1: -1 * 0.875.
  const Vector a_scales = vector_of(ue4m3, {p2(8), 0.875, 1, 1});
  const Vector b_scales = vector_of(ue4m3, {p2(7), 1, 1, 1});
  CHECK(nvidia_grouped(blackwell_mxf4, 16, vector_of(e2m1, a, 64), vector_of(e2m1, b, 64), a_scales,
                       b_scales, 16, scalar(fp32, p2(23))) == code_of(fp32, -0.875));
}

TEST_CASE("block-scaled kinds") {
  const Vector ones = vector_of(e2m1, std::vector<double>(64, 1));
  const Vector zeros = vector_of(e2m1, {}, 64);
  const Vector scales = vector_of(e8m0, {p2(-100), 1});
  const Vector units = vector_of(e8m0, {1, 1});
  const auto grouped = [&](const Vector& a, const Vector& a_scales, double c) {
    return nvidia_grouped(blackwell_mxf4, 16, a, ones, a_scales, units, 32, scalar(fp32, c));
  };
  CHECK(grouped(ones, units, 0) == code_of(fp32, 64));
  CHECK(grouped(ones, scales, 0) == code_of(fp32, 32));
  CHECK(grouped(zeros, {e8m0, {0xff, 127}}, 0) == 0x7fffffff);
  CHECK(grouped(zeros, units, 3) == code_of(fp32, 3));
  // The group sums 2^30 * (1 - 1) and 2^-6 * 16: the cancelled group keeps exponent 30, so u =
  // 2^-5.
  Vector cancelling = ones;
  for (std::size_t i = 0; i < 32; i += 2) cancelling.codes[i] = code_of(e2m1, -1);
  CHECK(grouped(cancelling, vector_of(e8m0, {p2(30), p2(-10)}), 0) == 0);
  CHECK(grouped(zeros, vector_of(e8m0, {p2(30), p2(-10)}), p2(-9)) == code_of(fp32, p2(-9)));

  const Vector fp8_ones = vector_of(e4m3, std::vector<double>(32, 1));
  CHECK(nvidia_scaled(blackwell_fp8_fp32, fp8_ones, fp8_ones, vector_of(e8m0, {p2(20)}),
                      vector_of(e8m0, {p2(-10)}), 32, scalar(fp32, 1)) == code_of(fp32, 32769));
  CHECK(nvidia_scaled(blackwell_fp8_fp32, fp8_ones, fp8_ones, {e8m0, {0xff}}, {e8m0, {0}}, 32,
                      scalar(fp32, 1)) == 0x7fffffff);
}

TEST_CASE("E8M13 loses the carry's last bit, products are not normalised") {
  CHECK(fused(hopper_fp8_fp32, e4m3, {1, 1, p2(-6)}, {1, 1, p2(-7)}, 0) == 0x40000000);
  CHECK(fused(blackwell_fp8_fp32, e4m3, {1, 1, p2(-6)}, {1, 1, p2(-7)}, 0) == 0x40000200);
  const std::vector<double> tail_a = {1.5, p2(-11), p2(-11), 0};
  const std::vector<double> tail_b = {1.5, p2(-12), p2(-12), 0};
  CHECK(fused(volta_fp32, fp16, tail_a, tail_b, 0) == 0x40100001);
  CHECK(fused(volta_fp32, fp16, {1, p2(-11), p2(-11), 0}, {2.25, p2(-12), p2(-12), 0}, 0) ==
        0x40100000);
}

TEST_CASE("Q1: what e0 would show in f16 results") {
  const int factors[4][2] = {{-23, -22}, {-23, -23}, {-23, -24}, {-24, -24}};
  const int ones_expected[4] = {1, 2, 3, 4};
  const int exponents[4] = {-20, -21, -22, -23};
  for (int e = 0; e < 4; ++e)
    for (int i = 0; i < 4; ++i) {
      const auto rule = to_fp16_rule(16, 25, exponents[e]);
      const std::vector<double> a = {p2(-12), p2(factors[i][0])};
      const std::vector<double> b = {p2(-13), p2(factors[i][1])};
      CHECK(fused(rule, fp16, a, b, 0) == (i < ones_expected[e] ? 1U : 0U));
      CHECK(fused(rule, fp16, a, b, -0.0) == (i < ones_expected[e] ? 1U : 0U));
    }
}

TEST_CASE("Q2: zeros and underflowed sums are positive") {
  CHECK(fused(hopper_fp32, bf16, {-p2(-75)}, {p2(-80)}, 0) == 0);
  CHECK(fused(hopper_fp32, bf16, {-p2(-80)}, {p2(-80)}, 0) == 0);
  CHECK(fused(hopper_fp16, fp16, {-p2(-12)}, {p2(-13)}, 0) == 0);
  FusedRule keeping = hopper_fp32;
  keeping.underflow_keeps_sign = true;
  CHECK(fused(keeping, bf16, {-p2(-75)}, {p2(-80)}, 0) == 0x80000000);
  CHECK(fused(keeping, bf16, {-0.0, -0.0}, {1, 1}, -0.0) == 0);
  CHECK(fused(hopper_fp32, bf16, {1, -1}, {1, 1}, -0.0) == 0);
}

TEST_CASE("Q3: e0 and the kept bits below the normal range") {
  const double factors[8][2] = {{31, 1}, {63, 1},  {127, 1}, {15, 17},
                                {7, 73}, {33, 31}, {23, 89}, {45, 91}};
  for (int j = 5; j <= 12; ++j) {
    const double u = factors[j - 5][0], v = factors[j - 5][1];
    const std::vector<double> a = {std::ldexp(u, -78), p2(-78)};
    const std::vector<double> b = {std::ldexp(v, -71 - j), p2(-71 - j)};
    const auto answer = [&](int kept_bits, int zero_exponent, double c = 0) {
      return fused(to_fp32_rule(16, kept_bits, zero_exponent), bf16, a, b, c);
    };
    CHECK(answer(25, -133) == (j <= 9 ? 1U : 0U));
    CHECK(answer(25, -132) == (j <= 8 ? 1U : 0U));
    CHECK(answer(24, -132) == (j <= 7 ? 1U : 0U));
    CHECK(answer(25, -133, p2(-149)) == 1);  // Q3b: c is subnormal and sits at -126
  }
  CHECK(fused(hopper_fp32, bf16, {3 * p2(-78), p2(-78)}, {p2(-73), p2(-73)}, p2(-149)) == 2);
  CHECK(fused(hopper_fp16, fp16, {p2(-12), p2(-20)}, {p2(-13), p2(-20)}, p2(-23)) == 2);  // Q3c
}

TEST_CASE("Q4 and Q5: FP8 on Hopper keeps 13 bits, of c too") {
  const auto only_c = [](double c) { return fused(hopper_fp8_fp32, e4m3, {0}, {0}, c); };
  CHECK(only_c(1 + p2(-23)) == 0x3f800000);
  CHECK(only_c(1 + p2(-13)) == 0x3f800400);
  CHECK(only_c(1 + p2(-13) + p2(-14)) == 0x3f800400);
  CHECK(fused(hopper_fp8_fp32, e4m3, {-p2(-7)}, {p2(-7)}, 1) == 0x3f800000);
  CHECK(fused(hopper_fp8_fp16, e4m3, {1, p2(-5), p2(-6)}, {1, p2(-6), p2(-7)}, 0) == 0x3c01);
  CHECK(fused(hopper_fp8_fp16, e4m3, {1, p2(-5), p2(-7)}, {1, p2(-6), p2(-7)}, 0) == 0x3c00);
}

TEST_CASE("Q6 to Q9, Q12: one rounding, overflow, alignment") {
  CHECK(fused(hopper_fp16, fp16, {.5, .5, .5, .5}, {1, 1, p2(-10), p2(-23)}, 0) == 0x3c01);
  const auto cancelled = [](double c) {
    return fused(hopper_fp32, bf16, {p2(64), -p2(64)}, {p2(64), p2(64)}, c);
  };
  CHECK(cancelled(p2(103)) == 0x73000000);
  CHECK(cancelled(p2(102)) == 0);
  CHECK(fused(hopper_fp32, bf16, {p2(64)}, {p2(64)}, -p2(103)) == 0x7f7fffff);
  CHECK(fused(hopper_fp32, bf16, {p2(64)}, {p2(64)}, -p2(102)) == 0x7f800000);
  CHECK(fused(hopper_fp32, bf16, {-p2(64)}, {p2(64)}, 0) == 0xff800000);
  CHECK(fused(hopper_fp32, fp16, {p2(-24), p2(-12)}, {p2(15), p2(-13)}, 0) == 0x3b000000);
  CHECK(fused(hopper_fp32, fp16, {-p2(-13)}, {p2(-13)}, 1) == 0x3f800000);
  for (int k = 20; k <= 30; ++k)
    CHECK(fused(hopper_fp16, fp16, {p2(-11), p2(-10)}, {1, p2(10 - k)}, 1) ==
          (k <= 25 ? 0x3c01U : 0x3c00U));
}

TEST_CASE("Q10 and Q11: tf32 registers and special values") {
  const auto tf32_product = [](std::uint64_t a, std::uint64_t b) {
    return nvidia_fused(hopper_tf32, {tf32, {tf32_from_register(a)}},
                        {tf32, {tf32_from_register(b)}}, {fp32, 0});
  };
  CHECK(tf32_product(0x3f801fff, 0x3f800000) == 0x3f800000);
  CHECK(tf32_product(0x7f800001, 0x3f800000) == 0x7f800000);
  CHECK(tf32_product(0x00001fff, 0x7f800000) == 0x7fffffff);
  const auto half = [](const FusedRule& rule, std::vector<std::uint64_t> a,
                       std::vector<std::uint64_t> b, std::uint64_t c) {
    return nvidia_fused(rule, {fp16, std::move(a)}, {fp16, std::move(b)}, {rule.result, c});
  };
  CHECK(half(hopper_fp32, {0xfe01}, {0x3c00}, 0) == 0x7fffffff);
  CHECK(half(hopper_fp16, {0x7c01}, {0x3c00}, 0) == 0x7fff);
  CHECK(half(hopper_fp32, {0x7c00, 0xfc00}, {0x3c00, 0x3c00}, 0) == 0x7fffffff);
  CHECK(half(hopper_fp32, {0x7c00}, {0x3c00}, 0xff800000) == 0x7fffffff);
  CHECK(half(hopper_fp32, {0x7c00}, {0xbc00}, 0) == 0xff800000);
  CHECK(half(hopper_fp32, {0x7c00}, {0x8000}, 0) == 0x7fffffff);
  CHECK(half(hopper_fp32, {0x3c00}, {0x3c00}, 0xffc00000) == 0x7fffffff);
}

TEST_CASE("Q13: WMMA's tf32 is two blocks of four") {
  const double big = p2(13), unit = 0.125;
  const std::vector<double> first = {big, big, 0, 0, unit, unit, unit, unit};
  const std::vector<double> b = {big, -big, 0, 0, 1, 1, 1, 1};
  CHECK(fused(hopper_tf32, tf32, first, b, 0) == 0);
  CHECK(fused(hopper_wmma_tf32, tf32, first, b, 0) == code_of(fp32, 0.5));
  CHECK(fused(hopper_wmma_tf32, tf32, {unit, unit, unit, unit, big, big, 0, 0},
              {1, 1, 1, 1, big, -big, 0, 0}, 0) == 0);
}

TEST_CASE("Q15: FP64 is a chain of fused multiply-adds in ascending k") {
  const Vector ones = vector_of(fp64, {1, 1, 1, 1});
  CHECK(fma_chain(fp64, vector_of(fp64, {1, p2(-53), p2(-53), -1}), ones, scalar(fp64, 0)) == 0);
  const Vector tiny = vector_of(fp64, {p2(-53), p2(-53), p2(-53), p2(-53)});
  CHECK(fma_chain(fp64, tiny, ones, scalar(fp64, 1)) == code_of(fp64, 1));
  CHECK(fma_chain(fp64, tiny, ones, scalar(fp64, 1), upward) == code_of(fp64, 1 + p2(-50)));
  const Vector subnormal = vector_of(fp32, {p2(-130)});
  const Vector one = vector_of(fp32, {1});
  CHECK(fma_chain(fp32, subnormal, one, scalar(fp32, 0)) == code_of(fp32, p2(-130)));
  CHECK(fma_chain(fp32, subnormal, one, scalar(fp32, 0), nearest_even, true) == 0);
  CHECK(fma_chain(fp32, vector_of(fp32, {-p2(-65)}), vector_of(fp32, {p2(-65)}), scalar(fp32, 0),
                  nearest_even, true, true) == 0x80000000);
}

TEST_CASE("Q16 and integers: one saturation after the exact total") {
  Vector a{int8, std::vector<std::uint64_t>(32, 0)};
  Vector b = a;
  a.codes[0] = b.codes[0] = b.codes[31] = 127;
  a.codes[31] = 0x81;
  const Scalar largest{int32, 0x7fffffff};
  CHECK(integer_dot(a, b, largest, true) == 0x7fffffff);
  CHECK(integer_dot(a, b, largest, false) == 0x7fffffff);
  a.codes[31] = 0;
  CHECK(integer_dot(a, b, largest, true) == 0x7fffffff);
  CHECK(integer_dot(a, b, largest, false) == 0x7fffffff + 127ULL * 127);
  b.codes[0] = 0x81;
  CHECK(integer_dot(a, b, {int32, 0x80000000}, true) == 0x80000000);
  CHECK(integer_dot(a, b, {int32, 0x80000000}, false) == 0x80000000 - 127ULL * 127);
  const Vector bits{b1, {1, 1, 0, 0}};
  const Vector other_bits{b1, {1, 0, 1, 0}};
  CHECK(bit_dot(BitOperation::xor_popc, bits, other_bits, {int32, 0xffffffff}) == 1);
  CHECK(bit_dot(BitOperation::and_popc, bits, other_bits, {int32, 5}) == 6);
}

TEST_CASE("Q17 and emulated FP8") {
  const Vector a = vector_of(fp16, {1, 1.5 * p2(-12), 0, 0});
  const Vector b = vector_of(fp16, {1, p2(-12), 0, 0});
  CHECK(m8n8k4_to_fp32(a, b, scalar(fp32, 0)) == 0x3f800001);
  CHECK(nvidia_fused(volta_fp32, a, b, scalar(fp32, 0)) == 0x3f800000);
  CHECK(m8n8k4_to_fp16(a, b, scalar(fp16, 1)) == code_of(fp16, 2));
  // +M and -M share a half: a 1 in the other half survives unless it is in the sum before them.
  Vector x = vector_of(e5m2, {p2(14), p2(14), 1, 0}, 32);
  const Vector y = vector_of(e5m2, {p2(14), -p2(14), 1, 0}, 32);
  CHECK(fp8_by_halves(hopper_fp32, Composition::chained, x, y, scalar(fp32, 0)) ==
        code_of(fp32, 1));
  x = vector_of(e5m2, {1, 0, p2(14), p2(14)}, 32);
  const Vector z = vector_of(e5m2, {1, 0, p2(14), -p2(14)}, 32);
  CHECK(fp8_by_halves(hopper_fp32, Composition::chained, x, z, scalar(fp32, 0)) == 0);
  CHECK(fp8_by_halves(hopper_fp32, Composition::parallel, x, z, scalar(fp32, 0)) ==
        code_of(fp32, 1));
}

TEST_CASE("AMD: c is floored beside larger products, large products are infinite") {
  const auto row = [](std::vector<double> values) { return vector_of(fp16, values, 8); };
  const Scalar c{fp32,
                 encode(fp32, decode(fp64, std::bit_cast<std::uint64_t>(-1e-6)), nearest_even)};
  CHECK(cdna3_truncated({}, row({2048, 2048}), row({2048, -2048}), c) == code_of(fp32, -0.25));
  Cdna3Rule fp8{16, 24, 32, 24, 31, true};
  const auto bytes = [](std::vector<double> values) { return vector_of(e5m2fnuz, values, 16); };
  CHECK(cdna3_truncated(fp8, bytes({2048, 2048}), bytes({2048, -2048}), c) == 0);
  const Vector wide = vector_of(bf16, {p2(64), p2(64)}, 8);
  const Vector wide_b = vector_of(bf16, {p2(64), -p2(64)}, 8);
  CHECK(is_nan(fp32, cdna3_truncated({}, wide, wide_b, scalar(fp32, 0))));
  CHECK(cdna2_pairwise(4, vector_of(fp16, {p2(-20), 0, 0, 0}), vector_of(fp16, {1, 1, 1, 1}),
                       scalar(fp32, 0)) == 0);
  CHECK(cdna1_exact(4, vector_of(fp16, {p2(-20), 0, 0, 0}), vector_of(fp16, {1, 1, 1, 1}),
                    scalar(fp32, 0)) == code_of(fp32, p2(-20)));
}
