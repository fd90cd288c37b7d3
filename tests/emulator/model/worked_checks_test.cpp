#include <array>
#include <bit>
#include <cmath>
#include <stdexcept>
#include <string>
#include <vector>

#include "emulator/catalogue/instruction_catalogue.hpp"
#include "emulator/model/batch.hpp"
#include "emulator/model/dot.hpp"
#include "formats/codec.hpp"
#include "tests/catch.hpp"

// Vectors worked out by hand: NUMERICS 1.7, and the questions Q1 ... of section 2 with the answers
// that an H200 gave (section 0.1).
namespace {

using namespace guardbit;
using emulator::MatrixInstruction;
using formats::Format;

using Codes = std::vector<std::uint64_t>;
using Values = std::vector<double>;

double p2(int exponent) { return std::ldexp(1.0, exponent); }

std::uint64_t code_of(const Format& f, double value) {
  const std::uint64_t bits = std::bit_cast<std::uint64_t>(value);
  const std::uint64_t code = formats::convert(formats::fp64, bits, f);
  if (formats::convert(f, code, formats::fp64) != bits) {
    throw std::invalid_argument("a test asks for a number that its format lacks");
  }
  return code;
}

/// One instruction, asked for one output element. Operands that are not given are +0.
class Unit {
 public:
  Unit(std::string_view arch, std::string_view name, int toolkit = emulator::newest_toolkit)
      : instruction_(emulator::require_instruction(arch, name, "test", toolkit)) {}

  std::uint64_t operator()(const Values& a, const Values& b, double c) const {
    return codes(codes_of(instruction_.a, a), codes_of(instruction_.b, b),
                 code_of(instruction_.c, c));
  }
  std::uint64_t codes(Codes a, Codes b, std::uint64_t c) const {
    const auto k = static_cast<std::size_t>(emulator::stored_k(instruction_, instruction_.shape.k));
    a.resize(k);
    b.resize(k);
    return emulator::dot(instruction_, {a, b, c});
  }
  std::uint64_t scaled(const Values& a, const Values& b, const Values& a_scale,
                       const Values& b_scale, double c) const {
    const auto k = static_cast<std::size_t>(instruction_.shape.k);
    Codes ca = codes_of(instruction_.a, a), cb = codes_of(instruction_.b, b);
    ca.resize(k);
    cb.resize(k);
    const Codes sa = codes_of(instruction_.scale.format, a_scale),
                sb = codes_of(instruction_.scale.format, b_scale);
    return emulator::dot(instruction_, {ca, cb, code_of(instruction_.c, c), sa, sb});
  }
  std::uint64_t result(double value) const { return code_of(instruction_.d, value); }

 private:
  static Codes codes_of(const Format& f, const Values& values) {
    Codes codes;
    for (const double value : values) codes.push_back(code_of(f, value));
    return codes;
  }

  MatrixInstruction instruction_;
};

const Unit& hopper_f16() {
  static const Unit unit("sm_90", "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32");
  return unit;
}
const Unit& hopper_f16_narrow() {
  static const Unit unit("sm_90", "mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16");
  return unit;
}
const Unit& hopper_bf16() {
  static const Unit unit("sm_90", "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32");
  return unit;
}
const Unit& hopper_tf32() {
  static const Unit unit("sm_90", "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32");
  return unit;
}
const Unit& hopper_fp8() {
  static const Unit unit("sm_90", "wgmma.mma_async.sync.aligned.m64n8k32.f32.e4m3.e4m3");
  return unit;
}

constexpr std::uint64_t nan32 = 0x7FFFFFFF;

}  // namespace

// ---- NUMERICS 1.7
// ---------------------------------------------------------------------------------

