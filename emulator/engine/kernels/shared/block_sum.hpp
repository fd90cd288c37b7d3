#pragma once

// What enters and leaves a fused block beside its products, for the kernels of the host and of the
// device: the addend taken apart, and the sum made a code again where that is quickly done.

#include <cstdint>

#include "emulator/model/accumulator.hpp"
#include "emulator/model/result.hpp"

namespace guardbit::emulator {

/// A format of the accumulator (IEEE-like) with what the inner loop asks of it.
struct AccumulatorFormat {
  Format format{};
  std::uint64_t sign = 0, magnitude = 0, infinity = 0, fraction = 0;
  int min_exponent = 0, result_fraction_bits = 0, last_biased = 0;

  constexpr AccumulatorFormat() = default;
  constexpr AccumulatorFormat(const Format& f, const AccumulatorSpec& spec)
      : format(f),
        sign(formats::sign_mask(f)),
        magnitude(formats::magnitude_mask(f)),
        infinity(formats::infinity_code(f)),
        fraction(formats::fraction_mask(f)),
        min_exponent(formats::min_exponent(f)),
        result_fraction_bits(spec.result_fraction_bits != 0 ? spec.result_fraction_bits
                                                            : f.fraction_bits),
        last_biased((1 << f.exponent_bits) - 2) {}
};

/// The addend of a block: significand with the format's fraction bits, at an exponent.
struct Addend {
  std::uint64_t magnitude = 0;
  int exponent = 0;
  bool negative = false;
  bool special = false;
};

/// `zero` is the exponent that a zero addend contributes.
constexpr Addend decode_addend(const AccumulatorFormat& f, std::uint64_t code, int zero) {
  const std::uint64_t magnitude = code & f.magnitude;
  const bool negative = (code & f.sign) != 0;
  if (magnitude == 0) return {0, zero, negative, false};
  if (magnitude >= f.infinity) return {0, 0, negative, true};
  const auto biased = static_cast<int>(magnitude >> f.format.fraction_bits);
  const std::uint64_t fraction = magnitude & f.fraction;
  if (biased == 0) return {fraction, f.min_exponent, negative, false};
  return {fraction | (f.fraction + 1), biased - f.format.bias, negative, false};
}

/// The sum's code where it is zero or clearly a normal number of the result format. False leaves it
/// to the model's final conversion.
constexpr bool encode_normal_sum(const AccumulatorSpec& spec, const AccumulatorFormat& f,
                                 std::int64_t sum, int grid, std::uint64_t& code) {
  code = 0;
  if (sum == 0) return true;
  const bool negative = sum < 0;
  const std::uint64_t magnitude =
      negative ? -static_cast<std::uint64_t>(sum) : static_cast<std::uint64_t>(sum);
  const int top = formats::leading_bit(magnitude);
  const int biased = grid + top + f.format.bias;
  const int shift = top - f.result_fraction_bits;
  // The largest binade is left to the model, which knows about carries into infinity.
  if (biased <= 0 || biased >= f.last_biased) return false;
  std::uint64_t kept = shift > 0 ? magnitude >> shift : magnitude << -shift;
  if (shift > 0 && spec.result == Rounding::nearest_even) {
    const std::uint64_t half = std::uint64_t{1} << (shift - 1);
    const std::uint64_t rest = magnitude & (half | (half - 1));
    kept += rest > half || (rest == half && (kept & 1) != 0) ? 1 : 0;
  }
  code = (static_cast<std::uint64_t>(biased - 1) << f.format.fraction_bits) +
         (kept << (f.format.fraction_bits - f.result_fraction_bits));
  if (negative) code |= f.sign;
  return true;
}

constexpr std::uint64_t encode_sum(const AccumulatorSpec& spec, const AccumulatorFormat& f,
                                   std::int64_t sum, int grid) {
  std::uint64_t code = 0;
  if (encode_normal_sum(spec, f, sum, grid, code)) return code;
  return encode_result(spec, f.format, fixed_point(sum, grid));
}

}  // namespace guardbit::emulator
