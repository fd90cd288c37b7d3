#pragma once

#include <algorithm>
#include <array>
#include <span>
#include <vector>

#include "formats/codec.hpp"
#include "tests/formats/judged_formats.hpp"
#include "tests/formats/mismatches.hpp"

/// Numbers between and beyond the numbers of a format, encoded by the model and by the judge.
namespace guardbit::formats {

inline std::vector<JudgedFormat> up_to_sixteen_bits() {
  std::vector<JudgedFormat> all(narrow_formats.begin(), narrow_formats.end());
  all.insert(all.end(), sixteen_bit_formats.begin(), sixteen_bit_formats.end());
  return all;
}

inline std::vector<JudgedFormat> every_format() {
  std::vector<JudgedFormat> all = up_to_sixteen_bits();
  all.insert(all.end(), wide_formats.begin(), wide_formats.end());
  return all;
}

/// (significand + tail) * 2^exponent for the judge and for the model.
struct Point {
  oracle::Number judge;
  Unrounded model;
};
inline Point point_at(const oracle::Integer& significand, int exponent, bool negative,
                      bool sticky) {
  const oracle::Number stem{oracle::Number::Kind::finite, negative, {significand, exponent}};
  Point point{stem, as_model(stem)};
  if (!sticky) return point;
  // Far below every bit that a rounding looks at, 64 random bits included.
  const oracle::Integer with_tail = (significand << 100) + 1;
  point.judge.magnitude = {with_tail, exponent - 100};
  point.model = {Kind::finite, negative, exponent, point.model.significand, true};
  return point;
}

inline void judge_encode(const JudgedFormat& to, const Point& point, const JudgedRounding& rounding,
                         const JudgedOverflow& overflow, RandomBits random,
                         Mismatches& mismatches) {
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

inline void judge_roundings(const JudgedFormat& to, const Point& point,
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
inline Gap gap_between(const oracle::Dyadic& low, const oracle::Dyadic& high) {
  const int exponent = oracle::is_zero(low) ? high.exponent : std::min(low.exponent, high.exponent);
  return {oracle::floor_at(low, exponent).quotient, oracle::floor_at(high, exponent).quotient,
          exponent};
}

inline std::uint64_t maximum_code(const JudgedFormat& format) {
  return is_integer(format.model) ? magnitude_mask(format.model)
                                  : oracle::maximum_code(format.judge);
}

/// The number that would follow the largest one: one spacing above it.
inline oracle::Dyadic past_maximum(const JudgedFormat& format) {
  oracle::Dyadic last = oracle::decode(format.judge, maximum_code(format)).magnitude;
  last.significand += 1;
  return last;
}

/// The magnitude of a code up to the largest one's, and beyond it: one, two and many steps.
inline Gap gap_above(const JudgedFormat& format, std::uint64_t code) {
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

inline constexpr int gap_bits = 32;

/// A point in a gap: `part` of 2^gap_bits parts above the low end, plus a tail.
inline Point point_in(const Gap& gap, std::uint64_t part, bool negative, bool sticky) {
  return point_at((gap.low << gap_bits) + (gap.high - gap.low) * part, gap.exponent - gap_bits,
                  negative, sticky);
}

struct Part {
  std::uint64_t part;
  bool sticky;
};
inline constexpr std::uint64_t whole = std::uint64_t{1} << gap_bits;
inline constexpr std::array all_parts = {Part{0, false},
                                         Part{0, true},
                                         Part{1, false},
                                         Part{whole / 4, false},
                                         Part{whole / 2 - 1, true},
                                         Part{whole / 2, false},
                                         Part{whole / 2, true},
                                         Part{whole / 2 + 1, false},
                                         Part{whole / 4 * 3, false},
                                         Part{whole - 1, false},
                                         Part{whole - 1, true}};
inline constexpr std::array few_parts = {Part{0, false}, Part{0, true}, Part{whole / 2 - 1, true},
                                         Part{whole / 2, false}, Part{whole / 2, true}};

inline void judge_gap(const JudgedFormat& to, std::uint64_t code, std::span<const Part> parts,
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

}  // namespace guardbit::formats
