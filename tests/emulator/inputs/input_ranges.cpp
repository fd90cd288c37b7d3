#include "tests/emulator/inputs/input_ranges.hpp"

#include <algorithm>

namespace guardbit::tests {

namespace {

/// Splits an exponent of products among the factors (and the scales), as far as their formats
/// reach.
Ranges ranges_for_products(const Types& t, int low, int high, Random& random) {
  Ranges r;
  int target = (low + high) / 2;
  const int spread = (high - low + 1) / 2;
  if (t.scale.count != 0 && t.scale.format.encoding == formats::Encoding::power_of_two) {
    r.scale = target / 2;
    target -= 2 * r.scale;
  }
  const int a_lowest = lowest_exponent(t.a), a_highest = formats::max_exponent(t.a);
  const int b_lowest = lowest_exponent(t.b), b_highest = formats::max_exponent(t.b);
  const int from = std::clamp(target - b_highest, a_lowest, a_highest);
  const int to = std::clamp(target - b_lowest, a_lowest, a_highest);
  const int a = random.between(std::min(from, to), std::max(from, to));
  const int b = std::clamp(target - a, b_lowest, b_highest);
  r.a_low = a - spread / 2;
  r.a_high = a + spread / 2;
  r.b_low = b - (spread + 1) / 2;
  r.b_high = b + (spread + 1) / 2;
  r.c_low = low;
  r.c_high = high;
  return r;
}

/// Factors whose product has that exponent, as far as their formats reach. Normal where possible:
/// the unit aligns a subnormal factor as if it were larger.
Split split_exponent(const Types& t, int target, Random& random) {
  for (const bool subnormal : {false, true}) {
    const int a_lowest = subnormal ? lowest_exponent(t.a) : formats::min_exponent(t.a);
    const int b_lowest = subnormal ? lowest_exponent(t.b) : formats::min_exponent(t.b);
    const int lowest = std::max(a_lowest, target - formats::max_exponent(t.b));
    const int highest = std::min(formats::max_exponent(t.a), target - b_lowest);
    if (lowest > highest) continue;
    const int a = random.between(lowest, highest);
    return {a, target - a};
  }
  return {lowest_exponent(t.a), lowest_exponent(t.b)};
}

}  // namespace

Tail tail_of(const Types& t, InputFamily family, Random& random) {
  if (family != InputFamily::tiny_terms || !is_floating(t.d) || t.scale.count > 1 ||
      random.one_in(2)) {
    return {};
  }
  const int lowest = lowest_exponent(t.d);
  Tail result;
  result.present = true;
  result.scale = t.scale.count != 0 ? lowest / 2 : 0;
  // The grid of a zero addend reaches 2^-42 to 2^-48 in f16 and 2^-154 to 2^-159 in f32 (NUMERICS
  // 1.3). A head of half the smallest number is a tie to nearest.
  const bool nearest = t.d == formats::fp16;
  const int head = lowest - 2 * result.scale +
                   (nearest && random.one_in(2) ? -1 : random.between(nearest ? -1 : 0, 2));
  const int depth = nearest ? random.between(17, 23) : random.between(5, 11);
  result.head = split_exponent(t, head, random);
  result.tail = split_exponent(t, head - depth, random);
  return result;
}

Ranges ranges_of(const Types& t, InputFamily family, Random& random) {
  const int d_lowest = lowest_exponent(t.d);
  const int d_highest = formats::max_exponent(t.d);
  switch (family) {
    case InputFamily::near_overflow:
      return ranges_for_products(t, d_highest - 4, d_highest + 1, random);
    case InputFamily::huge_products:
      return ranges_for_products(t, d_highest, d_highest + 3, random);
    case InputFamily::tiny_terms: {
      const int high = random.one_in(2) ? d_lowest + 2 : d_lowest + std::min(20, t.d.fraction_bits);
      return ranges_for_products(t, d_lowest - 16, high, random);
    }
    case InputFamily::wide_exponents: {
      const Ranges r = {lowest_exponent(t.a),
                        formats::max_exponent(t.a),
                        lowest_exponent(t.b),
                        formats::max_exponent(t.b),
                        0,
                        0,
                        random.between(-8, 8)};
      Ranges wide = r;
      wide.c_low = std::max(d_lowest, r.a_low + r.b_low);
      wide.c_high = std::max(wide.c_low, std::min(d_highest, r.a_high + r.b_high + 4));
      return wide;
    }
    case InputFamily::sparse_zeros: return {-6, 6, -6, 6, -12, 12, 0};
    case InputFamily::dominant_term: return {-8, -4, -8, -4, -20, 12, 0};
    default: return {};
  }
}

}  // namespace guardbit::tests
