// What products by the CPU's own instructions lean on, over whole domains: the formulas that turn
// any pair of integer types into unsigned times signed bytes, the bound below which nothing
// saturates, and which NaN a chain of multiply-adds ends with.

#include <algorithm>
#include <array>
#include <bit>
#include <string>
#include <vector>

#include "emulator/catalogue/instruction_catalogue.hpp"
#include "emulator/engine/kernels/chain/chain_gemm.hpp"
#include "emulator/engine/kernels/integer/integer_gemm.hpp"
#include "emulator/model/dot.hpp"
#include "tests/catch.hpp"
#include "tests/claims/matrices.hpp"
#include "tests/instruction_sets_here.hpp"

namespace guardbit::tests {
namespace {

using emulator::MatrixInstruction;
using formats::Format;

}  // namespace

TEMPLATE_TEST_CASE("every pair of codes of every pair of integer types multiplies exactly", "[cpu]",
                   Avx512, Avx2, Neon) {
  if (!can_test(TestType::sets)) return;
  constexpr auto set = TestType::vector_set;
  std::vector<std::pair<Format, Format>> seen;
  for (const MatrixInstruction& instruction : emulator::catalogue()) {
    if (!emulator::integer_gemm::accepts(instruction, set) ||
        instruction.sparsity.group_elements != 0)
      continue;
    const bool is_xor = instruction.steps.list[0].spec.product == emulator::Product::bit_xor;
    const std::pair pair{instruction.a,
                         is_xor ? formats::fp64 : instruction.b};  // exclusive or counts as a type
    if (std::find(seen.begin(), seen.end(), pair) != seen.end()) continue;
    seen.push_back(pair);
    const auto m = static_cast<std::int64_t>(formats::code_mask(instruction.a)) + 1;
    const auto n = static_cast<std::int64_t>(formats::code_mask(instruction.b)) + 1;
    const auto a =
        matrix(instruction.a, m, 1, [](auto i, auto) { return static_cast<std::uint64_t>(i); });
    const auto b =
        matrix(instruction.b, 1, n, [](auto, auto j) { return static_cast<std::uint64_t>(j); });
    const auto c = matrix(instruction.c, m, n, [](auto, auto) { return std::uint64_t{0}; });
    auto d = c;
    emulator::integer_gemm::multiply(instruction, product_of(instruction, m, n, 1, a, b, c, d), 1,
                                     set);
    const auto results = emulator::codes_of(instruction.d, std::as_const(d).data());
    int wrong = 0;
    for (std::int64_t i = 0; i < m; ++i) {
      for (std::int64_t j = 0; j < n; ++j) {
        const auto value = [](const Format& f, std::int64_t code) {
          const std::int64_t count = std::int64_t{1} << formats::bits(f);
          return f.has_sign && code >= count / 2 ? code - count : code;
        };
        const std::int64_t x = value(instruction.a, i), y = value(instruction.b, j);
        const std::int64_t expected = is_xor ? (x ^ y) : x * y;
        wrong += static_cast<std::int32_t>(results[i * n + j]) != expected ? 1 : 0;
      }
    }
    INFO(std::string_view(instruction.name));
    CHECK(wrong == 0);
  }
  CHECK(seen.size() > 5);
}

TEST_CASE("a chain of saturating additions within the bound is the exact sum") {
  // The lemma knows nothing of 32 bits: sums saturate past +-limit here, chunks reach +-most.
  constexpr int limit = 30, most = 7;
  int wrong_within = 0, wrong_beyond = 0;
  for (int c = -limit; c <= limit; ++c) {
    for (int x = -most; x <= most; ++x) {
      for (int y = -most; y <= most; ++y) {
        for (int z = -most; z <= most; ++z) {
          int sum = c;
          for (const int chunk : {x, y, z}) sum = std::clamp(sum + chunk, -limit - 1, limit);
          const bool is_within = std::abs(c) + 3 * most <= limit;
          (is_within ? wrong_within : wrong_beyond) += sum != c + x + y + z ? 1 : 0;
        }
      }
    }
  }
  CHECK(wrong_within == 0);
  CHECK(wrong_beyond > 0);
}

TEMPLATE_TEST_CASE("the NaN of a chain is decided by the last NaN of B, or by the first event",
                   "[cpu]", Avx512, Avx2, Neon) {
  if (!can_test(TestType::sets)) return;
  constexpr auto set = TestType::vector_set;
  // Two NaNs that differ, one of them signalling, infinities, zero and numbers.
  const std::array<std::uint64_t, 7> codes = {
      0x7FF8000000000123, 0xFFF0000000000045, 0x7FF0000000000000, 0xFFF0000000000000, 0,
      0x3FF0000000000000, 0xBFF8000000000000};
  constexpr std::int64_t k = 3, side = 7 * 7 * 7;
  const auto digit = [&](std::int64_t number, std::int64_t place) {
    for (; place > 0; --place) number /= 7;
    return codes[static_cast<std::size_t>(number % 7)];
  };
  for (const char* name : {"mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64",
                           "mma.sync.aligned.m8n8k4.row.col.rm.f64.f64.f64.f64"}) {
    const MatrixInstruction instruction = emulator::require_instruction("sm_90", name, "test");
    const auto a = matrix(instruction.a, side, k, digit);
    const auto b = matrix(instruction.b, k, side, [&](auto i, auto j) { return digit(j, i); });
    for (const std::uint64_t addend : codes) {
      const auto c = matrix(instruction.c, side, side, [&](auto, auto) { return addend; });
      std::vector<std::uint64_t> expected;
      REQUIRE(emulator::chain_gemm::accepts(instruction, set));
      auto d = c;
      emulator::chain_gemm::multiply(instruction,
                                     product_of(instruction, side, side, k, a, b, c, d), 2, set);
      const auto results = emulator::codes_of(instruction.d, std::as_const(d).data());
      int wrong = 0;
      for (std::int64_t i = 0; i < side; ++i) {
        for (std::int64_t j = 0; j < side; ++j) {
          const auto at = static_cast<std::size_t>(i * side + j);
          if (expected.size() == at) {
            const std::array x = {digit(i, 0), digit(i, 1), digit(i, 2), std::uint64_t{0}};
            const std::array y = {digit(j, 0), digit(j, 1), digit(j, 2), std::uint64_t{0}};
            expected.push_back(emulator::dot(instruction, {x, y, addend}));
          }
          wrong += results[i * side + j] != expected[at] ? 1 : 0;
        }
      }
      CAPTURE(name, addend);
      CHECK(wrong == 0);
    }
  }
}

}  // namespace guardbit::tests
