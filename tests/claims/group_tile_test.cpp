// What emulator/engine/kernels/group/group_tile.hpp leans on: its exact products over their whole
// domain, blocks at the very bounds of claims 2 and 3 and one step past them, and tiles that meet
// both kinds.

#include "emulator/engine/kernels/group/group_tile.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "emulator/catalogue/instruction_catalogue.hpp"
#include "emulator/engine/engines.hpp"
#include "emulator/engine/kernels/group/group_gemm.hpp"
#include "emulator/model/dot.hpp"
#include "tests/catch.hpp"
#include "tests/claims/matrices.hpp"
#include "tests/emulator/inputs/input_codes.hpp"
#include "tests/instruction_sets_here.hpp"

namespace guardbit::tests {
namespace {

using emulator::MatrixInstruction;

MatrixInstruction nvfp4_instruction() {
  return emulator::require_instruction(
      "sm_100", "tcgen05.mma.kind::mxf4nvf4.mMnNk64.f32.e2m1.e2m1.block_scale.scale_vec::4X.ue4m3",
      "test");
}
MatrixInstruction mxfp4_instruction() {
  return emulator::require_instruction(
      "sm_100", "tcgen05.mma.kind::mxf4nvf4.mMnNk64.f32.e2m1.e2m1.block_scale.scale_vec::4X.ue8m0",
      "test");
}

/// A block of 64 products and the numbers that the claims are about.
struct Block {
  std::vector<std::uint64_t> a = std::vector<std::uint64_t>(64), b = std::vector<std::uint64_t>(64),
                             a_scale, b_scale;
  float c = 0;

