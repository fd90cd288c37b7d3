#pragma once

#include <cstddef>

#include "formats/format.hpp"
#include "formats/value.hpp"

namespace guardbit::formats::kernels {

/// The other sign for every FP32 word that is no NaN.
void negate(std::byte* words, std::size_t count);

/// FP32 words times `scale` with its exponent taken away (a factor f of at least 1/2 and below 1),
/// rounded to odd. No product overflows. NaNs stay as they are; the scale's sign is ignored.
void multiply_to_odd(const Value& scale, std::byte* words, std::size_t count);

/// FP32 words times |scale|, rounded to nearest even. NaNs stay as they are.
void multiply_to_nearest(const Value& scale, std::byte* words, std::size_t count);

/// Does rounding such products, times 2^scale_exponent, to the format give what rounding the exact
/// ones does? A result rounded to odd says of the exact one on which side of every number of two
/// bits less it lies, so it must keep two bits below the destination's unit: FP32 has 24 in a
/// normal number, and below 2^-126 units of 2^-149.
bool keeps_odd_products(const Format& to, int scale_exponent);

}  // namespace guardbit::formats::kernels
