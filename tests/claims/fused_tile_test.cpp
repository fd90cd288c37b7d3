#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>

#include "emulator/catalogue/instruction_catalogue.hpp"
#include "emulator/engine/kernels/fused/fused_arithmetic.hpp"
#include "formats/codec.hpp"
#include "formats/format_catalogue.hpp"
#include "formats/value.hpp"
#include "tests/catch.hpp"

/// What emulator/engine/kernels/fused/fused_tile.hpp leans on, over the whole domain where that is
/// small.
namespace guardbit::tests {
namespace {

using emulator::fused::fused_instruction;
using emulator::fused::FusedInstruction;
using emulator::fused::LaneType;
using formats::uint128;

/// s * 2^q times 1 + 2^-nudge, floored, against s * 2^q floored; and is it no integer?
bool nudge_is_harmless(std::uint64_t s, int q, int nudge) {
  const uint128 nudged = (uint128{s} << nudge) + s;  // in units of 2^(q - nudge)
  const int down = nudge - q;
  if (down <= 0) return false;
  const uint128 floor_of_nudged = nudged >> down;
  const uint128 floor_of_exact = q >= 0 ? uint128{s} << q : uint128{s} >> std::min(127, -q);
  return floor_of_nudged == floor_of_exact && (floor_of_nudged << down) != nudged;
}

/// Every q at which s * 2^q < 2^(kept + 2), down to where nothing is left.
bool harmless_at_all_places(std::uint64_t s, int kept, int nudge) {
  for (int q = kept + 1 - formats::leading_bit(s); q > -40; --q)
    if (!nudge_is_harmless(s, q, nudge)) return false;
  return true;
}

/// The leading so many bits of x: cut, cut upwards, to nearest even.
uint128 cut(uint128 x, int kept) {
  const int down = std::max(0, formats::leading_bit(x) + 1 - kept);
  return x >> down << down;
}
uint128 cut_up(uint128 x, int kept) {
  const int down = std::max(0, formats::leading_bit(x) + 1 - kept);
  return cut(x, kept) + (cut(x, kept) == x ? uint128{0} : uint128{1} << down);
}
uint128 nearest_even(uint128 x, int kept) {
  const int down = std::max(0, formats::leading_bit(x) + 1 - kept);
  if (down == 0) return x;
  const uint128 half = uint128{1} << (down - 1), odd = x >> down & 1;
  return (x + half - 1 + odd) >> down << down;
}
/// The leading so many bits of x, the last of them set where anything is lost.
uint128 cut_to_odd(uint128 x, int kept) {
  const int down = std::max(0, formats::leading_bit(x) + 1 - kept);
  return cut(x, kept) | (cut(x, kept) == x ? uint128{0} : uint128{1} << down);
}

template <class Visit>
void for_each_instruction(LaneType lane, const Visit& visit) {
  for (const emulator::MatrixInstruction& instruction : emulator::catalogue()) {
    const std::optional<FusedInstruction> fused = fused_instruction(instruction);
    if (fused && fused->lane == lane) visit(instruction, *fused);
  }
}

}  // namespace

TEST_CASE("FP32 lanes: a nudged product is floored as itself and never on the grid") {
  int wrong = 0;
  for (const int kept : {13, 14, 15, 16}) {
    for (std::uint64_t a = 1; a < 16; ++a)
      for (std::uint64_t b = 1; b < 16; ++b)
        wrong += harmless_at_all_places(a * b, kept, 20) ? 0 : 1;
    for (std::uint64_t c = 1; c < 1U << (kept + 1); ++c)
      wrong += harmless_at_all_places(c, kept, 20) ? 0 : 1;
  }
  CHECK(wrong == 0);
}

TEST_CASE("FP32 lanes: the sum of a block is floored as itself by the next") {
  int wrong = 0;
  const auto check = [&](std::uint64_t sum) {
    for (const int kept : {13, 14, 15, 16}) wrong += harmless_at_all_places(sum, kept, 23) ? 0 : 1;
  };
  for (std::uint64_t low = 1; low < 1U << 10; ++low) {
    check(low);
    check((1U << 22) - low);
    for (int shift = 1; shift < 12; ++shift) check((low << shift) + 1);
  }
  CHECK(wrong == 0);
  CHECK_FALSE(harmless_at_all_places((1U << 22) - 1, 13, 21));
}

TEST_CASE(
    "a sum cut at its own exponent's grid and then at a block's is cut at the block's alone") {
  constexpr int kept = 13;
  const auto cut = [](std::uint64_t x, int place) { return x >> place << place; };
  int wrong = 0, too_fine = 0;
  for (std::uint64_t sum = 1; sum < 1U << 22; sum += sum < 1U << 16 ? 1 : 37) {
    const int own = std::max(0, formats::leading_bit(sum) - kept);
    wrong += formats::leading_bit(cut(sum, own)) == formats::leading_bit(sum) ? 0 : 1;
    for (int place = own; place < 24; ++place)
      wrong += cut(cut(sum, own), place) == cut(sum, place) ? 0 : 1;
    // A grid finer than its own is no block's, and would show what was cut.
    too_fine += own > 0 && cut(cut(sum, own), own - 1) != cut(sum, own - 1) ? 1 : 0;
  }
  CHECK(wrong == 0);
  CHECK(too_fine > 0);
}

TEST_CASE("FP64 lanes: a nudged product is floored as itself and never on the grid") {
  int wrong = 0;
  for (const int kept : {13, 23, 24, 25, 26}) {
    for (std::uint64_t s = 1; s < 1U << 12; ++s) {
      wrong += harmless_at_all_places(s, kept, 30) ? 0 : 1;
      wrong += harmless_at_all_places((1U << 24) - s, kept, 30) ? 0 : 1;
      for (int shift = 1; shift < 12; ++shift)
        wrong += harmless_at_all_places((s << shift) + 1, kept, 30) ? 0 : 1;
    }
  }
  CHECK(wrong == 0);
}

TEST_CASE("a nudge that is too large shows") {
  CHECK_FALSE(harmless_at_all_places((1U << 24) - 1, 25, 23));
  CHECK_FALSE(harmless_at_all_places((1U << 14) - 1, 13, 13));
}

TEST_CASE("pairs: bits of which the last tells what is lost round as all of them do") {
  int wrong = 0, too_few = 0;
  for (std::uint64_t top = 1U << 11; top < 1U << 12; top += 37) {
    for (int kept = 1; kept <= 11; ++kept) {
      for (int shift = 10; shift < 30; ++shift) {
        for (const std::uint64_t end :
             {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{1} << 9}) {
          const uint128 x = (uint128{top} << shift) + end;
          wrong += nearest_even(cut_to_odd(x, 21), kept) == nearest_even(x, kept) ? 0 : 1;
          too_few += nearest_even(cut(x, 21), kept) == nearest_even(x, kept) ? 0 : 1;
        }
      }
    }
  }
  CHECK(wrong == 0);
  CHECK(too_few > 0);
}

TEST_CASE("pairs: sums of two numbers round as they do after any rounding to twice the bits") {
  int wrong = 0, too_few = 0;
  const auto check = [](uint128 sum, int kept, int first) {
    const uint128 exact = nearest_even(sum, kept);
    return nearest_even(cut(sum, first), kept) == exact &&
           nearest_even(cut_up(sum, first), kept) == exact;
  };
  for (const auto& [kept, first] : {std::pair{24, 53}, {11, 24}}) {
    const std::uint64_t one = std::uint64_t{1} << (kept - 1);
    for (const std::uint64_t a : {one, one + 1, one + 2, 2 * one - 1, one + one / 3}) {
      for (const std::uint64_t b : {std::uint64_t{1}, one, one + 1, 2 * one - 1, one + one / 3}) {
        for (int apart = 0; apart < 64; ++apart) {
          const uint128 large = uint128{a} << apart;
          wrong += check(large + b, kept, first) ? 0 : 1;
          if (large > b) wrong += check(large - b, kept, first) ? 0 : 1;
          too_few += check(large + b, kept, kept + 1) ? 0 : 1;
        }
      }
    }
  }
  CHECK(wrong == 0);
  CHECK(too_few > 0);
}

TEST_CASE("sums of byte codes say whether both factors are real") {
  int wrong = 0;
  for (int a = 0; a <= emulator::fused::widest_span; ++a) {
    for (int b = 0; b <= emulator::fused::widest_span; ++b) {
      const int both = (64 + a) + (64 + b);
      wrong += both >= 128 && both <= 255 && both - 128 == a + b ? 0 : 1;
    }
    wrong += 64 + a < 128 ? 0 : 1;  // beside a zero
  }
  CHECK(wrong == 0);
}

TEST_CASE("FP64 lanes: one bit tells the exponents of numbers and offsets from an infinity's") {
  constexpr int field_of_infinity = 2047, bit = 1 << 9;
  constexpr auto has_bit = [](int exponent) {
    const int field = exponent + 1023 + emulator::fused::fp64_scale_exponent;
    return field <= 0 || field >= field_of_infinity || (field & bit) != 0;
  };
  int instructions = 0;
  for_each_instruction(LaneType::fp64, [&](const emulator::MatrixInstruction& instruction,
                                           const FusedInstruction& x) {
    CAPTURE(std::string_view(instruction.name));
    const int scales = x.scale_k != 0 ? 2 * 127 : 0;
    const int lowest = std::min(x.zero_exponent, -127);
    const int highest = std::max(127, formats::max_exponent(instruction.a) +
                                          formats::max_exponent(instruction.b) + 1 + scales);
    int wrong = 0;
    for (int e = lowest; e <= highest; ++e)
      wrong += has_bit(e) || has_bit(e - x.kept_fraction_bits + 52) ? 1 : 0;
    CHECK(wrong == 0);
    ++instructions;
  });
  CHECK(instructions > 100);
  CHECK((field_of_infinity & bit) != 0);
  CHECK(has_bit(-160));  // a smaller scale would not do for the lowest exponents
}

TEST_CASE("lanes hold the sums of every instruction they serve") {
  int instructions = 0;
  for_each_instruction(LaneType::fp32, [&](const emulator::MatrixInstruction& instruction,
                                           const FusedInstruction& x) {
    const int terms = instruction.steps.list[0].spec.terms;
    CAPTURE(std::string_view(instruction.name));
    CHECK((std::int64_t{terms + 1} << (x.kept_fraction_bits + 2)) <= std::int64_t{1} << 22);
    // An addend of 2^60 leaves no bit of a product: those are below its unit.
    const int highest = formats::max_exponent(instruction.a) + formats::max_exponent(instruction.b);
    CHECK(highest + 2 <= 60 - x.kept_fraction_bits);
    ++instructions;
  });
  for_each_instruction(LaneType::fp64, [&](const emulator::MatrixInstruction& instruction,
                                           const FusedInstruction& x) {
    const int terms = instruction.steps.list[0].spec.terms;
    CAPTURE(std::string_view(instruction.name));
    CHECK((std::int64_t{terms + 1} << (x.kept_fraction_bits + 2)) <= std::int64_t{1} << 50);
    CHECK(formats::precision(instruction.a) + formats::precision(instruction.b) <= 24);
    ++instructions;
  });
  CHECK(instructions > 100);
}

}  // namespace guardbit::tests