TEST_CASE("one probe tells the machines apart") {
  struct Answer {
    std::string_view arch, name;
    double value;
  };
  const std::vector<Answer> answers = {
      {"sm_70", "mma.sync.aligned.m8n8k4.row.col.f32.f16.f16.f32", 0},
      {"sm_70", "wmma.mma.sync.aligned.row.col.m16n16k16.f32.f32", 0},
      {"sm_75", "mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32", -0.5},
      {"sm_80", "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32", -0.5},
      {"sm_80", "mma.sync.aligned.m16n8k8.row.col.f32.bf16.bf16.f32", -0.5},
      {"sm_86", "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32", -0.5},
      {"sm_89", "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32", -0.5},
      {"sm_90", "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32", -0.75},
      {"sm_90", "wgmma.mma_async.sync.aligned.m64n256k16.f32.bf16.bf16", -0.75},
      {"sm_100", "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32", -0.75},
      {"sm_100", "tcgen05.mma.kind::f16.m128n64k16.f32.f16.f16", -0.75},
      {"sm_120", "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32", -0.75},
      {"sm_89", "mma.sync.aligned.m16n8k32.row.col.f32.e5m2.e5m2.f32", 0},
      {"sm_90", "wgmma.mma_async.sync.aligned.m64n8k32.f32.e5m2.e5m2", 0},
      {"sm_100", "tcgen05.mma.kind::f8f6f4.m64n8k32.f32.e5m2.e5m2", -0.75},
      {"sm_120", "mma.sync.aligned.m16n8k32.row.col.f32.e5m2.e5m2.f32", -0.75},
      {"cdna1", "v_mfma_f32_32x32x4f16", -0.875},
      {"cdna2", "v_mfma_f32_32x32x4bf16", -0.375},
      {"cdna2", "v_mfma_f32_32x32x4bf16_1k", 0},
      {"cdna2", "v_mfma_f32_32x32x4f16", 0},
      {"cdna3", "v_mfma_f32_32x32x8_f16", -0.5},
      {"cdna3", "v_mfma_f32_16x16x32_bf8_bf8", -1},
      {"rdna3", "v_wmma_f32_16x16x16_f16", -1.875},
      {"gfx1100", "v_wmma_f32_16x16x16_bf16", -1.875},
      {"rdna4", "v_wmma_f32_16x16x16_f16_w32", -1},
      {"gfx1201", "v_wmma_f32_16x16x16_bf16_w64", -1},
      {"rdna4", "v_dot4_f32_bf8_bf8", -1.5},
  };
  for (const Answer& answer : answers) {
    INFO(answer.arch << " " << answer.name);
    const Unit unit(answer.arch, answer.name);
    CHECK(unit({-p2(13), -0.5, -0.25, -0.125}, {p2(10), 1, 1, 1}, p2(23)) ==
          unit.result(answer.value));
  }
}

TEST_CASE("the same probe in NVFP4 loses nothing") {
  // The first group is -2^8 * 2^8 * 2^7 = -2^23, the second -1 * 0.875.
  Values a(16, -4), b(16, 4);
  a.insert(a.end(), {-0.5, -0.5, -0.5});
  b.insert(b.end(), {1, 0.5, 0.5});
  for (
      const auto& [arch, name] :
      {std::pair{
           "sm_120",
           "mma.sync.aligned.m16n8k64.row.col.kind::mxf4nvf4.block_scale.scale_vec::4X.f32.e2m1.e2m1.f32.ue4m3"},
       std::pair{
           "sm_100",
           "tcgen05.mma.kind::mxf4nvf4.mMnNk64.f32.e2m1.e2m1.block_scale.scale_vec::4X.ue4m3"}}) {
    const Unit unit(arch, name);
    CHECK(unit.scaled(a, b, {p2(8), 0.875, 1, 1}, {p2(7), 1, 1, 1}, p2(23)) == unit.result(-0.875));
    CHECK(unit.scaled({}, {}, {p2(8), 0.875, 1, 1}, {p2(7), 1, 1, 1}, 3) == unit.result(3));
  }
}

TEST_CASE("E8M13 loses the bit that a carry pushes out") {
  const Values a = {1, 1, p2(-6)}, b = {1, 1, p2(-7)};
  CHECK(Unit("sm_89", "mma.sync.aligned.m16n8k32.row.col.f32.e5m2.e5m2.f32")(a, b, 0) ==
        0x40000000);
  CHECK(Unit("sm_90", "wgmma.mma_async.sync.aligned.m64n8k32.f32.e5m2.e5m2")(a, b, 0) ==
        0x40000000);
  CHECK(Unit("sm_120", "mma.sync.aligned.m16n8k32.row.col.f32.e5m2.e5m2.f32")(a, b, 0) ==
        0x40000200);
  CHECK(hopper_f16()(a, b, 0) == 0x40000200);
}

