#pragma once

#include <cstdint>
#include <optional>

#include "formats/codec.hpp"

namespace guardbit::formats {

/// The code of the next larger (or smaller) value of the format, infinities included; both zeros
/// count as one value and answer with +0. Nothing past the last one, and for NaN.
constexpr std::optional<std::uint64_t> neighbour(const Format& f, std::uint64_t code, bool larger) {
  const Value value = decode(f, code);
  if (value.kind == Kind::nan) return std::nullopt;
  code &= code_mask(f);
  if (f.encoding == Encoding::integer) {
    const std::uint64_t last = larger ? magnitude_mask(f) : sign_mask(f);
    if (code == last) return std::nullopt;
    return (larger ? code + 1 : code - 1) & code_mask(f);
  }
  const std::uint64_t last = has_infinity(f) ? infinity_code(f) : max_finite_code(f);
  const std::uint64_t smallest =
      f.encoding == Encoding::floating && f.has_subnormals ? 1 : min_normal_code(f);
  const std::uint64_t magnitude = code & magnitude_mask(f);
  if (value.kind == Kind::zero) {
    if (larger) return smallest;
    return f.has_sign ? std::optional(sign_mask(f) | smallest) : std::nullopt;
  }
  const bool outward = larger != value.negative;
  if (outward)
    return magnitude == last ? std::nullopt
                             : std::optional((code & sign_mask(f)) | (magnitude + 1));
  if (magnitude > smallest) return (code & sign_mask(f)) | (magnitude - 1);
  return f.encoding == Encoding::floating ? std::optional<std::uint64_t>(0) : std::nullopt;
}

}  // namespace guardbit::formats
