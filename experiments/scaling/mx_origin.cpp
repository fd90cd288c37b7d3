#include "experiments/scaling/mx_origin.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

#include "experiments/scaling/element_grid.hpp"
#include "formats/arithmetic.hpp"
#include "formats/codec.hpp"
#include "formats/format_catalogue.hpp"

namespace guardbit::experiments {

namespace {

using formats::Rounding;

double number_of(const formats::Format& element, std::uint64_t code) {
  return std::bit_cast<double>(convert(element, code, formats::fp64));
}

void contradict(MxContradictions& mode, std::uint64_t block) {
  ++mode.count;
  if (!mode.first) mode.first = block;
}

/// Calls body(block, begin, end) for the elements of each block.
template <class Body>
void for_blocks(const MxData& data, Body body) {
  std::uint64_t block = 0;
  for (std::size_t start = 0; start < data.elements.size(); start += data.columns) {
    for (std::size_t begin = start; begin < start + data.columns; begin += mx_block)
      body(block++, begin, std::min(begin + mx_block, start + data.columns));
  }
}

/// The range of a block's largest element under each mode, in the order of mx_modes.
struct Range {
  double lowest, highest;
};
std::array<Range, mx_modes.size()> ranges_of(const formats::Format& element) {
  const double largest = ElementGrid(element).largest();
  const double power = std::ldexp(1.0, max_exponent(element));
  return {Range{power, largest}, Range{power / 2, power}, Range{power, largest},
          Range{largest / 2, largest}};
}

bool is_element(const MxData& data, std::uint64_t code, float x, double scale, Rounding rounding) {
  const formats::Unrounded quotient =
      divide(formats::decode(formats::fp32, std::bit_cast<std::uint32_t>(x)),
             formats::decode(formats::fp64, std::bit_cast<std::uint64_t>(scale)));
  const std::uint64_t expected =
      encode(data.element, quotient, rounding, formats::overflow_saturate);
  // Stacks differ in the sign of zero.
  const std::uint64_t magnitude = magnitude_mask(data.element);
  return code == expected || ((code | expected) & magnitude) == 0;
}

}  // namespace

bool is_consistent(const MxData& data) {
  if (data.columns == 0) return data.elements.empty() && data.scales.empty();
  return data.elements.size() % data.columns == 0 &&
         data.scales.size() == data.elements.size() / data.columns * data.blocks_per_row();
}

MxOrigin mx_origin(const MxData& data) {
  MxOrigin origin;
  const auto ranges = ranges_of(data.element);
  std::array<double, 256> magnitudes{};
  for (std::uint64_t code = 0; code <= code_mask(data.element); ++code)
    magnitudes[code] = std::fabs(number_of(data.element, code));
  std::uint64_t below = 0;
  for_blocks(data, [&](std::uint64_t block, std::size_t begin, std::size_t end) {
    ++origin.blocks;
    double largest = 0;
    for (std::size_t i = begin; i < end; ++i)
      largest = std::fmax(largest, magnitudes[data.elements[i] & code_mask(data.element)]);
    const std::uint8_t scale = data.scales[block];
    // The ends of E8M0 clamp what is smaller and larger; infinity and NaN follow other rules.
    if (largest == 0 || !std::isfinite(largest) || scale < 1 || scale > 253) return;
    ++origin.telling;
    for (std::size_t m = 0; m < mx_modes.size(); ++m) {
      if (largest < ranges[m].lowest || largest > ranges[m].highest)
        contradict(origin.modes[m], block);
    }
    below += largest < ranges[0].lowest ? 1U : 0U;
  });
  if (below == 0) {
    // Of amaxes spread evenly over a binade's logarithm.
    const double above = std::log2(ranges[0].highest / ranges[0].lowest);
    origin.chance_of_rceil = std::pow(above, static_cast<double>(origin.telling));
  }
  return origin;
}

MxOrigin mx_origin(const MxData& data, std::span<const float> source) {
  MxOrigin origin;
  origin.not_nearest_even = 0;
  origin.not_nearest_away = 0;
  for_blocks(data, [&](std::uint64_t block, std::size_t begin, std::size_t end) {
    ++origin.blocks;
    const float amax = amax_of(source.data() + begin, end - begin);
    const std::uint8_t scale = data.scales[block];
    // Of zeros, infinities and NaNs stacks make what they like.
    if (amax == 0 || !std::isfinite(amax)) return;
    ++origin.telling;
    for (std::size_t m = 0; m < mx_modes.size(); ++m) {
      if (mx_scale_code(mx_modes[m], data.element, amax) != scale)
        contradict(origin.modes[m], block);
    }
    if (scale == 255) return;
    const double power = std::ldexp(1.0, scale - 127);
    for (std::size_t i = begin; i < end; ++i) {
      const std::uint64_t code = data.elements[i] & code_mask(data.element);
      if (!is_element(data, code, source[i], power, Rounding::nearest_even))
        ++*origin.not_nearest_even;
      if (!is_element(data, code, source[i], power, Rounding::nearest_away))
        ++*origin.not_nearest_away;
    }
  });
  return origin;
}

}  // namespace guardbit::experiments
