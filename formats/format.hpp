#pragma once

#include <array>
#include <cstdint>

namespace guardbit::formats {

/// How the bits below the sign are read.
enum class Encoding : std::uint8_t {
  /// biased exponent, fraction with an implicit leading bit
  floating,
  /// a biased exponent and nothing else: no zero, no sign (OCP MX E8M0)
  power_of_two,
  /// two's complement when signed; `fraction_bits` magnitude bits
  integer,
};

/// Which codes are not finite numbers.
enum class Specials : std::uint8_t {
  /// the largest biased exponent holds infinity and NaNs
  ieee,
  /// only the all-ones magnitude is NaN; no infinity (OCP E4M3, E8M0)
  nan_all_ones,
  /// only the code of negative zero is NaN; no infinity ("fnuz")
  nan_negative_zero,
  /// every code is finite
  none,
};
constexpr auto words(Specials) { return std::array{"ieee", "fn", "fnuz", "none"}; }

/// A number format is data: everything else about it is derived below. A code is an unsigned
/// integer of `bits(format)` bits, sign on top, then the biased exponent, then the fraction.
struct Format {
  Encoding encoding = Encoding::floating;
  bool has_sign = true;
  int exponent_bits = 0;
  int fraction_bits = 0;
  int bias = 0;
  Specials specials = Specials::none;
  /// when false, a zero biased exponent means zero whatever the fraction
  bool has_subnormals = true;

  friend constexpr bool operator==(const Format&, const Format&) = default;
};

/// A mask of `count` low bits; `count` from 0 to 64.
constexpr std::uint64_t low_bits(int count) {
  return count >= 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << count) - 1;
}

/// Width of a code in bits.
constexpr int bits(const Format& f) {
  return (f.has_sign ? 1 : 0) + f.exponent_bits + f.fraction_bits;
}
constexpr std::uint64_t code_mask(const Format& f) { return low_bits(bits(f)); }
/// All bits but the sign.
constexpr std::uint64_t magnitude_mask(const Format& f) {
  return low_bits(f.exponent_bits + f.fraction_bits);
}
constexpr std::uint64_t sign_mask(const Format& f) { return code_mask(f) & ~magnitude_mask(f); }
constexpr std::uint64_t fraction_mask(const Format& f) { return low_bits(f.fraction_bits); }

/// Significant bits of a normal number.
constexpr int precision(const Format& f) {
  return f.fraction_bits + (f.encoding == Encoding::integer ? 0 : 1);
}
constexpr bool is_integer(const Format& f) { return f.encoding == Encoding::integer; }
constexpr bool has_infinity(const Format& f) {
  return f.encoding == Encoding::floating && f.specials == Specials::ieee;
}
constexpr bool has_nan(const Format& f) {
  return f.specials != Specials::none && (f.specials != Specials::ieee || f.fraction_bits > 0);
}
constexpr bool has_negative_zero(const Format& f) {
  return f.encoding == Encoding::floating && f.has_sign &&
         f.specials != Specials::nan_negative_zero;
}

/// Exponent of the smallest normal number; subnormal numbers share it (their significand is below
/// 1).
constexpr int min_exponent(const Format& f) {
  switch (f.encoding) {
    case Encoding::floating: return 1 - f.bias;
    case Encoding::power_of_two: return -f.bias;
    case Encoding::integer: break;
  }
  return 0;
}

/// Code of +infinity; meaningful where has_infinity().
constexpr std::uint64_t infinity_code(const Format& f) {
  return magnitude_mask(f) & ~fraction_mask(f);
}

/// Code of the largest finite number.
constexpr std::uint64_t max_finite_code(const Format& f) {
  if (f.specials == Specials::ieee) return infinity_code(f) - 1;
  return magnitude_mask(f) - (f.specials == Specials::nan_all_ones ? 1 : 0);
}

/// Exponent of the largest finite number (its leading bit), for floating and power-of-two formats.
constexpr int max_exponent(const Format& f) {
  return static_cast<int>(max_finite_code(f) >> f.fraction_bits) - f.bias;
}

/// Code of the smallest positive normal number.
constexpr std::uint64_t min_normal_code(const Format& f) {
  return f.encoding == Encoding::floating ? std::uint64_t{1} << f.fraction_bits
                                          : (f.encoding == Encoding::integer ? 1U : 0U);
}

/// A quiet NaN without payload; meaningful where has_nan().
constexpr std::uint64_t quiet_nan_code(const Format& f) {
  switch (f.specials) {
    case Specials::ieee: return infinity_code(f) | (std::uint64_t{1} << (f.fraction_bits - 1));
    case Specials::nan_all_ones: return magnitude_mask(f);
    case Specials::nan_negative_zero: return sign_mask(f);
    case Specials::none: break;
  }
  return 0;
}

/// The NaN whose magnitude bits are all ones (NVIDIA's canonical NaN), where the format has it.
constexpr std::uint64_t all_ones_nan_code(const Format& f) {
  return f.specials == Specials::nan_negative_zero ? sign_mask(f) : magnitude_mask(f);
}

/// Bits of the machine word that holds one code: 8, 16, 32 or 64.
constexpr int container_bits(const Format& f) {
  const int width = bits(f);
  return width <= 8 ? 8 : width <= 16 ? 16 : width <= 32 ? 32 : 64;
}

/// Where the code sits in its container: formats between 16 and 32 bits are truncated FP32
/// registers (TF32: the low 13 bits are ignored, NUMERICS 6.1), so they sit at the top; all others
/// at the bottom.
constexpr int container_shift(const Format& f) {
  const int width = bits(f);
  return width > 16 && width < 32 ? 32 - width : 0;
}

constexpr Format floating(int exponent_bits, int fraction_bits,
                          Specials specials = Specials::ieee) {
  return {.encoding = Encoding::floating,
          .has_sign = true,
          .exponent_bits = exponent_bits,
          .fraction_bits = fraction_bits,
          .bias = (1 << (exponent_bits - 1)) - 1,
          .specials = specials,
          .has_subnormals = true};
}

constexpr Format integer(int width, bool has_sign) {
  return {.encoding = Encoding::integer,
          .has_sign = has_sign,
          .exponent_bits = 0,
          .fraction_bits = width - (has_sign ? 1 : 0),
          .bias = 0,
          .specials = Specials::none,
          .has_subnormals = false};
}

}  // namespace guardbit::formats
