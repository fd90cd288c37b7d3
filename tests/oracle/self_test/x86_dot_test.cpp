#include "tests/oracle/x86_dot.hpp"

#include "tests/catch.hpp"

// Cases worked by hand from Intel's SDM; the roundings around 2^-126 are an Intel Xeon's answers.
namespace {

using namespace guardbit::oracle;

/// bf16 codes of powers of two.
std::uint64_t power(int exponent, bool negative = false) {
  return static_cast<std::uint64_t>(exponent + 127) << 7 | (negative ? 0x8000U : 0U);
}

std::uint64_t lane(std::uint64_t even_a, std::uint64_t even_b, std::uint64_t odd_a,
                   std::uint64_t odd_b, std::uint64_t c) {
  return x86_bf16_lane({bf16, {even_a, odd_a}}, {bf16, {even_b, odd_b}}, {fp32, c});
}

constexpr std::uint64_t one = 0x3F80;

}  // namespace

TEST_CASE("a bf16 lane adds the odd product first") {
  // c = 1, odd = 2^-24, even = 2^-24: each is half an ulp and rounds away; 2^-23 would have stayed.
  CHECK(lane(power(-24), one, power(-24), one, 0x3F800000) == 0x3F800000);
  // 2^24 + 1 - 2^24: lost when 1 comes first.
  CHECK(lane(power(24, true), one, one, one, 0x4B800000) == 0);
  CHECK(lane(one, one, power(24, true), one, 0x4B800000) == 0x3F800000);
}

TEST_CASE("flushing is decided after rounding with unbounded exponents") {
  const std::uint64_t smallest = 0x00800000;
  CHECK(lane(power(-75, true), power(-75), 0, 0, smallest) == 0);         // less 2^-150
  CHECK(lane(power(-76, true), power(-75), 0, 0, smallest) == smallest);  // less 2^-151
  CHECK(lane(power(-75), power(-75), 0, 0, smallest | 0x80000000) == 0x80000000);
  CHECK(lane(0, one, 0, one, 0x00400000) == 0);  // c is subnormal
  CHECK(lane(0x8000, one, 0x8000, one, 0x80400000) == 0x80000000);
}

TEST_CASE("the first NaN decides, quieted, and an invalid operation gives the negative one") {
  const std::uint64_t c = 0xFF800123;
  CHECK(lane(0x7F81, 0x7F82, 0x7F83, 0x7F84, c) == 0x7FC10000);
  CHECK(lane(one, 0xFF82, 0x7F83, 0x7F84, c) == 0xFFC20000);
  CHECK(lane(one, one, 0x7F83, 0x7F84, c) == 0x7FC30000);
  CHECK(lane(one, one, one, 0x7F84, c) == 0x7FC40000);
  CHECK(lane(one, one, one, one, c) == 0xFFC00123);
  CHECK(lane(0x7F80, 0, 0x7F80, 0, c) == 0xFFC00123);
  CHECK(lane(0x7F80, 0, one, one, 0) == 0xFFC00000);
}

TEST_CASE("a tile's chains start at zero and meet before c") {
  const auto tile = [](const std::vector<std::uint64_t>& a, std::uint64_t c) {
    const std::vector<std::uint64_t> ones(a.size(), one);
    return x86_tile({true, true}, {bf16, a}, {bf16, ones}, {fp32, c});
  };
  // Even: 2^24 + 1 = 2^24. Odd: -2^24. One chain of all four would keep the 1.
  CHECK(tile({power(24), power(24, true), one, 0}, 0) == 0);
  // 1 + (2^-24 + 2^-24): the small ones meet first.
  CHECK(tile({power(-24), power(-24), 0, 0}, 0x3F800000) == 0x3F800001);
  CHECK(tile({0x7F81, 0x7F82, 0x7F83, 0x7F84}, 0xFF800123) == 0xFFC00123);
  CHECK(tile({one, 0x7F82, 0x7F83, 0x7F84}, 0) == 0x7FC30000);
}

TEST_CASE("fp16 tiles honour subnormal operands") {
  const Vector a{fp16, {0x0001}}, b{fp16, {0x3C00}};
  CHECK(x86_tile({false, true}, a, b, {fp32, 0}) == 0x33800000);  // 2^-24
  CHECK(x86_tile({false, true}, {fp16, {0xFC01}}, b, {fp32, 0}) == 0xFFC02000);
}