TEST_CASE("products are aligned as they are, not normalised") {
  const Unit volta("sm_70", "mma.sync.aligned.m8n8k4.row.col.f32.f16.f16.f32");
  const Values tail = {p2(-11), p2(-11)};
  CHECK(volta({1.5, tail[0], tail[1], 0}, {1.5, p2(-12), p2(-12), 0}, 0) == 0x40100001);
  CHECK(volta({1, tail[0], tail[1], 0}, {2.25, p2(-12), p2(-12), 0}, 0) == 0x40100000);
  // Q8: a subnormal factor makes the product's exponent 9 larger than its leading bit.
  CHECK(hopper_f16()({p2(-24), p2(-12)}, {p2(15), p2(-13)}, 0) == 0x3B000000);
}

TEST_CASE("CDNA3 floors the addend beside larger products") {
  const float tiny = -1e-6F;
  const Unit f16("cdna3", "v_mfma_f32_32x32x8_f16");
  CHECK(f16({2048, 2048}, {2048, -2048}, static_cast<double>(tiny)) == f16.result(-0.25));
  const Unit bf8("cdna3", "v_mfma_f32_16x16x32_bf8_bf8");  // drops it instead
  CHECK(bf8({2048, 2048}, {2048, -2048}, static_cast<double>(tiny)) == bf8.result(0));
  // A product of 2^128 is an infinity at once, on an H200 it is not (Q7).
  const Unit bf16("cdna3", "v_mfma_f32_32x32x8_bf16");
  const std::uint64_t answer = bf16({p2(64), p2(64)}, {p2(64), -p2(64)}, 0);
  CHECK((answer & 0x7FFFFFFF) > 0x7F800000);
  CHECK(hopper_bf16()({p2(64), p2(64)}, {p2(64), -p2(64)}, 0) == 0);
}

TEST_CASE("CDNA1 keeps subnormals, CDNA2 flushes them") {
  const Unit exact("cdna1", "v_mfma_f32_32x32x4f16"), flushing("cdna2", "v_mfma_f32_32x32x4f16");
  CHECK(exact({p2(-20)}, {1}, 0) == exact.result(p2(-20)));
  CHECK(flushing({p2(-20)}, {1}, 0) == 0);
  CHECK(flushing({p2(-14)}, {1}, 0) == flushing.result(p2(-14)));
  CHECK(flushing({0}, {0}, p2(-130)) == 0);
  // A zero operand keeps its sign: -0 + (-0).
  CHECK(flushing.codes({0x8000, 0x8000, 0x8000, 0x8000}, {0x3C00, 0x3C00, 0x3C00, 0x3C00},
                       0x80000000) == 0x80000000);
}

// ---- NUMERICS 4.2
// ---------------------------------------------------------------------------------

TEST_CASE("RDNA3 subtracts by inverting bits, RDNA4 does not") {
  const Unit rdna3("rdna3", "v_dot2_f32_f16"), rdna4("rdna4", "v_dot2_f32_f16");
  CHECK(rdna3({1, 1}, {1, 1}, -2) == rdna3.result(p2(-23)));
  CHECK(rdna4({1, 1}, {1, 1}, -2) == 0);
  CHECK(rdna3({1, -1}, {1, 1}, 0) == rdna3.result(-p2(-24)));
  CHECK(rdna4({1, -1}, {1, 1}, 0) == 0);
  // The sign of a zero addend decides which of the two is inverted.
  CHECK(rdna3.codes({0x3C00, 0xBC00}, {0x3C00, 0x3C00}, 0x80000000) == rdna3.result(p2(-24)));
}

