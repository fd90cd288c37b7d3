#include <bit>
#include <cmath>
#include <cstdint>

#include "emulator/functions/argument_pairs.hpp"
#include "emulator/functions/numbers/host_number.hpp"
#include "tests/catch.hpp"

/// A product and a sum in FP64 give what one rounding gives, unless the sum is half way between
/// numbers of FP32 or below its normal range; then the C library is asked.
namespace guardbit::tests {
namespace {

void compare(std::uint64_t begin, std::uint64_t end) {
  for (std::uint64_t i = begin; i < end; ++i) {
    const emulator::ArgumentTuple t = emulator::argument_tuple(i);
    const auto x = std::bit_cast<float>(t.x), y = std::bit_cast<float>(t.y),
               z = std::bit_cast<float>(t.z);
    const float once = std::fma(x, y, z), twice = emulator::FmaByDoubles::fma(x, y, z);
    if (std::isnan(once) && std::isnan(twice)) continue;
    REQUIRE(std::bit_cast<std::uint32_t>(once) == std::bit_cast<std::uint32_t>(twice));
  }
}

TEST_CASE("fused steps by FP64 round once") { compare(0, 1 << 19); }

TEST_CASE("fused steps by FP64 round once, of many operands", "[sweep]") {
  compare(0, std::uint64_t{1} << 32);
}

}  // namespace
}  // namespace guardbit::tests
