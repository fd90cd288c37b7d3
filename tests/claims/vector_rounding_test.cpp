#include "tests/claims/vector_rounding.hpp"

#include <array>
#include <bit>
#include <cstdint>

#include "emulator/functions/argument_pairs.hpp"
#include "emulator/functions/numbers/reference_number.hpp"
#include "emulator/inputs/input_draw.hpp"
#include "tests/catch.hpp"
#include "tests/instruction_sets_here.hpp"

// Claim of kernels/vector_rounding.hpp: AVX2, whose instructions round to nearest, gives the
// numbers of the other directions: of a nearest result and the sign of what it left the right
// neighbour follows.
namespace guardbit::tests {
namespace {

using emulator::ReferenceNumber;
using formats::Rounding;

ReferenceNumber expected(Operation operation, ReferenceNumber x, ReferenceNumber y,
                         ReferenceNumber z) {
  switch (operation) {
    case Operation::fma_down: return fma_down(x, y, z);
    case Operation::add: return add_toward_zero(x, y);
    case Operation::multiply: return multiply_toward_zero(x, y);
    case Operation::divide_up: return divide(x, y, Rounding::upward);
    case Operation::divide_down: return divide(x, y, Rounding::downward);
    case Operation::divide_cut: return divide(x, y, Rounding::toward_zero);
    case Operation::root_up: return square_root(x, Rounding::upward);
    case Operation::root_down: return square_root(x, Rounding::downward);
  }
  return {};
}

bool is_nan(std::uint32_t code) { return (code & 0x7fffffff) > 0x7f800000; }
bool same(std::uint32_t a, std::uint32_t b) {
  // Not the sign of an exact zero that is rounded down: no program asks for it.
  return a == b || (is_nan(a) && is_nan(b)) || ((a | b) << 1) == 0;
}

/// About -x y, so that sums cancel, or far smaller or larger.
std::uint32_t addend(std::uint32_t x, std::uint32_t y, std::uint64_t random) {
  const float product = std::bit_cast<float>(x) * std::bit_cast<float>(y);
  const auto near =
      std::bit_cast<std::uint32_t>(-product) + static_cast<std::uint32_t>(random % 5) - 2;
  const auto any = static_cast<std::uint32_t>(random >> 8);
  switch (random >> 3 & 3) {
    case 0: return near;
    case 1: return any;
    case 2: return near - ((any & 31) << 23);
    default: return 0x4b400000 + (any & 0xffff);
  }
}

TEST_CASE("claim: directions of rounding from nearest results in AVX2", "[cpu]") {
  if (!can_test(Avx2::sets)) return;
  emulator::inputs::Random random(5);
  for (int round = 0; round < 6000; ++round) {
    Eight x{}, y{}, z{};
    for (std::size_t i = 0; i < x.size(); ++i) {
      const emulator::ArgumentPair pair =
          emulator::argument_pair(static_cast<std::uint64_t>(round) * 8 + i);
      x[i] = pair.x;
      y[i] = pair.y;
      z[i] = addend(pair.x, pair.y, random.bits());
    }
    // Also all lanes as expf has them, which takes the short way.
    if (round % 4 == 0) {
      for (std::size_t i = 0; i < x.size(); ++i) {
        x[i] = static_cast<std::uint32_t>(random.bits()) % 0x3f800001;
        y[i] = std::bit_cast<std::uint32_t>(252.0F);
        z[i] = std::bit_cast<std::uint32_t>(0x1.800002p+23F);
      }
    }
    for (const Operation operation :
         {Operation::fma_down, Operation::add, Operation::multiply, Operation::divide_up,
          Operation::divide_down, Operation::divide_cut, Operation::root_up,
          Operation::root_down}) {
      const Eight results = rounded_by_avx2(operation, x, y, z);
      for (std::size_t i = 0; i < x.size(); ++i) {
        const std::uint32_t wanted =
            bits(expected(operation, ReferenceNumber::of(x[i]), ReferenceNumber::of(y[i]),
                          ReferenceNumber::of(z[i])));
        INFO(static_cast<int>(operation) << std::hex << " of " << x[i] << ", " << y[i] << ", "
                                         << z[i] << ": " << results[i] << ", not " << wanted);
        REQUIRE(same(results[i], wanted));
      }
    }
  }
}

}  // namespace
}  // namespace guardbit::tests
