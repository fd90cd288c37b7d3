#include <algorithm>
#include <random>
#include <vector>

#include "formats/codec.hpp"
#include "formats/support/parallel.hpp"
#include "tests/catch.hpp"
#include "tests/formats/judged_encode.hpp"

namespace guardbit::formats {
namespace {

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
  return model.exponent ==
             stored_exponent - format.model.fraction_bits * !is_integer(format.model) &&
         oracle::compare({model.significand, model.exponent}, judge.magnitude) == 0;
}

void judge_decode(const JudgedFormat& format, std::uint64_t code, Mismatches& mismatches) {
  const Value model = decode(format.model, code);
  const bool same = same_number(format, code, model, oracle::decode(format.judge, code));
  mismatches.compare(same, model.significand, 0,
                     [&](auto& out) { out << "decode " << format.name << ' ' << code; });
}

/// One in `every` gap of fp16 and bf16, fewer of the integers, and both ends.
void judge_sixteen_bits(std::uint64_t every) {
  Mismatches mismatches;
  for (const JudgedFormat& to : sixteen_bit_formats) {
    const std::uint64_t last = maximum_code(to);
    const std::uint64_t stride = is_integer(to.model) ? std::max<std::uint64_t>(every, 37) : every;
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

TEST_CASE("every fifth gap of fp16 and bf16, many of the 16-bit integers, all roundings") {
  judge_sixteen_bits(5);
}

TEST_CASE("every gap of fp16 and bf16, many of the 16-bit integers, all roundings", "[sweep]") {
  judge_sixteen_bits(1);
}

TEST_CASE("gaps of the wide formats at both ends, at every exponent and at random", "[long]") {
  Mismatches mismatches;
  parallel_for(wide_formats.size(), 1, 0, [&](std::size_t index, std::size_t) {
    const JudgedFormat& to = wide_formats[index];
    const std::uint64_t last = maximum_code(to);
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
    for (const int exponent :
         {-20000, -1300, -1075, -300, -151, -150, -149, -127, -60,  -3,   60,   62,
          63,     64,    65,    126,  127,  128,  129,  300,  1024, 1025, 20000}) {
      for (const bool negative : {false, true}) {
        for (const std::int64_t significand : {1, 3, 5, 7}) {
          judge_roundings(to, point_at(significand, exponent, negative, false), judged_overflows,
                          mismatches);
          judge_roundings(
              to, point_at(oracle::Integer(significand) << 120, exponent - 120, negative, true),
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

}  // namespace guardbit::formats