TEST_CASE("RDNA4 floors an addend beside larger products, and drops one below the grid") {
  const Unit rdna3("rdna3", "v_dot2_f32_f16"), rdna4("rdna4", "v_dot2_f32_f16");
  CHECK(rdna4({2048, 2048}, {2048, -2048}, -2.0625) == rdna4.result(-2.25));
  CHECK(rdna4({2048, 2048}, {2048, -2048}, -p2(-20)) == 0);
  CHECK(rdna3({2048, 2048}, {2048, -2048}, -p2(-20)) == rdna3.result(0.25));
  // On the grid of the smallest numbers even a subnormal addend counts.
  const Unit brain("rdna4", "v_dot2_f32_bf16");
  CHECK(brain({p2(-51), p2(-51)}, {p2(-51), -p2(-51)}, -p2(-149)) == brain.result(-p2(-126)));
}

TEST_CASE("RDNA4 takes k in another order in waves of 32") {
  const Unit w32("rdna4", "v_wmma_f32_16x16x16_f16_w32"),
      w64("rdna4", "v_wmma_f32_16x16x16_f16_w64");
  const Values a = {4096, 0, 0, 0, 1, 0, 0, 0, 4096}, b = {4096, 0, 0, 0, 1, 0, 0, 0, -4096};
  CHECK(w32(a, b, 0) == w32.result(1));
  CHECK(w64(a, b, 0) == 0);
}

TEST_CASE("RDNA narrows after every step: F16 is rounded, BF16 is cut") {
  const Values a = {1, 1}, b = {p2(-8), p2(-9)};
  const Values half = {p2(-11), p2(-12)};
  for (const auto& [arch, suffix] : {std::pair{"rdna3", ""}, std::pair{"rdna4", "_w64"}}) {
    INFO(arch);
    const Unit brain(arch, std::string("v_wmma_bf16_16x16x16_bf16") + suffix);
    CHECK(brain(a, b, 1) == brain.result(1));
    const Unit f16(arch, std::string("v_wmma_f16_16x16x16_f16") + suffix);
    CHECK(f16(a, half, 1) == f16.result(1 + p2(-10)));
    // A second block of the same products would carry a sum that was not narrowed further.
    Values twice = {1, 1, 0, 0, 1, 1}, more = {p2(-12), 0, 0, 0, p2(-12), p2(-12)};
    CHECK(f16(twice, more, 1) == f16.result(1));
  }
}

TEST_CASE("RDNA's NaNs say where they come from") {
  const Unit rdna4("rdna4", "v_dot2_f32_f16"), fp8("rdna4", "v_dot4_f32_bf8_bf8");
  const Unit half("rdna3", "v_wmma_f16_16x16x16_f16"), brain("rdna3", "v_wmma_bf16_16x16x16_bf16");
  const std::uint64_t factor = 0xFFC00A3D, invalid = 0xFFC00000;
  CHECK(rdna4.codes({0x7E01, 0x7C00}, {0x3C00, 0}, 0x7FC12345) == factor);
  CHECK(rdna4.codes({0x3C00, 0x7C00}, {0x3C00, 0}, 0x7FC12345) == invalid);
  CHECK(rdna4.codes({0x3C00, 0x3C00}, {0x3C00, 0}, 0x7F812345) == 0x7FC12345);
  CHECK(rdna4.codes({0x3C00, 0x7C00}, {0x3C00, 0x3C00}, 0xFF800000) == invalid);
  CHECK(fp8.codes({0x7C, 0, 0, 0}, {0, 0, 0, 0}, 0) == factor);
  CHECK(half.codes({0x7E01}, {0x3C00}, 0) == 0xFE3D);
  CHECK(brain.codes({0x7FC1}, {0x3F80}, 0) == 0xFFFD);
  CHECK(half.codes({0x7C00}, {0}, 0) == 0xFE00);
}

// ---- The questions of section 2
// -------------------------------------------------------------------

