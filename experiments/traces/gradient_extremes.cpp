#include "experiments/traces/gradient_extremes.hpp"

#include <bit>
#include <cmath>

#include "formats/arithmetic.hpp"
#include "formats/codec.hpp"
#include "formats/format_catalogue.hpp"
#include "formats/tensors/storage.hpp"

namespace guardbit::experiments {

GradientExtremes gradient_extremes(const formats::StreamedTensor& stream) {
  const formats::Format& format = stream.tensor.format;
  // Magnitudes ascend with their codes, infinities and NaNs last.
  const std::uint64_t finite = max_finite_code(format);
  GradientExtremes extremes;
  std::uint64_t largest = 0;
  stream.read([&](std::span<const std::byte> bytes, std::size_t first) {
    const formats::Tensor window = formats::window_of(stream.tensor, bytes, first);
    const auto count = static_cast<std::size_t>(window.shape[0]);
    for (std::size_t i = 0; i < count; ++i) {
      const std::uint64_t code = formats::load_code(bytes, format, window.packing, i);
      const std::uint64_t magnitude = code & magnitude_mask(format);
      const bool is_nan = format.specials == formats::Specials::nan_negative_zero &&
                          code == formats::sign_mask(format);
      if (magnitude > finite || is_nan) {
        if (!extremes.first_nonfinite) extremes.first_nonfinite = first + i;
      } else if (magnitude > largest) {
        largest = magnitude;
        extremes.largest_index = first + i;
      }
    }
  });
  extremes.largest = formats::decode(format, largest);
  return extremes;
}

std::optional<std::uint64_t> overflowing_element(const GradientExtremes& extremes, double ratio,
                                                 const formats::Format& to) {
  if (extremes.first_nonfinite) return extremes.first_nonfinite;
  if (!std::isfinite(ratio)) return extremes.largest_index;
  if (extremes.largest.kind == formats::Kind::zero) return std::nullopt;
  const formats::Value factor = formats::decode(formats::fp64, std::bit_cast<std::uint64_t>(ratio));
  const std::uint64_t product = encode(formats::fp32, multiply(extremes.largest, factor));
  const formats::Value stored = formats::decode(to, convert(formats::fp32, product, to));
  const bool finite = stored.kind == formats::Kind::zero || stored.kind == formats::Kind::finite;
  if (finite) return std::nullopt;
  return extremes.largest_index;
}

}  // namespace guardbit::experiments
