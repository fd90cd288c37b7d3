#include <algorithm>
#include <vector>

#include "formats/codec.hpp"
#include "formats/support/parallel.hpp"
#include "tests/catch.hpp"
#include "tests/formats/judged_formats.hpp"
#include "tests/formats/mismatches.hpp"

/// Conversions of every code of fp16, bf16 and fp32.
namespace guardbit::formats {
namespace {

constexpr std::uint32_t sign_bit = 0x80000000;
constexpr std::uint32_t infinity = 0x7F800000;

/// The second judge: roundings are monotone, so the fp32 codes of one sign up to infinity fall into
/// runs with one result each. The first judge answers for both ends of every run.
struct Run {
  std::uint32_t first = 0;  // fp32 code
  std::uint64_t result = 0;
};

std::uint64_t judge_code(const JudgedFormat& to, const JudgedOverflow& overflow,
                         std::uint32_t code) {
  return oracle::encode(to.judge, oracle::decode(oracle::fp32, code), oracle::nearest_even,
                        overflow.judge);
}

/// The runs of the codes from +0 to +infinity, or from -0 to -infinity.
std::vector<Run> find_runs(const JudgedFormat& to, const JudgedOverflow& overflow,
                           std::uint32_t sign) {
  std::vector<Run> runs;
  std::uint32_t length = 1;
  for (std::uint32_t first = 0; first <= infinity; first += length) {
    const std::uint64_t result = judge_code(to, overflow, sign | first);
    runs.push_back({sign | first, result});
    // The last code with this result is at least `same` and before `other`; runs resemble the ones
    // before them.
    std::uint32_t same = first;
    std::uint32_t other = infinity + 1;
    for (std::uint32_t step = length; step < other - first; step *= 2) {
      if (judge_code(to, overflow, sign | (first + step)) == result) {
        same = first + step;
      } else {
        other = first + step;
      }
    }
    while (other - same > 1) {
      const std::uint32_t middle = same + (other - same) / 2;
      (judge_code(to, overflow, sign | middle) == result ? same : other) = middle;
    }
    length = other - first;
  }
  return runs;
}

/// The NaN that a quieted fp32 NaN becomes: sign and leading payload bits where there is room.
std::uint64_t nan_result(const Format& to, std::uint32_t code) {
  const std::uint64_t negative = code >> 31;
  switch (to.specials) {
    case Specials::ieee: {
      const std::uint64_t exponent_and_quiet = ((std::uint64_t{1} << to.exponent_bits) - 1) * 2 + 1;
      const std::uint64_t payload = (code & 0x3FFFFF) >> (23 - to.fraction_bits);
      return negative << (to.exponent_bits + to.fraction_bits) |
             exponent_and_quiet << (to.fraction_bits - 1) | payload;
    }
    case Specials::nan_all_ones:
      // All bits below the sign, and the sign.
      return low_bits(to.exponent_bits + to.fraction_bits) | (to.has_sign ? negative << 7 : 0);
    case Specials::nan_negative_zero: return 0x80;
    case Specials::none: break;
  }
  return magnitude_mask(to);
}

/// All of [begin, end), which share a sign and are no NaNs.
void walk(const JudgedFormat& to, const JudgedOverflow& overflow, const std::vector<Run>& runs,
          std::uint32_t begin, std::uint32_t end, Mismatches& mismatches) {
  auto next = std::upper_bound(runs.begin(), runs.end(), begin,
                               [](std::uint32_t code, const Run& run) { return code < run.first; });
  std::uint64_t code = begin;
  while (code < end) {
    const std::uint64_t judge = std::prev(next)->result;
    const bool judge_is_nan = oracle::is_nan(to.judge, judge);
    const std::uint64_t stop = next == runs.end() ? end : std::min(end, next->first);
    for (; code < stop; ++code) {
      const std::uint64_t model =
          convert(formats::fp32, code, to.model, Rounding::nearest_even, overflow.model);
      if (model == judge || (judge_is_nan && oracle::is_nan(to.judge, model))) continue;
      mismatches.compare(false, model, judge,
                         [&](auto& out) { out << "fp32 " << code << " to " << to.name; });
    }
    if (next != runs.end()) ++next;
  }
}

void walk_nans(const JudgedFormat& to, const JudgedOverflow& overflow, std::uint32_t begin,
               std::uint32_t end, Mismatches& mismatches) {
  for (std::uint64_t code = begin; code < end; ++code) {
    const std::uint64_t model =
        convert(formats::fp32, code, to.model, Rounding::nearest_even, overflow.model);
    const std::uint64_t judge = nan_result(to.model, static_cast<std::uint32_t>(code));
    mismatches.compare(model == judge, model, judge,
                       [&](auto& out) { out << "fp32 NaN " << code; });
  }
}

/// Every 1-in-`stride`-th block of 2^16 fp32 codes, under both policies.
void convert_all(const JudgedFormat& to, std::size_t stride) {
  Mismatches mismatches;
  for (const JudgedOverflow& overflow : {ieee, saturating}) {
    const std::vector<Run> runs[] = {find_runs(to, overflow, 0), find_runs(to, overflow, sign_bit)};
    constexpr std::uint32_t block = 1 << 16;
    parallel_for(sign_bit / block / stride, 64, 0, [&](std::size_t first, std::size_t last) {
      for (std::size_t i = first * stride; i < last * stride; i += stride) {
        const auto begin = static_cast<std::uint32_t>(i) * block;
        const std::uint32_t numbers = std::clamp(infinity + 1, begin, begin + block);
        for (const std::uint32_t sign : {std::uint32_t{0}, sign_bit}) {
          if (numbers > begin) {
            walk(to, overflow, runs[sign != 0], sign | begin, sign + numbers, mismatches);
          }
          walk_nans(to, overflow, sign + numbers, sign + begin + block, mismatches);
        }
      }
    });
  }
  CHECK(mismatches.report() == "");
}

constexpr std::array narrow_destinations = {
    judged::fp16,     judged::bf16,     judged::tf32, judged::e5m2,  judged::e4m3,
    judged::e5m2fnuz, judged::e4m3fnuz, judged::e3m2, judged::e2m3,  judged::e2m1,
    judged::e8m0,     judged::ue4m3,    judged::int8, judged::uint8, judged::int4};

/// Every code of a 16-bit format to every format of at most 16 bits.
void convert_sixteen_bits(const JudgedFormat& from) {
  Mismatches mismatches;
  std::vector<JudgedFormat> destinations(narrow_formats.begin(), narrow_formats.end());
  destinations.insert(destinations.end(), sixteen_bit_formats.begin(), sixteen_bit_formats.end());
  parallel_for(0x10000, 256, 0, [&](std::size_t begin, std::size_t end) {
    for (std::uint64_t code = begin; code < end; ++code) {
      const Value value = decode(from.model, code);
      const oracle::Number number = oracle::decode(from.judge, code);
      for (const JudgedFormat& to : destinations) {
        if (number.is_nan() && is_integer(to.model)) continue;
        for (const JudgedRounding& rounding : judged_roundings) {
          for (const JudgedOverflow& overflow : judged_overflows) {
            const std::uint64_t model = encode(to.model, value, rounding.model, overflow.model);
            const std::uint64_t judge =
                oracle::encode(to.judge, number, rounding.judge, overflow.judge);
            mismatches.compare(same_code(to, model, judge), model, judge, [&](auto& out) {
              out << from.name << ' ' << code << " to " << to.name << ", " << rounding.name << ", "
                  << overflow.name;
            });
          }
        }
      }
    }
  });
  CHECK(mismatches.report() == "");
}

}  // namespace

TEST_CASE("one in 32749 blocks of the fp32 codes to every narrow format", "[long]") {
  for (const JudgedFormat& to : narrow_destinations) {
    CAPTURE(to.name);
    // tf32's runs alone take longer than a quick test.
    if (to.model != formats::tf32) convert_all(to, 32749);
  }
}

TEST_CASE("every fp16 code to every format up to 16 bits, all roundings and policies", "[sweep]") {
  convert_sixteen_bits(judged::fp16);
}
TEST_CASE("every bf16 code to every format up to 16 bits, all roundings and policies", "[sweep]") {
  convert_sixteen_bits(judged::bf16);
}

TEST_CASE("every fp32 code to fp16", "[sweep]") { convert_all(judged::fp16, 1); }
TEST_CASE("every fp32 code to bf16", "[sweep]") { convert_all(judged::bf16, 1); }
TEST_CASE("every fp32 code to tf32", "[sweep]") { convert_all(judged::tf32, 1); }
TEST_CASE("every fp32 code to e5m2", "[sweep]") { convert_all(judged::e5m2, 1); }
TEST_CASE("every fp32 code to e4m3", "[sweep]") { convert_all(judged::e4m3, 1); }
TEST_CASE("every fp32 code to e5m2fnuz", "[sweep]") { convert_all(judged::e5m2fnuz, 1); }
TEST_CASE("every fp32 code to e4m3fnuz", "[sweep]") { convert_all(judged::e4m3fnuz, 1); }
TEST_CASE("every fp32 code to e3m2", "[sweep]") { convert_all(judged::e3m2, 1); }
TEST_CASE("every fp32 code to e2m3", "[sweep]") { convert_all(judged::e2m3, 1); }
TEST_CASE("every fp32 code to e2m1", "[sweep]") { convert_all(judged::e2m1, 1); }
TEST_CASE("every fp32 code to e8m0", "[sweep]") { convert_all(judged::e8m0, 1); }
TEST_CASE("every fp32 code to ue4m3", "[sweep]") { convert_all(judged::ue4m3, 1); }
TEST_CASE("every fp32 code to int8", "[sweep]") { convert_all(judged::int8, 1); }
TEST_CASE("every fp32 code to uint8", "[sweep]") { convert_all(judged::uint8, 1); }
TEST_CASE("every fp32 code to int4", "[sweep]") { convert_all(judged::int4, 1); }

}  // namespace guardbit::formats
