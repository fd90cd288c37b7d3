#pragma once

#include <cstdint>

#include "formats/codec.hpp"
#include "formats/format_catalogue.hpp"

// Numbers of FP32 rounded to narrower formats.
namespace guardbit::emulator {

inline constexpr formats::Overflow one_nan_of_all_ones = {.nan = formats::Overflow::Nan::all_ones};

/// The code of a format that FP32's number of that code is rounded to, to nearest even.
constexpr std::uint32_t narrowed_code(const formats::Format& format, std::uint32_t code) {
  return static_cast<std::uint32_t>(formats::convert(
      formats::fp32, code, format, formats::Rounding::nearest_even, one_nan_of_all_ones));
}
constexpr std::uint32_t widened_code(const formats::Format& format, std::uint64_t code) {
  return static_cast<std::uint32_t>(formats::convert(format, code, formats::fp32));
}

/// x, rounded to a format that has fewer numbers.
template <const formats::Format& format, class Number>
constexpr Number narrowed(Number x) {
  return Number::of(widened_code(format, narrowed_code(format, bits(x))));
}

}  // namespace guardbit::emulator