TEST_CASE("Q1: the exponent of a zero addend in f16") {
  // A tie, then a tail of 2^-43 to 2^-48: one while the tail is kept.
  const auto words = [](const Unit& unit, double c) {
    std::string text;
    for (int tail = 43; tail <= 48; ++tail) {
      text += std::to_string(unit({p2(-12), p2(-24)}, {p2(-13), p2(24 - tail)}, c));
    }
    return text;
  };
  const Unit wgmma("sm_90", "wgmma.mma_async.sync.aligned.m64n8k16.f16.f16.f16");
  const Unit turing("sm_75", "mma.sync.aligned.m16n8k8.row.col.f16.f16.f16.f16");
  const Unit volta("sm_70", "mma.sync.aligned.m8n8k4.row.col.f16.f16.f16.f16");
  for (const double c : {0.0, -0.0}) {
    CHECK(words(hopper_f16_narrow(), c) == "111100");
    CHECK(words(wgmma, c) == "111100");
    CHECK(words(turing, c) == "110000");
    CHECK(words(volta, c) == "000000");
  }
}

TEST_CASE("Q2: zeros and underflowed sums are positive") {
  CHECK(hopper_bf16()({-p2(-75)}, {p2(-80)}, 0) == 0);
  CHECK(hopper_bf16()({-p2(-80)}, {p2(-80)}, 0) == 0);
  CHECK(hopper_f16_narrow()({-p2(-12)}, {p2(-13)}, 0) == 0);
  CHECK(hopper_bf16()(Values(16, -0.0), Values(16, 1), -0.0) == 0);
  CHECK(hopper_bf16()({1, 1}, {1, -1}, -0.0) == 0);
}

TEST_CASE("Q3: e0 and the kept bits below the normal range") {
  const double factors[8][2] = {{31, 1}, {63, 1},  {127, 1}, {15, 17},
                                {7, 73}, {33, 31}, {23, 89}, {45, 91}};
  const Unit ampere("sm_80", "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32");
  const Unit wgmma("sm_90", "wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16");
  const Unit quarter("sm_90", "wmma.mma.sync.aligned.row.col.m16n16k8.f32.tf32.tf32.f32");
  for (int j = 5; j <= 12; ++j) {
    const Values a = {std::ldexp(factors[j - 5][0], -78), p2(-78)};
    const Values b = {std::ldexp(factors[j - 5][1], -71 - j), p2(-71 - j)};
    for (const Unit* unit : {&hopper_bf16(), &hopper_tf32(), &wgmma, &quarter}) {
      CHECK((*unit)(a, b, 0) == (j <= 9 ? 1U : 0U));
      CHECK((*unit)(a, b, p2(-149)) == 1);  // Q3b: a subnormal addend sits at -126
    }
    CHECK(ampere(a, b, 0) == (j <= 7 ? 1U : 0U));
  }
  CHECK(hopper_bf16()({3 * p2(-78), p2(-78)}, {p2(-73), p2(-73)}, p2(-149)) == 2);
  CHECK(hopper_f16_narrow()({p2(-12), p2(-20)}, {p2(-13), p2(-20)}, p2(-23)) == 2);  // Q3c
}

TEST_CASE("Q4 and Q5: FP8 on Hopper keeps 13 bits, of the addend too") {
  CHECK(hopper_fp8()({}, {}, 1 + p2(-23)) == 0x3F800000);
  CHECK(hopper_fp8()({}, {}, 1 + p2(-13)) == 0x3F800400);
  CHECK(hopper_fp8()({}, {}, 1 + p2(-13) + p2(-14)) == 0x3F800400);
  CHECK(hopper_fp8()({-p2(-7)}, {p2(-7)}, 1) == 0x3F800000);
  const Unit narrow("sm_90", "wgmma.mma_async.sync.aligned.m64n8k32.f16.e4m3.e4m3");
  CHECK(narrow({1, p2(-5), p2(-6)}, {1, p2(-6), p2(-7)}, 0) == 0x3C01);
  CHECK(narrow({1, p2(-5), p2(-7)}, {1, p2(-6), p2(-7)}, 0) == 0x3C00);
}

