#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "formats/format_catalogue.hpp"
#include "formats/rounding.hpp"
#include "formats/value.hpp"
#include "tests/oracle/round.hpp"

/// The model's formats, roundings and policies beside the judge's: two tables written apart.
namespace guardbit::formats {

struct JudgedFormat {
  std::string_view name;
  Format model;
  oracle::FormatParameters judge;
};

constexpr oracle::FormatParameters without_subnormals(oracle::FormatParameters format) {
  format.has_subnormals = false;
  return format;
}

namespace judged {

using Judge = oracle::FormatParameters::Specials;

inline constexpr JudgedFormat fp64{"fp64", formats::fp64, oracle::fp64};
inline constexpr JudgedFormat fp32{"fp32", formats::fp32, oracle::fp32};
inline constexpr JudgedFormat tf32{"tf32", formats::tf32, oracle::tf32};
inline constexpr JudgedFormat bf16{"bf16", formats::bf16, oracle::bf16};
inline constexpr JudgedFormat fp16{"fp16", formats::fp16, oracle::fp16};
inline constexpr JudgedFormat e5m2{"e5m2", formats::e5m2, oracle::e5m2};
inline constexpr JudgedFormat e4m3{"e4m3", formats::e4m3, oracle::e4m3};
inline constexpr JudgedFormat e5m2fnuz{"e5m2fnuz", formats::e5m2fnuz, oracle::e5m2fnuz};
inline constexpr JudgedFormat e4m3fnuz{"e4m3fnuz", formats::e4m3fnuz, oracle::e4m3fnuz};
inline constexpr JudgedFormat e3m2{"e3m2", formats::e3m2, oracle::e3m2};
inline constexpr JudgedFormat e2m3{"e2m3", formats::e2m3, oracle::e2m3};
inline constexpr JudgedFormat e2m1{"e2m1", formats::e2m1, oracle::e2m1};
inline constexpr JudgedFormat e8m0{"e8m0", formats::e8m0, oracle::e8m0};
inline constexpr JudgedFormat ue4m3{"ue4m3", formats::ue4m3, oracle::ue4m3};
inline constexpr JudgedFormat int64{"int64", formats::int64, oracle::integer(64, true)};
inline constexpr JudgedFormat int32{"int32", formats::int32, oracle::int32};
inline constexpr JudgedFormat int16{"int16", formats::int16, oracle::integer(16, true)};
inline constexpr JudgedFormat int8{"int8", formats::int8, oracle::int8};
inline constexpr JudgedFormat int4{"int4", formats::int4, oracle::int4};
inline constexpr JudgedFormat uint64{"uint64", formats::uint64, oracle::integer(64, false)};
inline constexpr JudgedFormat uint32{"uint32", formats::uint32, oracle::integer(32, false)};
inline constexpr JudgedFormat uint16{"uint16", formats::uint16, oracle::integer(16, false)};
inline constexpr JudgedFormat uint8{"uint8", formats::uint8, oracle::uint8};
inline constexpr JudgedFormat uint4{"uint4", formats::uint4, oracle::uint4};
inline constexpr JudgedFormat b1{"b1", formats::b1, oracle::b1};

/// What the command line can ask for beside the catalogue: no fraction, no exponent range to speak
/// of, a bias far from the middle, no subnormals.
inline constexpr JudgedFormat e5m0{"e5m0", floating(5, 0, Specials::none),
                                   oracle::floating(5, 0, 15, Judge::none)};
inline constexpr JudgedFormat e4m0{"e4m0", floating(4, 0, Specials::ieee),
                                   oracle::floating(4, 0, 7, Judge::ieee)};
inline constexpr JudgedFormat e1m2{"e1m2", floating(1, 2, Specials::none),
                                   oracle::floating(1, 2, 0, Judge::none)};
inline constexpr JudgedFormat e4m3ieee{"e4m3ieee", floating(4, 3),
                                       oracle::floating(4, 3, 7, Judge::ieee)};
inline constexpr JudgedFormat e4m3b11fnuz{
    "e4m3b11fnuz",
    {Encoding::floating, true, 4, 3, 11, Specials::nan_negative_zero, true},
    oracle::floating(4, 3, 11, Judge::nan_negative_zero)};
inline constexpr JudgedFormat e3m4b_20{"e3m4b-20",
                                       {Encoding::floating, true, 3, 4, -20, Specials::none, true},
                                       oracle::floating(3, 4, -20, Judge::none)};
inline constexpr JudgedFormat ue5m3{"ue5m3",
                                    {Encoding::floating, false, 5, 3, 15, Specials::ieee, true},
                                    oracle::floating(5, 3, 15, Judge::ieee, false)};
inline constexpr JudgedFormat e4m3_flat{
    "e4m3 without subnormals",
    {Encoding::floating, true, 4, 3, 7, Specials::nan_all_ones, false},
    without_subnormals(oracle::e4m3)};
inline constexpr JudgedFormat e5m2_flat{"e5m2 without subnormals",
                                        {Encoding::floating, true, 5, 2, 15, Specials::ieee, false},
                                        without_subnormals(oracle::e5m2)};

}  // namespace judged

/// Every catalogued format of at most 8 bits, and user-defined ones of at most 9.
inline constexpr std::array narrow_formats = {
    judged::e5m2,     judged::e4m3,      judged::e5m2fnuz, judged::e4m3fnuz,    judged::e3m2,
    judged::e2m3,     judged::e2m1,      judged::e8m0,     judged::ue4m3,       judged::int8,
    judged::uint8,    judged::int4,      judged::uint4,    judged::b1,          judged::e5m0,
    judged::e4m0,     judged::e1m2,      judged::e4m3ieee, judged::e4m3b11fnuz, judged::ue5m3,
    judged::e3m4b_20, judged::e4m3_flat, judged::e5m2_flat};

inline constexpr std::array sixteen_bit_formats = {judged::fp16, judged::bf16, judged::int16,
                                                   judged::uint16};

inline constexpr std::array wide_formats = {judged::tf32,  judged::fp32,   judged::fp64,
                                            judged::int32, judged::uint32, judged::int64,
                                            judged::uint64};

struct JudgedRounding {
  std::string_view name;
  Rounding model;
  oracle::Rounding judge;
};

/// Every rounding but the stochastic one.
inline constexpr std::array judged_roundings = {
    JudgedRounding{"nearest_even", Rounding::nearest_even, oracle::nearest_even},
    JudgedRounding{"nearest_away", Rounding::nearest_away, oracle::nearest_away},
    JudgedRounding{"toward_zero", Rounding::toward_zero, oracle::toward_zero},
    JudgedRounding{"upward", Rounding::upward, oracle::upward},
    JudgedRounding{"downward", Rounding::downward, oracle::downward},
    JudgedRounding{"to_odd", Rounding::to_odd, oracle::to_odd}};
inline constexpr JudgedRounding nearest_even = judged_roundings[0];
inline constexpr JudgedRounding downward = judged_roundings[4];

struct JudgedOverflow {
  std::string_view name;
  Overflow model;
  oracle::Overflow judge;
};

inline constexpr JudgedOverflow ieee{"ieee", overflow_ieee, oracle::ieee};
inline constexpr JudgedOverflow saturating{"saturate", overflow_saturate, oracle::saturate};
inline constexpr std::array judged_overflows = {
    ieee, saturating,
    JudgedOverflow{"saturate finite",
                   {.finite = Overflow::Finite::saturate},
                   {.finite = oracle::Overflow::Finite::saturate}},
    JudgedOverflow{"saturate infinity",
                   {.infinity = Overflow::Infinity::saturate},
                   {.infinity = oracle::Overflow::Infinity::saturate}}};

/// The judge's NaNs have no sign and no payload; those are judged apart.
inline bool same_code(const JudgedFormat& format, std::uint64_t model, std::uint64_t judge) {
  if (model == judge) return true;
  return (model & ~code_mask(format.model)) == 0 && oracle::is_nan(format.judge, model) &&
         oracle::is_nan(format.judge, judge);
}

/// A number of the judge as the model's input; magnitudes below 2^128 units.
inline Unrounded as_model(const oracle::Number& number) {
  if (number.is_nan()) return exactly(nan_value());
  if (number.is_infinity()) return exactly(infinity_value(number.negative));
  if (number.is_zero()) return exactly(zero_value(number.negative));
  const oracle::Integer high = number.magnitude.significand >> 64;
  const oracle::Integer low = number.magnitude.significand - (high << 64);
  return {Kind::finite, number.negative, number.magnitude.exponent,
          uint128{static_cast<std::uint64_t>(high)} << 64 | static_cast<std::uint64_t>(low), false};
}

}  // namespace guardbit::formats
