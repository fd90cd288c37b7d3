#include <random>

#include "formats/codec.hpp"
#include "formats/support/parallel.hpp"
#include "tests/catch.hpp"
#include "tests/formats/judged_encode.hpp"

namespace guardbit::formats {

TEST_CASE("stochastic rounding with every value of 1 to 6 random bits", "[long]") {
  Mismatches mismatches;
  parallel_for(narrow_formats.size(), 1, 0, [&](std::size_t index, std::size_t) {
    const JudgedFormat& to = narrow_formats[index];
    const auto judge_all_random_bits = [&](const Point& point, const JudgedOverflow& overflow) {
      for (int count = 1; count <= 6; ++count) {
        for (std::uint64_t random = 0; random < std::uint64_t{1} << count; ++random) {
          judge_encode(to, point,
                       {"stochastic", Rounding::stochastic, oracle::stochastic(random, count)},
                       overflow, {random, count}, mismatches);
        }
      }
    };
    const std::uint64_t last = maximum_code(to);
    for (std::uint64_t code = 0; code <= last + 1; ++code) {
      const Gap gap = gap_above(to, code);
      const bool thorough = code < 2 || (code >= last && code <= last + 1);
      const std::uint64_t steps = thorough ? 128 : 4;
      for (std::uint64_t step = 0; step < steps; ++step) {
        const bool sticky = step % 2 != 0;
        const Point point = point_in(gap, whole / steps * step + (thorough ? 0 : whole / 11),
                                     step % 3 == 0, sticky);
        if (point.judge.is_zero()) continue;
        judge_all_random_bits(point, ieee);
        if (code >= last) judge_all_random_bits(point, saturating);
      }
    }
  });
  CHECK(mismatches.report() == "");
}

TEST_CASE("stochastic rounding with the widths of the device and others, at random") {
  Mismatches mismatches;
  std::mt19937_64 generator(3);
  for (const JudgedFormat& to : every_format()) {
    const std::uint64_t last = maximum_code(to);
    for (int i = 0; i < 1000; ++i) {
      const Gap gap = gap_above(to, generator() % last);
      const std::uint64_t part = generator() % whole;
      const Point point = point_in(gap, part, generator() % 2 != 0, generator() % 2 != 0);
      for (const int count : {8, 13, 16, 24, 32, 64}) {
        // The random bits whose carry is next to deciding, and others.
        const std::uint64_t needed = count >= gap_bits ? (whole - part) << (count - gap_bits)
                                                       : (whole - part) >> (gap_bits - count);
        for (const std::uint64_t random : {needed, needed - 1, needed + 1, generator()}) {
          const std::uint64_t drawn = random & low_bits(count);
          judge_encode(to, point,
                       {"stochastic", Rounding::stochastic, oracle::stochastic(drawn, count)}, ieee,
                       {drawn, count}, mismatches);
        }
      }
    }
  }
  CHECK(mismatches.report() == "");
}

TEST_CASE("bits above the random ones are ignored, none of them means truncation") {
  for (std::uint64_t code = 0; code < 0x10000; ++code) {
    const Value value = decode(fp16, code);
    REQUIRE(encode(e4m3, value, Rounding::stochastic, overflow_ieee, {0xFFA5, 8}) ==
            encode(e4m3, value, Rounding::stochastic, overflow_ieee, {0xA5, 8}));
    if (value.kind == Kind::finite &&
        oracle::compare({value.significand, value.exponent}, {448, 0}) <= 0) {
      REQUIRE(encode(e4m3, value, Rounding::stochastic) ==
              encode(e4m3, value, Rounding::toward_zero));
    }
  }
}

}  // namespace guardbit::formats
