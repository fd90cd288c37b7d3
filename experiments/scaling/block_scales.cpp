#include "experiments/scaling/block_scales.hpp"

#include <algorithm>
#include <bit>
#include <cassert>
#include <cmath>
#include <limits>
#include <utility>

#include "experiments/scaling/element_grid.hpp"
#include "formats/format_catalogue.hpp"
#include "formats/support/error.hpp"

namespace guardbit::experiments {

namespace {

constexpr float largest_float = std::numeric_limits<float>::max();
constexpr std::uint32_t fraction_of_float = 0x7FFFFF;

float cut_to_power(float x) {
  return std::bit_cast<float>(std::bit_cast<std::uint32_t>(x) & ~fraction_of_float);
}

/// E8M0's number; 255 is NaN.
double power_of(std::uint8_t code) {
  if (code == 255) return std::numeric_limits<double>::quiet_NaN();
  return std::ldexp(1.0, code - 127);
}

/// The code of the least power of two that is not below the FP32 number s, as conversions round up:
/// 254 is the largest.
std::uint8_t power_above(float s) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(s);
  const std::uint32_t exponent = bits >> 23;
  const std::uint32_t fraction = bits & fraction_of_float;
  // Codes 0 and 1 are 2^-127, in the middle of FP32's subnormal numbers, and 2^-126.
  const bool up = exponent == 0 ? fraction > 0x400000 : fraction > 0 && exponent < 254;
  return static_cast<std::uint8_t>(std::min<std::uint32_t>(exponent + (up ? 1 : 0), 254));
}

}  // namespace

float amax_of(const float* values, std::size_t count) {
  // As integers: the order of magnitudes, with NaNs on top.
  std::uint32_t largest = 0;
  for (std::size_t i = 0; i < count; ++i)
    largest = std::max(largest, std::bit_cast<std::uint32_t>(values[i]) & 0x7FFFFFFFU);
  return std::bit_cast<float>(largest);
}

GroupScale te_current_scale(float amax, float largest, bool power_of_two, float epsilon,
                            float for_infinity) {
  if (amax < epsilon) amax = epsilon;
  if (!std::isfinite(amax) || amax == 0) return {};
  float scale = largest / amax;
  if (std::isinf(scale)) scale = for_infinity;
  if (power_of_two) scale = cut_to_power(scale);
  return {scale, static_cast<double>(1.0F / scale), false};
}

GroupScale torchao_scale(float amax, float largest, bool power_of_two) {
  const double clamped = amax < 1e-12 ? 1e-12 : static_cast<double>(amax);
  auto scale = static_cast<float>(static_cast<double>(largest) / clamped);
  if (power_of_two) scale = cut_to_power(scale);
  return {scale, static_cast<double>(1.0F / scale), false};
}

GroupScale deepgemm_scale(float amax, float largest, float floor, bool power_of_two) {
  if (amax < floor) amax = floor;
  if (amax == 0) return {};
  float sf = amax / largest;
  if (power_of_two) {
    const int code = std::clamp<int>(power_above(sf), 1, 254);
    sf = static_cast<float>(power_of(static_cast<std::uint8_t>(code)));
  }
  return {std::min(1.0F / sf, largest_float), static_cast<double>(sf), false};
}

std::uint8_t mx_scale_code(MxMode mode, const formats::Format& element, float amax) {
  if (std::isnan(amax)) return 255;
  if (mode == MxMode::rceil)
    return power_above(amax / static_cast<float>(ElementGrid(element).largest()));
  std::uint32_t bits = std::bit_cast<std::uint32_t>(amax);
  if (mode == MxMode::even) bits += std::uint32_t{1} << (22 - element.fraction_bits);
  const bool up = mode == MxMode::ceil && (bits & fraction_of_float) != 0;
  const int exponent = static_cast<int>(bits >> 23) + (up ? 1 : 0) - max_exponent(element);
  return static_cast<std::uint8_t>(std::clamp(exponent, 0, 254));
}

GroupScale mx_scale(MxMode mode, const formats::Format& element, float amax) {
  const std::uint8_t code = mx_scale_code(mode, element, amax);
  // Multiplying by 2^(127 - code) is dividing by the scale, exactly but for products that are
  // subnormal in FP32, which all element formats store as zero.
  return {static_cast<float>(power_of(code)), power_of(code), true};
}

Nvfp4Scales::Nvfp4Scales(Nvfp4Rule rule, float tensor_amax) : rule_(rule) {
  if (rule == Nvfp4Rule::torchao) {
    tensor_scale_ = tensor_amax / (448.0F * 6.0F);
    return;
  }
  tensor_scale_ = std::fmin(448.0F * 6.0F / tensor_amax, largest_float);
  if (tensor_amax == 0 || tensor_scale_ == 0) tensor_scale_ = 1;
}

GroupScale Nvfp4Scales::block(float amax) const {
  static const ElementGrid scales(formats::e4m3);
  if (rule_ == Nvfp4Rule::torchao) {
    const float quotient = amax / 6.0F / tensor_scale_;
    if (std::isnan(quotient)) return {quotient, static_cast<double>(quotient), true};
    const double scale =
        scales.nearest(static_cast<double>(std::clamp(quotient, 0x1p-6F, 448.0F))).value;
    const float both = tensor_scale_ * static_cast<float>(scale);
    return {both, scale * static_cast<double>(tensor_scale_), true};
  }
  constexpr float sixth = 1.0F / 6.0F;
  const float wanted = amax * (tensor_scale_ * sixth);
  if (std::isnan(wanted)) return {wanted, static_cast<double>(wanted), false};
  const double scale = scales.nearest(static_cast<double>(std::fmin(wanted, largest_float))).value;
  const float decode = 1.0F / tensor_scale_;
  const float encode = std::fmin(1.0F / (static_cast<float>(scale) * decode), largest_float);
  return {encode, scale * static_cast<double>(decode), false};
}

DelayedScale::DelayedScale(const DelayedRules& rules) : rules_(rules), history_(rules.history) {
  if (rules.history == 0) throw formats::Error("amax history", "shorter than 1");
}

GroupScale DelayedScale::group() const {
  return {scale_, static_cast<double>(1.0F / scale_), false};
}

void DelayedScale::observe(float amax) { history_[0] = std::fmax(history_[0], amax); }

void DelayedScale::restore(std::vector<float> history, float scale) {
  assert(history.size() == history_.size());
  history_ = std::move(history);
  scale_ = scale;
}

void DelayedScale::update(float reduced) {
  const float last = reduced != 0 ? reduced : history_[0];
  float amax = 0;
  if (last != 0 || rules_.kernel == DelayedRules::Kernel::single) {
    // The slot that the roll drops counts once more.
    amax = std::fmax(amax, last);
    for (std::size_t i = 1; i < history_.size(); ++i) amax = std::fmax(amax, history_[i]);
    std::rotate(history_.begin(), history_.begin() + 1, history_.end());
    history_.back() = last;
    history_.front() = 0;
  }
  if (rules_.algorithm == DelayedRules::Algorithm::most_recent) amax = last;
  if (std::isfinite(amax) && amax > 0) {
    scale_ = rules_.python ? rules_.largest / amax / std::exp2(rules_.margin)
                           : rules_.largest * std::exp2(-rules_.margin) / amax;
    if (std::isinf(scale_)) scale_ = largest_float;
  }
}

}  // namespace guardbit::experiments
