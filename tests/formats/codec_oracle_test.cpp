#include "formats/codec.hpp"

#include <algorithm>
#include <random>
#include <span>
#include <vector>

#include "formats/parallel.hpp"
#include "tests/catch.hpp"
#include "tests/formats/judged_formats.hpp"
#include "tests/formats/mismatches.hpp"

namespace guardbit::formats {
namespace {

std::vector<JudgedFormat> up_to_sixteen_bits() {
  std::vector<JudgedFormat> all(narrow_formats.begin(), narrow_formats.end());
  all.insert(all.end(), sixteen_bit_formats.begin(), sixteen_bit_formats.end());
  return all;
}

std::vector<JudgedFormat> every_format() {
  std::vector<JudgedFormat> all = up_to_sixteen_bits();
  all.insert(all.end(), wide_formats.begin(), wide_formats.end());
  return all;
}

/// Kind, sign, number, and the exponent that matrix units align by: a subnormal has that of the
/// smallest normal.
bool same_number(const JudgedFormat& format, std::uint64_t code, const Value& model,
                 const oracle::Number& judge) {
  if (judge.is_nan()) return model.kind == Kind::nan;
  if (model.negative != judge.negative) return false;
  if (judge.is_infinity()) return model.kind == Kind::infinity;
  if (judge.is_zero()) return model.kind == Kind::zero;
  if (model.kind != Kind::finite) return false;
  const int stored_exponent = is_integer(format.model) ? 0
                              : format.model.encoding == Encoding::power_of_two
                                  ? oracle::floor_log2(judge.magnitude)
                                  : oracle::stored_exponent(format.judge, code);
  return model.exponent == stored_exponent - format.model.fraction_bits * !is_integer(format.model) &&
         oracle::compare({model.significand, model.exponent}, judge.magnitude) == 0;
}

void judge_decode(const JudgedFormat& format, std::uint64_t code, Mismatches& mismatches) {
  const Value model = decode(format.model, code);
  const bool same = same_number(format, code, model, oracle::decode(format.judge, code));
  mismatches.compare(same, model.significand, 0,
                     [&](auto& out) { out << "decode " << format.name << ' ' << code; });
}

/// (significand + tail) * 2^exponent for the judge and for the model.
struct Point {
  oracle::Number judge;
  Unrounded model;
};
Point point_at(const oracle::Integer& significand, int exponent, bool negative, bool sticky) {
  const oracle::Number stem{oracle::Number::Kind::finite, negative, {significand, exponent}};
  Point point{stem, as_model(stem)};
  if (!sticky) return point;
  // Far below every bit that a rounding looks at, 64 random bits included.
  const oracle::Integer with_tail = (significand << 100) + 1;
  point.judge.magnitude = {with_tail, exponent - 100};
  point.model = {Kind::finite, negative, exponent, point.model.significand, true};
  return point;
}

void judge_encode(const JudgedFormat& to, const Point& point, const JudgedRounding& rounding,
                  const JudgedOverflow& overflow, RandomBits random, Mismatches& mismatches) {
  // A NaN as an integer is nobody's rule: IEEE 754-2019 section 5.8. nan_test.cpp has the model's.
  if (point.judge.is_nan() && is_integer(to.model)) return;
  const std::uint64_t model = encode(to.model, point.model, rounding.model, overflow.model, random);
  const std::uint64_t judge = oracle::encode(to.judge, point.judge, rounding.judge, overflow.judge);
  mismatches.compare(same_code(to, model, judge), model, judge, [&](auto& out) {
    out << (point.model.negative ? "-" : "+") << point.judge.magnitude.significand << " * 2^"
        << std::dec << point.judge.magnitude.exponent << " to " << to.name << ", " << rounding.name
        << ", " << overflow.name << ", random " << random.bits << " of " << random.count;
  });
}

void judge_roundings(const JudgedFormat& to, const Point& point,
                     std::span<const JudgedOverflow> overflows, Mismatches& mismatches) {
  for (const JudgedRounding& rounding : judged_roundings) {
    for (const JudgedOverflow& overflow : overflows) {
      judge_encode(to, point, rounding, overflow, {}, mismatches);
    }
  }
}

/// Two neighbouring magnitudes, low * 2^exponent and high * 2^exponent.
struct Gap {
  oracle::Integer low, high;
  int exponent = 0;
};
Gap gap_between(const oracle::Dyadic& low, const oracle::Dyadic& high) {
  const int exponent = oracle::is_zero(low) ? high.exponent : std::min(low.exponent, high.exponent);
  return {oracle::floor_at(low, exponent).quotient, oracle::floor_at(high, exponent).quotient,
          exponent};
}

/// The number that would follow the largest one: the same code with one more exponent bit and
/// without specials.
oracle::Dyadic past_maximum(const JudgedFormat& format) {
  if (is_integer(format.model)) return {oracle::Integer(1) << format.model.fraction_bits, 0};
  oracle::FormatParameters wider = format.judge;
  wider.specials = oracle::FormatParameters::Specials::none;
  wider.exponent_bits += 1;
  wider.bits += 1;
  return oracle::decode(wider, oracle::maximum_code(format.judge) + 1).magnitude;
}
std::uint64_t maximum_code(const JudgedFormat& format) {
  return is_integer(format.model) ? (std::uint64_t{1} << format.model.fraction_bits) - 1
                                  : oracle::maximum_code(format.judge);
}

/// The magnitude of a code up to the largest one's, and beyond it: one, two and many steps.
Gap gap_above(const JudgedFormat& format, std::uint64_t code) {
  const std::uint64_t last = maximum_code(format);
  if (code < last) {
    return gap_between(oracle::decode(format.judge, code).magnitude,
                       oracle::decode(format.judge, code + 1).magnitude);
  }
  const oracle::Dyadic next = past_maximum(format);
  if (code == last) return gap_between(oracle::decode(format.judge, code).magnitude, next);
  const int doublings = code - last == 1 ? 1 : 70;
  return gap_between({next.significand, next.exponent + doublings - 1},
                     {next.significand, next.exponent + doublings});
}

constexpr int gap_bits = 32;

/// A point in a gap: `part` of 2^gap_bits parts above the low end, plus a tail.
Point point_in(const Gap& gap, std::uint64_t part, bool negative, bool sticky) {
  return point_at((gap.low << gap_bits) + (gap.high - gap.low) * part, gap.exponent - gap_bits,
                  negative, sticky);
}

struct Part {
  std::uint64_t part;
  bool sticky;
};
constexpr std::uint64_t whole = std::uint64_t{1} << gap_bits;
constexpr std::array all_parts = {
    Part{0, false},         Part{0, true},          Part{1, false},
    Part{whole / 4, false}, Part{whole / 2 - 1, true}, Part{whole / 2, false},
    Part{whole / 2, true},  Part{whole / 2 + 1, false}, Part{whole / 4 * 3, false},
    Part{whole - 1, false}, Part{whole - 1, true}};
constexpr std::array few_parts = {Part{0, false}, Part{0, true}, Part{whole / 2 - 1, true},
                                  Part{whole / 2, false}, Part{whole / 2, true}};

void judge_gap(const JudgedFormat& to, std::uint64_t code, std::span<const Part> parts,
               std::span<const JudgedOverflow> overflows, Mismatches& mismatches) {
  const Gap gap = gap_above(to, code);
  for (const Part& part : parts) {
    for (const bool negative : {false, true}) {
      const Point point = point_in(gap, part.part, negative, part.sticky);
      if (point.judge.is_zero()) continue;
      judge_roundings(to, point, overflows, mismatches);
    }
  }
}

}  // namespace

TEST_CASE("every code of every format up to 16 bits decodes to the judge's number") {
  Mismatches mismatches;
  for (const JudgedFormat& format : up_to_sixteen_bits()) {
    REQUIRE(bits(format.model) == format.judge.bits);
    const std::uint64_t codes = std::uint64_t{1} << bits(format.model);
    for (std::uint64_t code = 0; code < codes; ++code) judge_decode(format, code, mismatches);
  }
  CHECK(mismatches.report() == "");
}

TEST_CASE("codes of the wide formats decode to the judge's numbers") {
  Mismatches mismatches;
  std::mt19937_64 generator(1);
  for (const JudgedFormat& format : wide_formats) {
    REQUIRE(bits(format.model) == format.judge.bits);
    for (int i = 0; i < 20000; ++i) {
      // Also with the leading bits all equal: specials, subnormals, and integers near zero.
      const std::uint64_t random = generator() & code_mask(format.model);
      const auto cut = static_cast<int>(generator() % 64);
      judge_decode(format, random, mismatches);
      judge_decode(format, random & low_bits(cut), mismatches);
      judge_decode(format, (random | ~low_bits(cut)) & code_mask(format.model), mismatches);
    }
  }
  CHECK(mismatches.report() == "");
}

TEST_CASE("bits above a code are ignored") {
  for (const JudgedFormat& format : narrow_formats) {
    CAPTURE(format.name);
    const std::uint64_t codes = std::uint64_t{1} << bits(format.model);
    bool ignored = true;
    for (std::uint64_t code = 0; code < codes; ++code) {
      ignored = ignored && decode(format.model, code) == decode(format.model, code | codes) &&
                decode(format.model, code) == decode(format.model, code | ~(codes - 1));
    }
    CHECK(ignored);
  }
}

TEST_CASE("every code up to 9 bits to every narrow format, all roundings and policies") {
  Mismatches mismatches;
  parallel_for(narrow_formats.size(), 1, 0, [&](std::size_t index, std::size_t) {
    const JudgedFormat& to = narrow_formats[index];
    for (const JudgedFormat& from : narrow_formats) {
      for (std::uint64_t code = 0; code <= code_mask(from.model); ++code) {
        const Point point{oracle::decode(from.judge, code), exactly(decode(from.model, code))};
        judge_roundings(to, point, judged_overflows, mismatches);
      }
    }
  });
  CHECK(mismatches.report() == "");
}

TEST_CASE("every gap of the narrow formats and beyond, all roundings and policies") {
  Mismatches mismatches;
  parallel_for(narrow_formats.size(), 1, 0, [&](std::size_t index, std::size_t) {
    const JudgedFormat& to = narrow_formats[index];
    for (std::uint64_t code = 0; code <= maximum_code(to) + 2; ++code) {
      judge_gap(to, code, all_parts, judged_overflows, mismatches);
    }
  });
  CHECK(mismatches.report() == "");
}

TEST_CASE("every gap of fp16 and bf16, many of the 16-bit integers, all roundings") {
  Mismatches mismatches;
  for (const JudgedFormat& to : sixteen_bit_formats) {
    const std::uint64_t last = maximum_code(to);
    const std::uint64_t stride = is_integer(to.model) ? 37 : 1;
    parallel_for(last / stride + 1, 1024, 0, [&](std::size_t begin, std::size_t end) {
      for (std::size_t i = begin; i < end; ++i) {
        judge_gap(to, i * stride, few_parts, std::span(&ieee, 1), mismatches);
      }
    });
    for (std::uint64_t code = last - 3; code <= last + 2; ++code) {
      judge_gap(to, code, all_parts, judged_overflows, mismatches);
    }
    for (std::uint64_t code = 0; code < 8; ++code) {
      judge_gap(to, code, all_parts, judged_overflows, mismatches);
    }
  }
  CHECK(mismatches.report() == "");
}

TEST_CASE("gaps of the wide formats at both ends, at every exponent and at random") {
  Mismatches mismatches;
  parallel_for(wide_formats.size(), 1, 0, [&](std::size_t index, std::size_t) {
    const JudgedFormat& to = wide_formats[index];
    const std::uint64_t last = is_integer(to.model) ? magnitude_mask(to.model) : maximum_code(to);
    std::vector<std::uint64_t> codes;
    for (std::uint64_t i = 0; i < 8; ++i) {
      codes.push_back(i);
      codes.push_back(last - i);
    }
    for (int bit = 0; bit < bits(to.model); ++bit) {
      codes.push_back(std::min(last, low_bits(bit)));
      codes.push_back(std::min(last, low_bits(bit) + 1));
    }
    for (std::uint64_t exponent = 0; exponent < 250 && !is_integer(to.model); ++exponent) {
      const std::uint64_t field = exponent << to.model.fraction_bits;
      codes.push_back(field);
      codes.push_back(field | fraction_mask(to.model));
    }
    std::mt19937_64 generator(2);
    for (int i = 0; i < 500; ++i) codes.push_back(generator() % last);
    for (const std::uint64_t code : codes) {
      judge_gap(to, code, all_parts, judged_overflows, mismatches);
    }
    if (is_integer(to.model)) return;
    judge_gap(to, last + 1, all_parts, judged_overflows, mismatches);
    judge_gap(to, last + 2, all_parts, judged_overflows, mismatches);
  });
  CHECK(mismatches.report() == "");
}

TEST_CASE("numbers far above and far below every format") {
  Mismatches mismatches;
  for (const JudgedFormat& to : every_format()) {
    for (const int exponent : {-20000, -1300, -1075, -300, -151, -150, -149, -127, -60, -3, 60, 62,
                               63, 64, 65, 126, 127, 128, 129, 300, 1024, 1025, 20000}) {
      for (const bool negative : {false, true}) {
        for (const std::int64_t significand : {1, 3, 5, 7}) {
          judge_roundings(to, point_at(significand, exponent, negative, false), judged_overflows,
                          mismatches);
          judge_roundings(to, point_at(oracle::Integer(significand) << 120, exponent - 120, negative, true),
                          judged_overflows, mismatches);
        }
      }
    }
    for (const bool negative : {false, true}) {
      for (const oracle::Number& special : {oracle::infinity(negative), oracle::zero(negative)}) {
        judge_roundings(to, {special, as_model(special)}, judged_overflows, mismatches);
      }
    }
    judge_roundings(to, {oracle::nan(), exactly(nan_value())}, judged_overflows, mismatches);
  }
  CHECK(mismatches.report() == "");
}

TEST_CASE("stochastic rounding with every value of 1 to 6 random bits") {
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
        const Point point =
            point_in(gap, whole / steps * step + (thorough ? 0 : whole / 11), step % 3 == 0, sticky);
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
    const std::uint64_t last = is_integer(to.model) ? magnitude_mask(to.model) : maximum_code(to);
    for (int i = 0; i < 2000; ++i) {
      const Gap gap = gap_above(to, generator() % last);
      const std::uint64_t part = generator() % whole;
      const Point point = point_in(gap, part, generator() % 2 != 0, generator() % 2 != 0);
      for (const int count : {8, 13, 16, 24, 32, 64}) {
        // The random bits whose carry is next to deciding, and others.
        const std::uint64_t needed =
            count >= gap_bits ? (whole - part) << (count - gap_bits) : (whole - part) >> (gap_bits - count);
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

TEST_CASE("bits above the random ones are ignored; none of them means truncation") {
  for (std::uint64_t code = 0; code < 0x10000; ++code) {
    const Value value = decode(fp16, code);
    REQUIRE(encode(e4m3, value, Rounding::stochastic, overflow_ieee, {0xFFA5, 8}) ==
            encode(e4m3, value, Rounding::stochastic, overflow_ieee, {0xA5, 8}));
    if (std::abs(value.exponent) < 18 && oracle::compare({value.significand, value.exponent}, {448, 0}) <= 0) {
      REQUIRE(encode(e4m3, value, Rounding::stochastic) == encode(e4m3, value, Rounding::toward_zero));
    }
  }
}

TEST_CASE("infinity_always overflows under every rounding") {
  constexpr Overflow always = {.finite = Overflow::Finite::infinity_always};
  Mismatches mismatches;
  for (const JudgedFormat& to : narrow_formats) {
    if (is_integer(to.model) || (!oracle::has_infinity(to.judge) && !oracle::has_nan(to.judge))) {
      continue;
    }
    // One exponent bit more and no specials: the rounded number before any overflow.
    oracle::FormatParameters wider = to.judge;
    wider.specials = oracle::FormatParameters::Specials::none;
    wider.exponent_bits += 1;
    wider.bits += 1;
    const std::uint64_t last = maximum_code(to);
    for (std::uint64_t code = last - 2; code <= last + 2; ++code) {
      for (const Part& part : all_parts) {
        for (const JudgedRounding& rounding : judged_roundings) {
          const Point point = point_in(gap_above(to, code), part.part, false, part.sticky);
          const std::uint64_t rounded = oracle::encode(wider, point.judge, rounding.judge);
          const std::uint64_t judge =
              rounded <= last ? rounded
                              : oracle::encode(to.judge, oracle::infinity(false), rounding.judge);
          const std::uint64_t model = encode(to.model, point.model, rounding.model, always);
          mismatches.compare(same_code(to, model, judge), model, judge, [&](auto& out) {
            out << to.name << ' ' << code << ' ' << part.part << ' ' << rounding.name;
          });
        }
      }
    }
  }
  CHECK(mismatches.report() == "");
}

TEST_CASE("integers wrap modulo 2^bits") {
  constexpr Overflow wrap = {.finite = Overflow::Finite::wrap};
  Mismatches mismatches;
  const auto wide = oracle::integer(64, true);
  const auto judge_wrap = [&](const oracle::Number& number) {
    for (const JudgedFormat& to : every_format()) {
      if (!is_integer(to.model)) continue;
      for (const JudgedRounding& rounding : judged_roundings) {
        const std::uint64_t model = encode(to.model, as_model(number), rounding.model, wrap);
        const std::uint64_t judge =
            oracle::encode(wide, number, rounding.judge) & code_mask(to.model);
        mismatches.compare(model == judge, model, judge, [&](auto& out) {
          out << (number.negative ? "-" : "") << number.magnitude.significand << " * 2^" << std::dec
              << number.magnitude.exponent << " to " << to.name << ", " << rounding.name;
        });
      }
    }
  };
  for (std::uint64_t code = 0; code < 0x10000; code += 5) {
    const oracle::Number number = oracle::decode(oracle::fp16, code);
    if (number.is_finite()) judge_wrap(number);
  }
  std::mt19937_64 generator(4);
  for (int i = 0; i < 3000; ++i) {
    const std::int64_t significand = static_cast<std::int64_t>(generator()) >> generator() % 60;
    const int exponent = -static_cast<int>(generator() % 70) - 2;
    judge_wrap(oracle::dyadic(significand, exponent));
  }
  CHECK(mismatches.report() == "");

  // Past the judge's 64 bits: the low bits of the number itself.
  const auto at = [&](std::uint64_t significand, int exponent, bool negative, const Format& to) {
    return encode(to, Unrounded{Kind::finite, negative, exponent, significand, false},
                  Rounding::nearest_even, wrap);
  };
  CHECK(at(5, 62, false, int64) == std::uint64_t{1} << 62);
  CHECK(at(5, 62, true, int64) == 3 * (std::uint64_t{1} << 62));
  CHECK(at(3, 63, false, uint64) == std::uint64_t{1} << 63);
  CHECK(at(3, 64, false, uint64) == 0);
  CHECK(at(3, 31, true, uint32) == std::uint64_t{1} << 31);
  CHECK(at(~std::uint64_t{0}, 1, false, uint64) == ~std::uint64_t{1});
  for (const int exponent : {65, 100, 126, 127, 128, 1000}) CHECK(at(7, exponent, true, int32) == 0);
  CHECK(encode(int32, infinity_value(false), Rounding::nearest_even, wrap) == 0x7FFFFFFF);
  CHECK(encode(int32, infinity_value(true), Rounding::nearest_even, wrap) == 0x80000000);
}

}  // namespace guardbit::formats
