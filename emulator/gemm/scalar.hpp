#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

#include "formats/codec.hpp"
#include "formats/format_catalogue.hpp"

// Scalar arithmetic of CUDA cores on values held in double, which contains every accumulator format
// here (FP16, BF16, FP32, FP64, INT32). FP32 and FP64 operations are the host's own IEEE 754 ones,
// which -ffp-contract=off keeps apart; NaNs lose their payloads, which GPUs do not keep either.
namespace guardbit::emulator::scalar {

using formats::Format;

inline double decoded(const Format& f, std::uint64_t code) {
  if (f == formats::fp32) return std::bit_cast<float>(static_cast<std::uint32_t>(code));
  if (f == formats::fp64) return std::bit_cast<double>(code);
  const formats::Value v = formats::decode(f, code);
  switch (v.kind) {
    case formats::Kind::nan: return NAN;
    case formats::Kind::infinity: return v.negative ? -INFINITY : INFINITY;
    case formats::Kind::zero: return v.negative ? -0.0 : 0.0;
    case formats::Kind::finite: break;
  }
  return std::ldexp(
      v.negative ? -static_cast<double>(v.significand) : static_cast<double>(v.significand),
      v.exponent);
}

/// Integers and formats of 8 bits saturate, as cvt does; NaNs are those that NVIDIA's units write.
inline formats::Overflow overflow_of(const Format& f) {
  formats::Overflow overflow;
  if (formats::bits(f) <= 8 || formats::is_integer(f)) overflow = formats::overflow_saturate;
  overflow.nan = formats::Overflow::Nan::all_ones;
  return overflow;
}

/// Rounded to nearest even.
inline std::uint64_t encoded(const Format& f, double x) {
  if (f == formats::fp32) {
    if (std::isnan(x)) return 0x7fffffff;
    return std::bit_cast<std::uint32_t>(static_cast<float>(x));
  }
  return formats::encode(f, formats::decode(formats::fp64, std::bit_cast<std::uint64_t>(x)),
                         formats::Rounding::nearest_even, overflow_of(f));
}

inline double rounded(const Format& f, double x) {
  if (f == formats::fp64) return x;
  if (f == formats::fp32) return static_cast<float>(x);
  return decoded(f, encoded(f, x));
}

inline double wrapped(double x) {
  return static_cast<std::int32_t>(static_cast<std::uint32_t>(static_cast<std::int64_t>(x)));
}

/// A number that int32 holds as it is, others as rounded() gives them: plans may keep sums of
/// integers in a narrow format, which overflows.
inline double as_int32(double x) { return std::abs(x) <= 0x1p31 ? x : rounded(formats::int32, x); }

/// x + y of numbers of the format; int32 wraps. Of two FP16 or BF16 numbers FP32 has no exact sum
/// always, double has it for FP16; BF16 is added in FP32 and rounded again.
inline double add(const Format& f, double x, double y) {
  if (f == formats::fp32) return static_cast<float>(x) + static_cast<float>(y);
  if (f == formats::int32) return wrapped(as_int32(x) + as_int32(y));
  if (f == formats::bf16) return rounded(f, static_cast<float>(x) + static_cast<float>(y));
  return rounded(f, x + y);
}

inline double multiply(const Format& f, double x, double y) {
  if (f == formats::fp32) return static_cast<float>(x) * static_cast<float>(y);
  return rounded(f, x * y);
}

inline double fma(const Format& f, double x, double y, double z) {
  if (f == formats::fp32)
    return std::fma(static_cast<float>(x), static_cast<float>(y), static_cast<float>(z));
  if (f == formats::fp64) return std::fma(x, y, z);
  return rounded(f, std::fma(x, y, z));
}

}  // namespace guardbit::emulator::scalar
