#include "experiments/suite/mx_scales.hpp"

#include <bit>

#include "formats/conversion/block_quantisation.hpp"

namespace guardbit::experiments {

std::uint64_t mx_scale(const formats::BlockFormat& format, float amax, std::string_view mode) {
  using Divisor = formats::ScaleRule::Divisor;
  auto word = std::bit_cast<std::uint32_t>(amax);
  formats::BlockQuantisationOptions options;
  options.rule = formats::scale_of_exponents;
  if (mode == "ceil") options.rule = {Divisor::largest_power, formats::Rounding::upward};
  if (mode == "rceil") options.rule = formats::scale_without_overflow;
  // torchao: half a unit of the element's last place is added to amax, whose exponent then counts.
  if (mode == "even") word += std::uint32_t{1} << (22 - format.element.fraction_bits);
  return formats::block_scale(format, formats::decode(formats::fp32, word), options);
}

}  // namespace guardbit::experiments
