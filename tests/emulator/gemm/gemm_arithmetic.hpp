#pragma once

#include <cstdint>

#include "formats/arithmetic.hpp"
#include "formats/codec.hpp"
#include "formats/format.hpp"

/// Emulated scalar arithmetic on codes, for judges of whole products.
namespace guardbit::tests {

using formats::Format;

inline std::uint64_t rounded_sum(const Format& f, std::uint64_t x, std::uint64_t y) {
  return formats::encode(f, formats::add(formats::exactly(formats::decode(f, x)),
                                         formats::exactly(formats::decode(f, y))));
}
inline std::uint64_t rounded_product(const Format& f, std::uint64_t x, std::uint64_t y) {
  return formats::encode(f, formats::multiply(formats::decode(f, x), formats::decode(f, y)));
}
inline std::uint64_t rounded_fma(const Format& f, std::uint64_t x, std::uint64_t y,
                                 std::uint64_t z) {
  return formats::encode(f,
                         formats::fused_multiply_add(formats::decode(f, x), formats::decode(f, y),
                                                     formats::decode(f, z)));
}

}  // namespace guardbit::tests
