#include "emulator/functions/special_function_unit.hpp"

#include <cstdint>
#include <utility>

#include "tests/catch.hpp"
#include "tests/emulator/functions/digest.hpp"

/// Digests of all inputs are the hardware's, of an H100 (docs/FUNCTIONS.md); those of a part are of
/// the model that gives them.
namespace guardbit::tests {
namespace {

namespace mufu = emulator::mufu;
using emulator::mufu::Interpolator;

std::uint64_t digest_of_ex2(const Interpolator& f) {
  return digest_of([&](std::uint32_t x) { return mufu::ex2_ftz(x, f); }, quick_stride);
}
std::uint64_t digest_of_rcp(const Interpolator& f) {
  return digest_of([&](std::uint32_t x) { return mufu::rcp_ftz(x, f); }, quick_stride);
}

TEST_CASE("the special function unit gives the hardware's results, in part") {
  CHECK(digest_of_ex2(mufu::ex2_interpolator) == 0x3c0b4c247dce8872);
  CHECK(digest_of_rcp(mufu::rcp_interpolator) == 0x426dc3cb92f19176);
  CHECK(digest_of([](std::uint32_t x) { return mufu::ex2(x); }, quick_stride) ==
        0x6d94a620de5b7541);
  CHECK(digest_of([](std::uint32_t x) { return mufu::rcp(x); }, quick_stride) ==
        0x374884f8d7262f57);
}

TEST_CASE("the special function unit gives the hardware's results for all inputs", "[sweep]") {
  CHECK(digest_of([](std::uint32_t x) { return mufu::ex2_ftz(x); }) == 0x41e061b23d1c92be);
  CHECK(digest_of([](std::uint32_t x) { return mufu::rcp_ftz(x); }) == 0xaa2a9304826fc31a);
  CHECK(digest_of([](std::uint32_t x) { return mufu::ex2(x); }) == 0xb9da18a103f884cf);
  CHECK(digest_of([](std::uint32_t x) { return mufu::rcp(x); }) == 0xa12d363189c61b40);
}

TEST_CASE("another squarer, bias or coefficient is another unit") {
  for (const int column : {18, 20}) {
    CAPTURE(column);
    Interpolator ex2 = mufu::ex2_interpolator, rcp = mufu::rcp_interpolator;
    ex2.squarer.lowest_column = rcp.squarer.lowest_column = column;
    CHECK(digest_of_ex2(ex2) != digest_of_ex2(mufu::ex2_interpolator));
    CHECK(digest_of_rcp(rcp) != digest_of_rcp(mufu::rcp_interpolator));
  }
  for (const int change : {-4096, 4096}) {
    CAPTURE(change);
    Interpolator ex2 = mufu::ex2_interpolator, rcp = mufu::rcp_interpolator;
    ex2.bias += change, rcp.bias += change;
    CHECK(digest_of_ex2(ex2) != digest_of_ex2(mufu::ex2_interpolator));
    CHECK(digest_of_rcp(rcp) != digest_of_rcp(mufu::rcp_interpolator));
  }
  for (std::size_t i = 0; i < mufu::ex2_segments.size(); ++i) {
    for (std::int32_t mufu::Segment::*const coefficient :
         {&mufu::Segment::c0, &mufu::Segment::c1, &mufu::Segment::c2}) {
      auto segments = mufu::ex2_segments;
      // c1 lies on a grid of 4.
      segments[i].*coefficient += coefficient == &mufu::Segment::c1 ? 4 : 1;
      Interpolator f = mufu::ex2_interpolator;
      f.segments = segments;
      CAPTURE(i);
      CHECK(digest_of_ex2(f) != digest_of_ex2(mufu::ex2_interpolator));
    }
  }
}

TEST_CASE("the truncated square leaves columns out") {
  constexpr mufu::Squarer whole = {17, 0}, unit = {};
  for (std::uint32_t x = 0; x < 1U << 17; x += 97) {
    REQUIRE(mufu::square(whole, x) == std::int64_t{x} * x);
    const std::int64_t cut = mufu::square(unit, x);
    REQUIRE(cut <= std::int64_t{x} * x >> 19);
    REQUIRE(cut + 10 >= std::int64_t{x} * x >> 19);
  }
}

TEST_CASE("the special function unit at special inputs") {
  using Case = std::pair<std::uint32_t, std::uint32_t>;
  constexpr std::uint32_t one = 0x3f800000, infinity = mufu::infinity, sign = mufu::sign_bit;
  for (const auto& [x, y] : {Case{0, one},
                             {sign, one},
                             {one, 0x40000000},
                             {sign | one, 0x3f000000},
                             Case{0xaedbe6ff, one},  // -1e-10, whose fraction is cut off
                             Case{infinity, infinity},
                             {sign | infinity, 0},
                             {0x7fc00000, mufu::nan},
                             Case{0x43000000, infinity},    // 128
                             Case{0xc2fc0000, 0x00800000},  // -126
                             Case{0x00000001, one},
                             {0x80000001, one}}) {  // subnormals
    CAPTURE(x);
    CHECK(mufu::ex2_ftz(x) == y);
    CHECK(mufu::ex2(x) == y);
  }
  CHECK(mufu::ex2_ftz(0xc2fe0000) == 0);       // -127
  CHECK(mufu::ex2(0xc2fe0000) == 0x003fffff);  // the square of what was cut off
  CHECK(mufu::ex2(0xc3150000) == 1);           // -149
  for (const auto& [x, y] : {Case{0, infinity},
                             {sign, sign | infinity},
                             {one, one},
                             Case{0xc0000000, 0xbf000000},
                             {infinity, 0},
                             {sign | infinity, sign},
                             Case{0xffc00000, mufu::nan}}) {
    CAPTURE(x);
    CHECK(mufu::rcp_ftz(x) == y);
    CHECK(mufu::rcp(x) == y);
  }
  CHECK(mufu::rcp_ftz(0x7f000000) == 0);  // 2^127
  CHECK(mufu::rcp(0x7f000000) == 0x00400000);
  CHECK(mufu::rcp_ftz(0x00400000) == infinity);  // 2^-127
  CHECK(mufu::rcp(0x00400000) == 0x7f000000);
}

}  // namespace
}  // namespace guardbit::tests