TEST_CASE("Q6, Q9 and Q12: one rounding, truncation of magnitudes, F of the f16 path") {
  CHECK(hopper_f16_narrow()({.5, .5, .5, .5}, {1, 1, p2(-10), p2(-23)}, 0) == 0x3C01);
  CHECK(hopper_f16()({-p2(-13)}, {p2(-13)}, 1) == 0x3F800000);
  for (int k = 20; k <= 30; ++k) {
    CHECK(hopper_f16_narrow()({p2(-11), p2(-10)}, {1, p2(10 - k)}, 1) ==
          (k <= 25 ? 0x3C01U : 0x3C00U));
  }
}

TEST_CASE("Q7: overflow only in the result") {
  const auto cancelled = [](double c) {
    return hopper_bf16()({p2(64), -p2(64)}, {p2(64), p2(64)}, c);
  };
  CHECK(cancelled(p2(103)) == 0x73000000);
  CHECK(cancelled(p2(102)) == 0);
  CHECK(hopper_bf16()({p2(64)}, {p2(64)}, -p2(103)) == 0x7F7FFFFF);
  CHECK(hopper_bf16()({p2(64)}, {p2(64)}, -p2(102)) == 0x7F800000);
  CHECK(hopper_bf16()({-p2(64)}, {p2(64)}, 0) == 0xFF800000);
  CHECK(hopper_f16_narrow()({p2(15)}, {2}, -p2(4)) == 0x7C00);  // 65520
  CHECK(hopper_f16_narrow()({p2(15)}, {2}, -p2(5)) == 0x7BFF);
}

TEST_CASE("Q10: TF32 registers lose their low bits") {
  const auto product = [](std::uint32_t a, std::uint32_t b) {
    const auto operand = [](const std::uint32_t& word) {
      return emulator::codes_of(formats::tf32, reinterpret_cast<const std::byte*>(&word))[0];
    };
    return hopper_tf32().codes({operand(a)}, {operand(b)}, 0);
  };
  CHECK(product(0x3F801FFF, 0x3F800000) == 0x3F800000);
  CHECK(product(0x7F800001, 0x3F800000) == 0x7F800000);
  CHECK(product(0x00001FFF, 0x7F800000) == nan32);
}

TEST_CASE("Q11: infinities, and one NaN") {
  CHECK(hopper_f16().codes({0xFE01}, {0x3C00}, 0) == nan32);
  CHECK(hopper_f16_narrow().codes({0x7C01}, {0x3C00}, 0) == 0x7FFF);
  CHECK(hopper_f16().codes({0x7C00, 0xFC00}, {0x3C00, 0x3C00}, 0) == nan32);
  CHECK(hopper_f16().codes({0x7C00}, {0x3C00}, 0xFF800000) == nan32);
  CHECK(hopper_f16().codes({0x7C00}, {0x8000}, 0) == nan32);
  CHECK(hopper_f16().codes({0x7C00}, {0xBC00}, 0) == 0xFF800000);
  CHECK(hopper_f16().codes({0x3C00}, {0x3C00}, 0xFFC00000) == nan32);
  CHECK(hopper_f16().codes({0x3C00}, {0x3C00}, 0xFF800000) == 0xFF800000);
  CHECK(hopper_fp8().codes({0xFF}, {0}, 0) == nan32);
}

TEST_CASE("Q13: TF32 is one block of eight, in WMMA two of four") {
  const Values big_first = {p2(13), p2(13), 0, 0, .125, .125, .125, .125};
  const Values b_first = {p2(13), -p2(13), 0, 0, 1, 1, 1, 1};
  const Values big_last = {.125, .125, .125, .125, p2(13), p2(13), 0, 0};
  const Values b_last = {1, 1, 1, 1, p2(13), -p2(13), 0, 0};
  CHECK(hopper_tf32()(big_first, b_first, 0) == 0);
  CHECK(hopper_tf32()(big_last, b_last, 0) == 0);
  const Unit wmma("sm_90", "wmma.mma.sync.aligned.row.col.m16n16k8.f32.tf32.tf32.f32");
  CHECK(wmma(big_first, b_first, 0) == wmma.result(0.5));
  CHECK(wmma(big_last, b_last, 0) == 0);
}

