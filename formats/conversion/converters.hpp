#pragma once

#include <array>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "formats/codec.hpp"
#include "formats/format_catalogue.hpp"
#include "formats/rounding.hpp"

namespace guardbit::formats {

/// What one real converter does to the destinations it has: a name shared by its rows, and a rule
/// per group of destinations. Two converters of the same pair of formats differ in nothing but
/// these fields.
struct Converter {
  std::string_view name;
  std::span<const Format> destinations;
  Rounding rounding = Rounding::nearest_even;
  Overflow overflow;
  /// of Rounding::stochastic
  int random_bits = 0;
  /// one line
  std::string_view description;
  /// where the rule was read or measured
  std::string_view reference;
  /// other numbers are rounded to it first, to nearest even
  Format source = fp32;
};

namespace converter_rows {

using Finite = Overflow::Finite;
using Infinity = Overflow::Infinity;
using Nan = Overflow::Nan;
using NoNan = Overflow::NoNan;
using Negative = Overflow::Negative;
using NoZero = Overflow::NoZero;
using LowestGap = Overflow::LowestGap;

inline constexpr std::array only_tf32 = {tf32};
inline constexpr std::array only_bf16 = {bf16};
inline constexpr std::array only_fp16 = {fp16};
inline constexpr std::array only_e8m0 = {e8m0};
inline constexpr std::array only_e2m1 = {e2m1};
inline constexpr std::array sixteen_bits = {fp16, bf16};
inline constexpr std::array sixteen_bits_and_tf32 = {fp16, bf16, tf32};
inline constexpr std::array fp8 = {e4m3, e5m2};
inline constexpr std::array fp8_fnuz = {e4m3fnuz, e5m2fnuz};
inline constexpr std::array fp6_fp4 = {e2m3, e3m2, e2m1};
inline constexpr std::array fp8_fp6 = {e4m3, e5m2, e2m3, e3m2};
/// ml_dtypes also has float8_e4m3 and float8_e3m4 (IEEE specials) and float8_e4m3b11fnuz.
inline constexpr std::array ml_dtypes_fp8 = {
    e4m3,           e5m2,
    e4m3fnuz,       e5m2fnuz,
    bf16,           floating(4, 3),
    floating(3, 4), Format{Encoding::floating, true, 4, 3, 11, Specials::nan_negative_zero, true}};

inline constexpr Overflow device = {
    .finite = Finite::infinity, .infinity = Infinity::keep, .nan = Nan::all_ones};
inline constexpr Overflow device_satfinite = {.finite = Finite::saturate,
                                              .infinity = Infinity::saturate,
                                              .nan = Nan::all_ones,
                                              .no_nan = NoNan::maximum};
/// cuda_fp8.hpp's code for machines without the instruction cuts the sign off; the instruction is
/// taken to agree.
inline constexpr Overflow device_scale = {.finite = Finite::infinity,
                                          .infinity = Infinity::keep,
                                          .nan = Nan::all_ones,
                                          .negative = Negative::magnitude};
inline constexpr Overflow device_scale_satfinite = {.finite = Finite::saturate,
                                                    .infinity = Infinity::saturate,
                                                    .nan = Nan::all_ones,
                                                    .negative = Negative::magnitude};

inline constexpr std::string_view measured =
    "equal on an H200 for all 2^32 FP32 codes (driver 580.159.04, ptxas 13.0); PTX ISA cvt";
inline constexpr std::string_view documented = "PTX ISA cvt (sm_100a); not measured here";
inline constexpr std::string_view e8m0_source =
    "PTX ISA cvt (sm_100a); cuda_fp8.hpp 13.0, run on 3 * 10^6 numbers";
inline constexpr std::string_view narrow_source =
    "PTX ISA cvt (sm_100a); cuda_fp6.hpp, cuda_fp4.hpp 13.0, run on 3 * 10^6 numbers";
inline constexpr std::string_view cuda_header =
    "cuda_fp8.hpp of CUDA 13.0, run on 3 * 10^6 numbers";
inline constexpr std::string_view ml_dtypes_source =
    "ml_dtypes 0.6.0, compared on all fp16 codes and 5 * 10^5 fp32 and 10^6 fp64";

}  // namespace converter_rows

/// Every converter. Not here because a row cannot say it: ml_dtypes' integers, which go through a
/// C++ cast.
inline constexpr std::array converters = {
    Converter{"cvt.rn", converter_rows::sixteen_bits_and_tf32, Rounding::nearest_even,
              converter_rows::device, 0,
              "NVIDIA cvt.rn: IEEE 754, every NaN becomes the positive all-ones one",
              converter_rows::measured},
    Converter{"cvt.rz", converter_rows::sixteen_bits_and_tf32, Rounding::toward_zero,
              converter_rows::device, 0,
              "NVIDIA cvt.rz: truncation, so that only infinity becomes infinity",
              converter_rows::measured},
    Converter{"cvt.rz", converter_rows::only_e8m0, Rounding::toward_zero,
              converter_rows::device_scale, 0,
              "NVIDIA cvt.rz.ue8m0x2: the exponent of the magnitude; zero becomes 2^-127",
              converter_rows::e8m0_source},
    Converter{"cvt.rp", converter_rows::sixteen_bits, Rounding::upward, converter_rows::device, 0,
              "NVIDIA cvt.rp: upward", converter_rows::measured},
    Converter{"cvt.rp", converter_rows::only_e8m0, Rounding::upward, converter_rows::device_scale,
              0, "NVIDIA cvt.rp.ue8m0x2: the magnitude rounded up; zero becomes 2^-127",
              converter_rows::e8m0_source},
    Converter{"cvt.rm", converter_rows::sixteen_bits, Rounding::downward, converter_rows::device, 0,
              "NVIDIA cvt.rm: downward", converter_rows::measured},
    Converter{
        "cvt.rna",
        converter_rows::only_tf32,
        Rounding::nearest_away,
        {.nan = converter_rows::Nan::cut},
        0,
        "NVIDIA cvt.rna.tf32: integer code; a NaN with nothing in its upper fraction becomes infinity",
        converter_rows::measured},
    Converter{"cvt.rn.satfinite", converter_rows::sixteen_bits, Rounding::nearest_even,
              converter_rows::device_satfinite, 0, "NVIDIA cvt.rn.satfinite: clamped, infinity too",
              converter_rows::measured},
    Converter{"cvt.rn.satfinite", converter_rows::fp8, Rounding::nearest_even,
              converter_rows::device_satfinite, 0,
              "NVIDIA cvt.rn.satfinite.{e4m3,e5m2}x2: clamped, infinity too; every NaN becomes 7F",
              converter_rows::measured},
    Converter{
        "cvt.rn.satfinite", converter_rows::fp6_fp4, Rounding::nearest_even,
        converter_rows::device_satfinite, 0,
        "NVIDIA cvt.rn.satfinite.{e2m3,e3m2,e2m1}x2: clamped; NaN becomes the positive maximum",
        converter_rows::narrow_source},
    Converter{"cvt.rn.satfinite", converter_rows::only_tf32, Rounding::nearest_even,
              converter_rows::device_satfinite, 0, "NVIDIA cvt.rn.satfinite.tf32: clamped",
              converter_rows::documented},
    Converter{"cvt.rz.satfinite", converter_rows::sixteen_bits, Rounding::toward_zero,
              converter_rows::device_satfinite, 0,
              "NVIDIA cvt.rz.satfinite: truncation, infinity clamped", converter_rows::measured},
    Converter{"cvt.rz.satfinite", converter_rows::only_tf32, Rounding::toward_zero,
              converter_rows::device_satfinite, 0,
              "NVIDIA cvt.rz.satfinite.tf32: truncation, infinity clamped",
              converter_rows::documented},
    Converter{
        "cvt.rz.satfinite", converter_rows::only_e8m0, Rounding::toward_zero,
        converter_rows::device_scale_satfinite, 0,
        "NVIDIA cvt.rz.satfinite.ue8m0x2: the exponent of the magnitude, infinity becomes 2^127",
        converter_rows::e8m0_source},
    Converter{"cvt.rp.satfinite", converter_rows::only_e8m0, Rounding::upward,
              converter_rows::device_scale_satfinite, 0,
              "NVIDIA cvt.rp.satfinite.ue8m0x2: the magnitude rounded up, at most 2^127",
              converter_rows::e8m0_source},
    Converter{"cvt.rna.satfinite",
              converter_rows::only_tf32,
              Rounding::nearest_away,
              {.finite = converter_rows::Finite::saturate,
               .infinity = converter_rows::Infinity::saturate,
               .nan = converter_rows::Nan::cut_then_below},
              0,
              "NVIDIA cvt.rna.satfinite.tf32: integer code that lowers NaNs by one code as well",
              converter_rows::measured},
    Converter{"cvt.rs", converter_rows::only_fp16, Rounding::stochastic, converter_rows::device, 13,
              "NVIDIA cvt.rs.f16x2: 13 random bits added below the last place",
              converter_rows::documented},
    Converter{"cvt.rs", converter_rows::only_bf16, Rounding::stochastic, converter_rows::device, 16,
              "NVIDIA cvt.rs.bf16x2: 16 random bits added below the last place",
              converter_rows::documented},
    Converter{"cvt.rs.satfinite", converter_rows::only_fp16, Rounding::stochastic,
              converter_rows::device_satfinite, 13,
              "NVIDIA cvt.rs.satfinite.f16x2: as cvt.rs, clamped", converter_rows::documented},
    Converter{"cvt.rs.satfinite", converter_rows::only_bf16, Rounding::stochastic,
              converter_rows::device_satfinite, 16,
              "NVIDIA cvt.rs.satfinite.bf16x2: as cvt.rs, clamped", converter_rows::documented},
    Converter{"cvt.rs.satfinite", converter_rows::fp8_fp6, Rounding::stochastic,
              converter_rows::device_satfinite, 16,
              "NVIDIA cvt.rs.satfinite.*x4: 16 random bits, which two elements share on the device",
              converter_rows::documented},
    Converter{"cvt.rs.satfinite", converter_rows::only_e2m1, Rounding::stochastic,
              converter_rows::device_satfinite, 8, "NVIDIA cvt.rs.satfinite.e2m1x4: 8 random bits",
              converter_rows::documented},
    Converter{"cuda_fp8.satfinite", converter_rows::fp8, Rounding::nearest_even,
              converter_rows::device_satfinite, 0,
              "cuda_fp8.h __NV_SATFINITE from float, half or bfloat16: as cvt.rn.satfinite",
              converter_rows::cuda_header},
    Converter{
        "cuda_fp8.nosat",
        converter_rows::fp8,
        Rounding::nearest_even,
        {.nan = converter_rows::Nan::all_ones_of_nan},
        0,
        "cuda_fp8.h __NV_NOSAT from float, half or bfloat16: E4M3 overflows to NaN of the sign, E5M2 to infinity",
        converter_rows::cuda_header},
    Converter{"cuda_fp8.satfinite.f64",
              converter_rows::fp8,
              Rounding::nearest_even,
              {.finite = converter_rows::Finite::saturate,
               .infinity = converter_rows::Infinity::saturate},
              0,
              "cuda_fp8.h __NV_SATFINITE from double: a NaN keeps its sign, in E5M2 its payload",
              converter_rows::cuda_header,
              fp64},
    Converter{"cuda_fp8.nosat.f64",
              converter_rows::fp8,
              Rounding::nearest_even,
              {},
              0,
              "cuda_fp8.h __NV_NOSAT from double: a NaN keeps its sign, in E5M2 its payload",
              converter_rows::cuda_header,
              fp64},
    Converter{"pytorch",
              converter_rows::fp8,
              Rounding::nearest_even,
              {.nan = converter_rows::Nan::all_ones_signed},
              0,
              "PyTorch float8_e4m3fn, float8_e5m2: no clamping; NaN is 7F or FF",
              "pytorch c10/util/Float8_e4m3fn.h, Float8_e5m2.h"},
    Converter{
        "pytorch",
        converter_rows::fp8_fnuz,
        Rounding::nearest_even,
        {},
        0,
        "PyTorch float8_e4m3fnuz, float8_e5m2fnuz: no clamping; whatever does not fit is NaN, 80",
        "pytorch c10/util/Float8_e4m3fnuz.h, Float8_e5m2fnuz.h"},
    Converter{"pytorch",
              converter_rows::only_bf16,
              Rounding::nearest_even,
              {.nan = converter_rows::Nan::quiet},
              0,
              "PyTorch bfloat16, scalar CPU code: every NaN becomes 7FC0",
              "pytorch c10/util/BFloat16.h"},
    Converter{"pytorch",
              converter_rows::only_fp16,
              Rounding::nearest_even,
              {.nan = converter_rows::Nan::quiet_signed},
              0,
              "PyTorch float16, portable CPU code: NaN keeps its sign",
              "pytorch c10/util/Half.h"},
    Converter{
        "pytorch",
        converter_rows::only_e8m0,
        Rounding::nearest_even,
        {.negative = converter_rows::Negative::magnitude,
         .lowest_gap = converter_rows::LowestGap::upward},
        0,
        "PyTorch float8_e8m0fnu: the sign is dropped; zero becomes 2^-127, infinity NaN; ties up",
        "pytorch c10/util/Float8_e8m0fnu.h"},
    Converter{
        "ml_dtypes",
        converter_rows::ml_dtypes_fp8,
        Rounding::nearest_even,
        {.nan = converter_rows::Nan::quiet_signed},
        0,
        "ml_dtypes (NumPy, JAX, TensorFlow): no clamping; NaN keeps its sign, not its payload",
        converter_rows::ml_dtypes_source},
    Converter{"ml_dtypes",
              converter_rows::fp6_fp4,
              Rounding::nearest_even,
              {.finite = converter_rows::Finite::saturate,
               .infinity = converter_rows::Infinity::saturate,
               .no_nan = converter_rows::NoNan::opposite_zero},
              0,
              "ml_dtypes float6 and float4: clamped; NaN becomes the zero of the opposite sign",
              converter_rows::ml_dtypes_source},
    Converter{
        "ml_dtypes",
        converter_rows::only_e8m0,
        Rounding::nearest_even,
        {.no_zero = converter_rows::NoZero::nan, .lowest_gap = converter_rows::LowestGap::upward},
        0,
        "ml_dtypes float8_e8m0fnu: ties up; zero and everything below it become NaN",
        converter_rows::ml_dtypes_source},
};

/// The row of that name (any case) for that destination; nothing when the converter has no such
/// destination. "torch" is pytorch; "cvt" is the conversion to nearest that NVIDIA's instructions
/// make: cvt.rn, or where there is none cvt.rn.satfinite.
const Converter* find_converter(std::string_view name, const Format& destination);

/// Every row for that destination, in the order of the table.
std::vector<const Converter*> converters_to(const Format& destination);

/// Distinct names in the order of the table.
std::vector<std::string_view> converter_names();

/// x as a number of the source format, rounded to nearest even where it is none. A NaN that fits
/// stays as it is, signalling or not; a longer one is quieted.
constexpr Value as_source(const Format& source, const Unrounded& x) {
  constexpr Overflow cut = {.nan = Overflow::Nan::cut};
  const Value value = decode(source, encode(source, x, Rounding::nearest_even, cut));
  if (x.kind != Kind::nan || value.significand == x.significand) return value;
  return decode(source, encode(source, x));
}

/// One conversion by a row.
constexpr std::uint64_t convert(const Converter& converter, const Unrounded& x,
                                const Format& destination, RandomBits random = {}) {
  return encode(destination, as_source(converter.source, x), converter.rounding, converter.overflow,
                random);
}

/// Two Markdown tables for the documents: every row, and what the FP8 converters make of the
/// numbers they disagree on.
std::string converters_markdown();

}  // namespace guardbit::formats
