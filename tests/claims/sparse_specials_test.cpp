// What emulator/engine/kernels/fused/sparse_specials.hpp claims: every mixture of infinities, NaNs,
// zeros and numbers next to overflow in A, B and C of sparse products, also where D is C.

#include <array>
#include <cstdint>
#include <cstring>
#include <vector>

#include "emulator/catalogue/instruction_catalogue.hpp"
#include "emulator/engine/engines.hpp"
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
using formats::Format;

/// How often a matrix holds what.
struct Mixture {
  /// one in so many; 0: none
  int special = 0, zero = 0, largest = 0;
};

std::uint64_t code(const Format& f, const Mixture& x, Random& random) {
  const std::uint64_t sign = random.one_in(2) ? formats::sign_mask(f) : 0;
  if (x.special != 0 && random.one_in(x.special)) {
    if (!formats::has_nan(f)) return sign;
    return random.one_in(4) || !formats::has_infinity(f) ? formats::quiet_nan_code(f) | sign
                                                         : formats::infinity_code(f) | sign;
  }
  if (x.zero != 0 && random.one_in(x.zero)) return sign;
  if (x.largest != 0 && random.one_in(x.largest)) return formats::max_finite_code(f) | sign;
  return code_between(f, -2, 2, random);
}

std::int64_t mismatches(const MatrixInstruction& instruction, const Mixture& of_a,
                        const Mixture& of_b, const Mixture& of_c, bool d_is_c, Random& random,
                        VectorSet set) {
  constexpr std::int64_t m = 11, n = 20;
  const std::int64_t k = 3 * instruction.shape.k,
                     stored = emulator::stored_k(instruction, static_cast<int>(k));
  const auto draw = [&](const Format& f, const Mixture& x) {
    return [&random, &f, x](std::int64_t, std::int64_t) { return code(f, x, random); };
  };
  const auto a = matrix(instruction.a, m, stored, draw(instruction.a, of_a));
  const auto b = matrix(instruction.b, k, n, draw(instruction.b, of_b));
  const auto c = matrix(instruction.c, m, n, draw(instruction.c, of_c));
  const int places = emulator::positions(instruction.sparsity), chunk = instruction.sparsity.chunk;
  std::uint64_t first = 0;
  const auto e = matrix(formats::uint8, m, stored, [&](std::int64_t, std::int64_t s) {
    const std::int64_t within = s % instruction.sparsity.stored_per_group / chunk;
    if (s % instruction.sparsity.stored_per_group == 0) first = random.below(2);
    return first + static_cast<std::uint64_t>(within) * static_cast<std::uint64_t>(places - 1) / 2 %
                       static_cast<std::uint64_t>(places);
  });
  auto expected = c, got = c;
  const emulator::ConstMatrix places_of_a{{e.data(), 1, 0}, stored};
  for (auto* const d : {&expected, &got}) {
    emulator::MatrixProduct x = product_of(instruction, m, n, k, a, b, d_is_c ? *d : c, *d);
    x.a.row_stride = stored;
    x.e = places_of_a;
    if (d == &got) {
      emulator::fused_gemm::multiply(instruction, x, 2, set);
    } else {
      emulator::multiply(emulator::require_engine("reference", instruction), instruction, x, 1);
    }
  }
  const std::size_t bytes = expected.size() / static_cast<std::size_t>(m * n);
  std::int64_t wrong = 0;
  for (std::size_t i = 0; i < got.size(); i += bytes)
    wrong += std::memcmp(got.data() + i, expected.data() + i, bytes) == 0 ? 0 : 1;
  return wrong;
}

}  // namespace

TEMPLATE_TEST_CASE("sparse products: specials of B meet what A stores, and nothing else", "[cpu]",
                   Avx512, Avx2, Neon) {
  if (!can_test(TestType::sets)) return;
  constexpr auto set = TestType::vector_set;
  constexpr std::array names = {
      "mma.sp::ordered_metadata.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32",
      "mma.sp::ordered_metadata.sync.aligned.m16n8k32.row.col.f16.f16.f16.f16",
      "mma.sp::ordered_metadata.sync.aligned.m16n8k32.row.col.f32.bf16.bf16.f32",
      "mma.sp::ordered_metadata.sync.aligned.m16n8k16.row.col.f32.tf32.tf32.f32",
      "wgmma.mma_async.sp.sync.aligned.m64nNk64.f16.e5m2.e4m3"};
  constexpr Mixture none{}, few{100, 10, 0}, many{4, 4, 0}, large{0, 0, 3},
      few_and_large{150, 10, 3};
  Random random(31);
  for (const char* const name : names) {
    const MatrixInstruction instruction = emulator::require_instruction("sm_90", name, "test");
    REQUIRE(emulator::fused_gemm::accepts(instruction, set));
    INFO(name);
    for (const bool d_is_c : {false, true}) {
      CHECK(mismatches(instruction, none, few, none, d_is_c, random, set) == 0);
      CHECK(mismatches(instruction, few, few, few, d_is_c, random, set) == 0);
      CHECK(mismatches(instruction, many, many, many, d_is_c, random, set) == 0);
      // Sums that overflow before and after an infinity of B, to either side.
      CHECK(mismatches(instruction, large, few_and_large, large, d_is_c, random, set) == 0);
      CHECK(mismatches(instruction, few_and_large, few_and_large, few_and_large, d_is_c, random,
                       set) == 0);
    }
  }
}

}  // namespace guardbit::tests
