#include "emulator/probe/operand_codes.hpp"

#include <algorithm>

#include "formats/codec.hpp"

namespace guardbit::emulator {

using formats::Kind;
using formats::Value;

std::uint64_t number_code(const Format& f, bool negative, int exponent, std::uint64_t significand) {
  const Value v{Kind::finite, negative, exponent, significand};
  return formats::encode(f, v, Rounding::toward_zero, formats::overflow_saturate);
}

int least_power(const Format& f) {
  return formats::min_exponent(f) - (f.has_subnormals ? f.fraction_bits : 0);
}
int greatest_power(const Format& f) { return formats::max_exponent(f); }

std::optional<std::pair<std::uint64_t, std::uint64_t>> product_codes(const BlackBox& box,
                                                                     int exponent) {
  const auto split = [&](int lowest_a, int lowest_b) -> std::optional<int> {
    const int low = std::max(lowest_a, exponent - greatest_power(box.b));
    const int high = std::min(greatest_power(box.a), exponent - lowest_b);
    if (low > high) return {};
    return std::clamp(exponent / 2, low, high);
  };
  std::optional<int> x = split(formats::min_exponent(box.a), formats::min_exponent(box.b));
  if (!x) x = split(least_power(box.a), least_power(box.b));
  if (!x) return {};
  return std::pair{number_code(box.a, false, *x), number_code(box.b, false, exponent - *x)};
}

Question zero_question(const BlackBox& box) {
  const auto k = static_cast<std::size_t>(box.k);
  Question q{std::vector<std::uint64_t>(k), std::vector<std::uint64_t>(k), 0, {}, {}};
  if (box.scale.count != 0) {
    q.a_scale.assign(static_cast<std::size_t>(box.scale.count),
                     number_code(box.scale.format, false, 0));
    q.b_scale = q.a_scale;
  }
  return q;
}

}  // namespace guardbit::emulator
