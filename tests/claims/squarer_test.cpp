#include <cstdint>

#include "emulator/functions/unit/interpolator.hpp"
#include "tests/catch.hpp"

/// The interpolator's square is what its definition says: the sum of the partial products whose
/// columns are kept.
namespace guardbit::tests {
namespace {

using emulator::mufu::Squarer;

std::int64_t sum_of_products(const Squarer& squarer, std::uint32_t x) {
  std::int64_t sum = 0;
  for (int i = 0; i < emulator::mufu::offset_bits; ++i) {
    for (int j = 0; j <= i; ++j) {
      const int column = i == j ? 2 * i : i + j + 1;
      if (column >= squarer.lowest_column && (x >> i & 1) != 0 && (x >> j & 1) != 0)
        sum += std::int64_t{1} << column;
    }
  }
  return sum;
}

TEST_CASE("the truncated square is the sum of the partial products that are kept") {
  for (std::uint32_t x = 0; x < 1U << 17; x += 5)
    REQUIRE(square(Squarer{}, x) << Squarer{}.lowest_column == sum_of_products({}, x));
  for (int column = 0; column <= 24; ++column) {
    CAPTURE(column);
    const Squarer squarer = {column};
    for (std::uint32_t x = 1; x < 1U << 17; x += 997)
      REQUIRE(square(squarer, x) << column == sum_of_products(squarer, x));
    REQUIRE(square(squarer, 0x1ffff) << column == sum_of_products(squarer, 0x1ffff));
  }
}

TEST_CASE("the truncated square is the sum of all partial products that are kept", "[sweep]") {
  for (std::uint32_t x = 0; x < 1U << 17; ++x)
    REQUIRE(square(Squarer{}, x) << Squarer{}.lowest_column == sum_of_products({}, x));
}

}  // namespace
}  // namespace guardbit::tests
