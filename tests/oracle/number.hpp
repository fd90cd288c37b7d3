#pragma once

// g++ 12 warns about the inlined small buffer of Boost 1.74's integers at -O3 and under sanitizers.
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Warray-bounds"
#pragma GCC diagnostic ignored "-Wstringop-overflow"
#pragma GCC diagnostic ignored "-Wstringop-overread"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif
#include <boost/multiprecision/cpp_int.hpp>
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic pop
#endif
#include <cstdint>

/// The judge of the tests: number formats by their published definitions (IEEE 754-2019, OCP FP8,
/// OCP MX, the fnuz formats of AMD and Graphcore), exact integers of any size, nothing shared with
/// the model.
namespace guardbit::oracle {

using Integer = boost::multiprecision::number<boost::multiprecision::cpp_int_backend<>,
                                              boost::multiprecision::et_off>;

/// A number format as plain parameters. `bits` is the width of a code.
struct FormatParameters {
  enum class Kind { floating, exponent_only, integer };
  /// nan_all_ones: "fn", only the largest code is NaN; nan_negative_zero: "fnuz", the code of -0 is
  /// NaN.
  enum class Specials { ieee, nan_all_ones, nan_negative_zero, none };
  Kind kind = Kind::floating;
  int exponent_bits = 0;
  int fraction_bits = 0;
  int bias = 0;
  bool has_sign = true;
  Specials specials = Specials::none;
  bool has_subnormals = true;
  int bits = 0;
  bool operator==(const FormatParameters&) const = default;
};

constexpr FormatParameters floating(int exponent_bits, int fraction_bits, int bias,
                                    FormatParameters::Specials specials, bool has_sign = true) {
  const int bits = exponent_bits + fraction_bits + (has_sign ? 1 : 0);
  return {FormatParameters::Kind::floating,
          exponent_bits,
          fraction_bits,
          bias,
          has_sign,
          specials,
          true,
          bits};
}
constexpr FormatParameters integer(int bits, bool has_sign) {
  return {FormatParameters::Kind::integer,  0,     0,   0, has_sign,
          FormatParameters::Specials::none, false, bits};
}

inline constexpr auto fp64 = floating(11, 52, 1023, FormatParameters::Specials::ieee);
inline constexpr auto fp32 = floating(8, 23, 127, FormatParameters::Specials::ieee);
inline constexpr auto tf32 = floating(8, 10, 127, FormatParameters::Specials::ieee);
inline constexpr auto bf16 = floating(8, 7, 127, FormatParameters::Specials::ieee);
inline constexpr auto fp16 = floating(5, 10, 15, FormatParameters::Specials::ieee);
inline constexpr auto e5m2 = floating(5, 2, 15, FormatParameters::Specials::ieee);
inline constexpr auto e4m3 = floating(4, 3, 7, FormatParameters::Specials::nan_all_ones);
inline constexpr auto e4m3fnuz = floating(4, 3, 8, FormatParameters::Specials::nan_negative_zero);
inline constexpr auto e5m2fnuz = floating(5, 2, 16, FormatParameters::Specials::nan_negative_zero);
inline constexpr auto e3m2 = floating(3, 2, 3, FormatParameters::Specials::none);
inline constexpr auto e2m3 = floating(2, 3, 1, FormatParameters::Specials::none);
inline constexpr auto e2m1 = floating(2, 1, 1, FormatParameters::Specials::none);
inline constexpr auto ue4m3 = floating(4, 3, 7, FormatParameters::Specials::nan_all_ones, false);
inline constexpr FormatParameters e8m0 = {
    FormatParameters::Kind::exponent_only,    8,     0, 127, false,
    FormatParameters::Specials::nan_all_ones, false, 8};
inline constexpr auto int32 = integer(32, true);
inline constexpr auto int16 = integer(16, true);
inline constexpr auto int8 = integer(8, true);
inline constexpr auto uint8 = integer(8, false);
inline constexpr auto int4 = integer(4, true);
inline constexpr auto uint4 = integer(4, false);
inline constexpr auto b1 = integer(1, false);

/// significand * 2^exponent, exactly; never negative.
struct Dyadic {
  Integer significand = 0;
  int exponent = 0;
};

/// The quotient of a Dyadic by 2^exponent, rounded down, and whether nothing was lost.
struct Floor {
  Integer quotient;
  bool exact = true;
};
Floor floor_at(const Dyadic& value, int exponent);
/// Negative, zero or positive as a < b, a == b, a > b.
int compare(const Dyadic& a, const Dyadic& b);
Dyadic product(const Dyadic& a, const Dyadic& b);
/// e with 2^e <= value < 2^(e+1); the value must not be zero.
int floor_log2(const Dyadic& value);
inline bool is_zero(const Dyadic& value) { return value.significand.is_zero(); }

/// What a code stands for. The sign is kept for zeros; a NaN has no payload.
struct Number {
  enum class Kind { finite, infinity, nan };
  Kind kind = Kind::finite;
  bool negative = false;
  Dyadic magnitude;
  bool is_finite() const { return kind == Kind::finite; }
  bool is_infinity() const { return kind == Kind::infinity; }
  bool is_nan() const { return kind == Kind::nan; }
  bool is_zero() const { return is_finite() && magnitude.significand.is_zero(); }
};
Number nan();
Number infinity(bool negative);
Number zero(bool negative = false);
/// significand * 2^exponent; the sign of the significand is the sign of the number.
Number dyadic(std::int64_t significand, int exponent = 0);
Number negated(Number number);

/// The exponent of the smallest normal number (of the smallest number, for exponent_only).
int minimum_exponent(const FormatParameters& format);
/// The exponent of the spacing of the smallest numbers; 0 for integers.
int spacing_exponent(const FormatParameters& format);
/// The largest finite number's code without its sign (floating and exponent_only).
std::uint64_t maximum_code(const FormatParameters& format);
bool has_infinity(const FormatParameters& format);
bool has_nan(const FormatParameters& format);
/// The code of a positive quiet NaN; the format must have one.
std::uint64_t nan_code(const FormatParameters& format);

/// Every code has a meaning; bits above `format.bits` are ignored.
Number decode(const FormatParameters& format, std::uint64_t code);
bool is_nan(const FormatParameters& format, std::uint64_t code);
/// The exponent as stored: that of the smallest normal number for subnormals and zeros (floating
/// only).
int stored_exponent(const FormatParameters& format, std::uint64_t code);

}  // namespace guardbit::oracle