TEST_CASE("Q14: a sparse block counts stored products") {
  // M and -M in the first and the last of 16 stored products: one block on Hopper, two on Ampere.
  Values a(16, p2(-10)), b(16, p2(-10));
  a[0] = a[15] = b[0] = p2(10);
  b[15] = -p2(10);
  const std::string_view name =
      "mma.sp::ordered_metadata.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32";
  CHECK(Unit("sm_90", name)(a, b, 0) == 0);
  a[15] = 0;
  a[7] = p2(10);
  b[7] = -p2(10);
  const Unit ampere("sm_80", name);
  CHECK(ampere(a, b, 0) == ampere.result(7 * p2(-20)));
}

TEST_CASE("Q15: FP64 is a chain of fused multiply-adds in ascending k") {
  const Unit unit("sm_90", "mma.sync.aligned.m16n8k4.row.col.f64.f64.f64.f64");
  const Values ones(4, 1);
  CHECK(unit({1, p2(-53), p2(-53), -1}, ones, 0) == 0);
  CHECK(unit(Values(4, p2(-53)), ones, 1) == unit.result(1));
  const Unit up("sm_90", "mma.sync.aligned.m8n8k4.row.col.rp.f64.f64.f64.f64");
  CHECK(up(Values(4, p2(-53)), ones, 1) == up.result(1 + p2(-50)));
  // Q15b: the NaN of c comes back, made quiet.
  CHECK(unit.codes({0}, {0}, 0x7FFE37D0589CC1C1) == 0x7FFE37D0589CC1C1);
  CHECK(unit.codes({0}, {0}, 0x7FF637D0589CC1C1) == 0x7FFE37D0589CC1C1);
}

TEST_CASE("Q16: integers saturate once, after the exact total") {
  const Unit wraps("sm_90", "mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32");
  const Unit saturates("sm_90", "mma.sync.aligned.m16n8k32.row.col.satfinite.s32.s8.s8.s32");
  for (const std::size_t last : {1U, 16U, 31U}) {
    Codes a(32, 0), b(32, 0);
    a[0] = b[0] = b[last] = 127;
    a[last] = 0x81;  // -127
    CHECK(saturates.codes(a, b, 0x7FFFFFFF) == 0x7FFFFFFF);
    CHECK(wraps.codes(a, b, 0x7FFFFFFF) == 0x7FFFFFFF);
    a[last] = 0;
    CHECK(saturates.codes(a, b, 0x7FFFFFFF) == 0x7FFFFFFF);
    CHECK(wraps.codes(a, b, 0x7FFFFFFF) == 0x80003F00);
    b[0] = 0x81;
    CHECK(saturates.codes(a, b, 0x80000000) == 0x80000000);
    CHECK(wraps.codes(a, b, 0x80000000) == 0x7FFFC0FF);
  }
}

TEST_CASE("Q17: m8n8k4 without its unit is a chain of FFMA") {
  const Values a = {1, 1.5 * p2(-12)}, b = {1, p2(-12)};
  const std::string_view name = "mma.sync.aligned.m8n8k4.row.col.f32.f16.f16.f32";
  CHECK(Unit("sm_90", name)(a, b, 0) == 0x3F800001);
  CHECK(Unit("sm_70", name)(a, b, 0) == 0x3F800000);
}

TEST_CASE("Q18: FP8 mma.sync on Hopper depends on the toolkit") {
  const std::string_view name = "mma.sync.aligned.m16n8k32.row.col.f32.e5m2.e5m2.f32";
  const Unit chained("sm_90", name, 1300), parallel("sm_90", name, 1204);
  // k % 4 in {0, 1} goes first: a 1 there is lost beside M and -M in the second half, when chained.
  const Values ones_first = {1, 0, p2(14), p2(14)}, b_first = {1, 0, p2(14), -p2(14)};
  CHECK(chained(ones_first, b_first, 0) == 0);
  CHECK(parallel(ones_first, b_first, 0) == parallel.result(1));
  const Values ones_last = {p2(14), p2(14), 1, 0}, b_last = {p2(14), -p2(14), 1, 0};
  CHECK(chained(ones_last, b_last, 0) == chained.result(1));
  CHECK(parallel(ones_last, b_last, 0) == parallel.result(1));
}
