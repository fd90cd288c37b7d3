// Claim 2 of emulator/engine/kernels/fused/fused_tile.hpp: what tiles take the exponents of FP32's
// smallest numbers for does not matter, next to the smallest normal products and next to none.

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "emulator/catalogue/instruction_catalogue.hpp"
#include "emulator/engine/engines.hpp"
#include "emulator/engine/kernels/fused/fused_arithmetic.hpp"
#include "emulator/engine/kernels/fused/fused_gemm.hpp"
#include "emulator/engine/kernels/shared/vector_set.hpp"
#include "tests/catch.hpp"
#include "tests/claims/matrices.hpp"
#include "tests/emulator/inputs/input_codes.hpp"
#include "tests/instruction_sets_here.hpp"

namespace guardbit::tests {
namespace {

using emulator::MatrixInstruction;
using emulator::VectorSet;
using emulator::fused::FusedInstruction;

/// Instructions with results of FP32's range, one of each arithmetic.
std::vector<MatrixInstruction> representatives(VectorSet set) {
  std::vector<MatrixInstruction> instructions;
  std::vector<std::array<int, 5>> seen;
  for (const MatrixInstruction& instruction : emulator::catalogue()) {
    if (!emulator::fused_gemm::accepts(instruction, set) ||
        instruction.sparsity.group_elements != 0)
      continue;
    const std::optional<FusedInstruction> x = emulator::fused::fused_instruction(instruction);
    if (!x || x->result == emulator::fused::Result::fp16 || x->scale_k != 0) continue;
    const std::array<int, 5> key = {x->block_k, x->kept_fraction_bits, instruction.a.fraction_bits,
                                    instruction.a.exponent_bits, static_cast<int>(x->composition)};
    if (std::find(seen.begin(), seen.end(), key) != seen.end()) continue;
    seen.push_back(key);
    instructions.push_back(instruction);
  }
  return instructions;
}

/// Zeros and FP32's smallest numbers, of every exponent to a little above the least unit.
std::uint64_t small_addend(Random& random) {
  const std::uint64_t sign = random.bits() << 31 & 0x80000000U;
  const std::uint64_t exponent = random.below(12) << 23;
  switch (random.below(4)) {
    case 0: return sign | exponent;
    case 1: return sign | exponent | 1;
    case 2: return sign | exponent | 0x7FFFFFU;
    default: return sign | exponent | (random.bits() & 0x7FFFFFU);
  }
}

/// Of products with these exponents, every other one zero.
std::int64_t mismatches(const MatrixInstruction& instruction, int a_exponent, int b_exponent,
                        Random& random, VectorSet set) {
  constexpr std::int64_t m = 16, n = 64;
  const std::int64_t k = 2 * instruction.shape.k;
  const auto factor = [&](const formats::Format& f, int exponent) {
    return [&random, f, exponent](std::int64_t, std::int64_t) {
      if (random.one_in(2)) return zero_code(f, random.one_in(2));
      return code_with_exponent(f, random.one_in(2), exponent, random.bits());
    };
  };
  const auto a = matrix(instruction.a, m, k, factor(instruction.a, a_exponent));
  const auto b = matrix(instruction.b, k, n, factor(instruction.b, b_exponent));
  const auto c =
      matrix(instruction.c, m, n, [&](std::int64_t, std::int64_t) { return small_addend(random); });
  auto expected = matrix(instruction.d, m, n, [](std::int64_t, std::int64_t) { return 0U; });
  auto got = expected;
  emulator::multiply(emulator::require_engine("reference", instruction), instruction,
                     product_of(instruction, m, n, k, a, b, c, expected), 1);
  std::int64_t wrong = 0;
  emulator::fused_gemm::multiply(instruction, product_of(instruction, m, n, k, a, b, c, got), 1,
                                 set);
  for (std::size_t i = 0; i < got.size(); ++i) wrong += got[i] == expected[i] ? 0 : 1;
  return wrong;
}

}  // namespace

TEMPLATE_TEST_CASE("exponents below FP32's normal numbers leave no trace in normal tiles", "[cpu]",
                   Avx512, Avx2, Neon) {
  if (!can_test(TestType::sets)) return;
  constexpr auto set = TestType::vector_set;
  const std::vector<MatrixInstruction> instructions = representatives(set);
  Random random(11);
  for (const MatrixInstruction& instruction : instructions) {
    const int lowest_a = std::max(-60, lowest_exponent(instruction.a));
    const int lowest_b = std::max(-60, lowest_exponent(instruction.b));
    for (int sum : {emulator::fused::lowest_product_exponent, -99, -97, -90, -60, -20, 0}) {
      const int a = std::max(lowest_a, sum / 2);
      const int b = std::max(lowest_b, sum - a);
      INFO(std::string_view(instruction.name)
           << " on " << instruction.arch << ", products of 2^" << a + b);
      CHECK(mismatches(instruction, a, b, random, set) == 0);
    }
  }
  CHECK(instructions.size() >= 8);
}

}  // namespace guardbit::tests