  std::uint64_t by_model(const MatrixInstruction& instruction) const {
    return emulator::dot(instruction, {a, b, std::bit_cast<std::uint32_t>(c), a_scale, b_scale});
  }
  /// The FP64 sum, its fraction after FP32's cleared.
  std::uint64_t by_claim(const MatrixInstruction& instruction) const {
    double sum = c;
    for (std::size_t g = 0; g < 4; ++g) sum += group(instruction, g);
    const auto kept = std::bit_cast<std::uint64_t>(sum) & ~((std::uint64_t{1} << 29) - 1);
    return std::bit_cast<std::uint32_t>(static_cast<float>(std::bit_cast<double>(kept)));
  }
  std::uint64_t by_tile(const MatrixInstruction& instruction, emulator::VectorSet set) const {
    const auto codes = [](const formats::Format& f, const std::vector<std::uint64_t>& list) {
      return matrix(
          f, 1, static_cast<std::int64_t>(list.size()),
          [&](std::int64_t, std::int64_t k) { return list[static_cast<std::size_t>(k)]; });
    };
    const auto a_codes = codes(instruction.a, a), b_codes = codes(instruction.b, b);
    const auto a_scales = codes(instruction.scale.format, a_scale),
               b_scales = codes(instruction.scale.format, b_scale);
    const auto c_code = codes(instruction.c, {std::bit_cast<std::uint32_t>(c)});
    auto d = c_code;
    emulator::MatrixProduct x = product_of(instruction, 1, 1, 64, a_codes, b_codes, c_code, d);
    x.a_scale = {emulator::codes_of(instruction.scale.format, a_scales.data()), 4};
    x.b_scale = {emulator::codes_of(instruction.scale.format, b_scales.data()), 1};
    emulator::group_gemm::multiply(instruction, x, 1, set);
    return emulator::codes_of(instruction.d, std::as_const(d).data())[0];
  }
  double group(const MatrixInstruction& instruction, std::size_t g) const {
    double sum = 0;
    for (std::size_t i = 16 * g; i < 16 * g + 16; ++i)
      sum += value_of(instruction.a, a[i]) * value_of(instruction.b, b[i]);
    return sum * value_of(instruction.scale.format, a_scale[g]) *
           value_of(instruction.scale.format, b_scale[g]);
  }
};

/// Scales whose exponents together are that.
std::pair<std::uint64_t, std::uint64_t> scales(const MatrixInstruction& instruction, int exponent,
                                               Random& random) {
  const int half = exponent / 2;
  return {code_with_exponent(instruction.scale.format, false, half, random.bits()),
          code_with_exponent(instruction.scale.format, false, exponent - half, random.bits())};
}

/// Elements with many zeros, so that groups cancel and vanish.
std::uint64_t element(Random& random) {
  return random.one_in(2) ? random.below(2) * 8 : random.below(16);
}

struct Spread {
  int lowest, highest, reach;
};
Spread spread_of(const MatrixInstruction& instruction, Random& random) {
  const bool is_power = instruction.scale.format == formats::e8m0;
  const int reach = 35 - 2 * instruction.scale.format.fraction_bits - 2;
  const int highest = is_power ? random.between(-113, 112) : random.between(-6, 15);
  const int floor = is_power ? highest - reach : std::max(-12, highest - reach);
  return {random.one_in(3) ? floor : random.between(floor, highest), highest, reach};
}

/// An addend at or between the bounds of claim 2, or zero.
float addend(const Spread& s, Random& random) {
  if (random.one_in(8)) return 0;
  const int least = s.highest - 12, most = std::min(s.lowest + s.reach, 125);
  const int exponent = random.one_in(3) ? least : random.between(least, std::max(least, most));
  const auto fraction = random.one_in(2) ? random.below(1U << 23) : random.below(4);
  const float magnitude =
      std::ldexp(1.0F + std::ldexp(static_cast<float>(fraction), -23), exponent);
  return random.one_in(2) ? -magnitude : magnitude;
}

Block block_within(const MatrixInstruction& instruction, Random& random) {
  const Spread s = spread_of(instruction, random);
  Block x;
  for (std::size_t i = 0; i < 64; ++i) {
    x.a[i] = element(random);
    x.b[i] = element(random);
  }
  for (int g = 0; g < 4; ++g) {
    const int exponent = g == 0   ? s.highest
                         : g == 1 ? s.lowest
                                  : random.between(s.lowest, s.highest);
    const auto [sa, sb] = scales(instruction, exponent, random);
    x.a_scale.push_back(sa);
    x.b_scale.push_back(sb);
  }
  x.c = addend(s, random);
  return x;
}

constexpr std::uint64_t one_half = 1, one = 2, minus_one_half = 9;

/// One product in group g.
void set_product(Block& x, std::size_t g, std::uint64_t a, std::uint64_t b) {
  x.a[16 * g] = a;
  x.b[16 * g] = b;
}

struct EdgeBlock {
  MatrixInstruction instruction;
  Block block;
  bool is_within = false;
};

/// Blocks at the claims' bounds and one step past them.
std::vector<EdgeBlock> edge_blocks() {
  const MatrixInstruction mxfp4 = mxfp4_instruction(), nvfp4 = nvfp4_instruction();
  std::vector<EdgeBlock> blocks;
  const auto add = [&](const MatrixInstruction& instruction, const Block& x, bool is_within) {
    blocks.push_back({instruction, x, is_within});
  };
  // E is 0 by a group of scale 1. An addend of 2^-13 + 2^-36 loses its last bit...
  Block x;
  x.a_scale = x.b_scale = {127, 127, 127, 127};
  set_product(x, 0, one, one);
  x.c = -(0x1p-13F + 0x1p-36F);
  add(mxfp4, x, false);
  x.c *= 2;
  add(mxfp4, x, true);

  // ... and a group of scale 2^-34 the product 2^-36, beside a group or an addend of exponent 0.
  x.c = 0;
  set_product(x, 1, one_half, minus_one_half);
  x.a_scale[1] = 127 - 34;
  add(mxfp4, x, false);
  Block beside_addend = x;
  set_product(beside_addend, 0, 0, 0);
  beside_addend.c = 1;
  add(mxfp4, beside_addend, false);
  x.a_scale[1] = beside_addend.a_scale[1] = 127 - 33;
  add(mxfp4, x, true);
  add(mxfp4, beside_addend, true);

  // The same by NVFP4's smallest scales, 28 binades below its largest.
  x.a_scale = x.b_scale = {0x78, 1, 0, 0};
  add(nvfp4, x, false);
  x.a_scale = {0x78, 0x10, 0, 0};  // 27 below
  add(nvfp4, x, true);

  // Sums that are no multiples of 2^-149.
  Block small;
  small.a_scale = small.b_scale = {52, 52, 52, 52};
  set_product(small, 0, one, one);
  small.c = -0x1p-126F;
  add(mxfp4, small, false);
  small.a_scale[0] = 53;
  add(mxfp4, small, true);

  return blocks;
}

/// A subnormal addend's exponent is -126, which cuts 2^-162.
Block subnormal_block() {
  Block x;
  x.a_scale = x.b_scale = {47, 47, 47, 47};
  set_product(x, 0, one_half, minus_one_half);
  x.c = 0x1p-140F;
  return x;
}

}  // namespace

TEST_CASE("group tiles: sums times scales are exact, whatever the sum and the significands") {
  int wrong = 0;
  constexpr int largest_sum = 4 * 16 * 36;
  for (int sum = -largest_sum; sum <= largest_sum; ++sum) {
    for (int a = 0; a < 16; ++a) {
      for (int b = 0; b < 16; ++b) {
        const double start = emulator::groups::first_sum_value;
        const double scaled = std::fma(start + sum, b, -start * b);
        wrong += scaled * a == static_cast<double>(sum * a * b) ? 0 : 1;
      }
    }
    const auto high = static_cast<std::uint64_t>(emulator::groups::first_sum + sum);
    wrong += std::bit_cast<double>(high << 32) == emulator::groups::first_sum_value + sum ? 0 : 1;
  }
  CHECK(wrong == 0);
}

TEST_CASE("group tiles: within the claims' bounds a block is its FP64 sum, rounded once") {
  Random random(21);
  for (const MatrixInstruction& instruction : {nvfp4_instruction(), mxfp4_instruction()}) {
    int wrong = 0;
    for (int i = 0; i < 4000; ++i) {
      const Block x = block_within(instruction, random);
      wrong += x.by_model(instruction) == x.by_claim(instruction) ? 0 : 1;
    }
    INFO(std::string_view(instruction.name));
    CHECK(wrong == 0);
  }
}

TEST_CASE("group tiles: one step past the claims' bounds is too far") {
  for (const EdgeBlock& x : edge_blocks()) {
    INFO(std::string_view(x.instruction.name));
    CHECK((x.block.by_model(x.instruction) == x.block.by_claim(x.instruction)) == x.is_within);
  }
}

TEMPLATE_TEST_CASE("group tiles: tiles know what is past the claims' bounds", "[cpu]", Avx512, Avx2,
                   Neon) {
  if (!can_test(TestType::sets)) return;
  constexpr auto set = TestType::vector_set;
  REQUIRE(emulator::group_gemm::accepts(nvfp4_instruction(), set));
  std::vector<EdgeBlock> blocks = edge_blocks();
  blocks.push_back({mxfp4_instruction(), subnormal_block()});
  for (const EdgeBlock& x : blocks) {
    INFO(std::string_view(x.instruction.name));
    CHECK(x.block.by_tile(x.instruction, set) == x.block.by_model(x.instruction));
  }
}

TEMPLATE_TEST_CASE("group tiles: blocks of both kinds side by side are the model's", "[cpu]",
                   Avx512, Avx2, Neon) {
  if (!can_test(TestType::sets)) return;
  constexpr auto set = TestType::vector_set;
  Random random(22);
  constexpr std::int64_t m = 5, n = 35, k = 256;
  for (const MatrixInstruction& instruction : {nvfp4_instruction(), mxfp4_instruction()}) {
    REQUIRE(emulator::group_gemm::accepts(instruction, set));
    std::int64_t wrong = 0;
    for (int turn = 0; turn < 24; ++turn) {
      const Spread s = spread_of(instruction, random);
      // One place of A's scales and one of C may lie past the bounds, by a few steps.
      const auto exponent = [&, is_past = turn % 3 == 0](std::int64_t i, std::int64_t g) {
        const bool here = is_past && i == 2 && g == 5;
        return here ? s.highest / 2 + random.between(-40, 4)
                    : random.between(s.lowest / 2, s.highest / 2);
      };
      const auto scale = [&](std::int64_t i, std::int64_t g) {
        return code_with_exponent(instruction.scale.format, false, exponent(i, g), random.bits());
      };
      const auto any = [&](std::int64_t, std::int64_t) { return element(random); };
      const auto a = matrix(instruction.a, m, k, any), b = matrix(instruction.b, k, n, any);
      const auto a_scale = matrix(instruction.scale.format, m, k / 16, scale);
      const auto b_scale =
          matrix(instruction.scale.format, k / 16, n, [&](std::int64_t, std::int64_t) {
            return code_with_exponent(
                instruction.scale.format, false,
                random.between(s.lowest - s.lowest / 2, s.highest - s.highest / 2), random.bits());
          });
      const auto c = matrix(instruction.c, m, n, [&](std::int64_t i, std::int64_t j) {
        const bool is_past = turn % 4 == 0 && i == 1 && j == 7;
        const float x = addend(s, random);
        return std::bit_cast<std::uint32_t>(is_past ? x * 0x1p-9F : x);
      });
      auto expected = matrix(instruction.d, m, n, [](std::int64_t, std::int64_t) { return 0U; });
      auto got = expected;
      for (auto* const d : {&expected, &got}) {
        emulator::MatrixProduct x = product_of(instruction, m, n, k, a, b, c, *d);
        x.a_scale = {emulator::codes_of(instruction.scale.format, a_scale.data()), k / 16};
        x.b_scale = {emulator::codes_of(instruction.scale.format, b_scale.data()), n};
        emulator::multiply(
            emulator::require_engine(d == &got ? TestType::name : "reference", instruction),
            instruction, x, 1);
      }
      for (std::size_t i = 0; i < got.size(); ++i) wrong += got[i] == expected[i] ? 0 : 1;
    }
    INFO(std::string_view(instruction.name));
    CHECK(wrong == 0);
  }
}

}  // namespace guardbit::tests
