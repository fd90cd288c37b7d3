#include "experiments/training/blocks.hpp"

#include <algorithm>
#include <atomic>
#include <bit>

#include "experiments/block_scales.hpp"
#include "formats/catalogue.hpp"
#include "formats/codec.hpp"
#include "formats/parallel.hpp"

namespace guardbit::experiments::training {

namespace {

std::int64_t block_size(const Encoding& encoding) {
  return encoding.scaling == OperandScaling::mx ? 32 : 16;
}

struct BlockCode {
  GroupScale group;
  std::uint8_t code = 0;
};

/// Chooses the scales of a tensor's blocks.
class Scales {
 public:
  explicit Scales(const Encoding& encoding)
      : encoding_(encoding),
        nvfp4_(Nvfp4Rule::transformer_engine, encoding.tensor_amax),
        tensor_decode_(1.0F / nvfp4_.tensor_scale()) {}

  BlockCode of(float amax) const {
    if (encoding_.scaling == OperandScaling::mx)
      return {mx_scale(MxMode::rceil, encoding_.format, amax),
              mx_scale_code(MxMode::rceil, encoding_.format, amax)};
    const GroupScale group = nvfp4_.block(amax);
    // A number of 4 bits times one of 24 is exact in FP64, so that the quotient is the scale.
    const double scale = group.decode / static_cast<double>(tensor_decode_);
    return {group, static_cast<std::uint8_t>(formats::encode(
                       formats::e4m3,
                       formats::decode(formats::fp64, std::bit_cast<std::uint64_t>(scale))))};
  }

 private:
  const Encoding& encoding_;
  Nvfp4Scales nvfp4_;
  float tensor_decode_;
};

std::uint8_t element_code(const Format& format, const GroupScale& group, float x) {
  const float y = group.divides ? x / group.encode : x * group.encode;
  return static_cast<std::uint8_t>(
      formats::encode(format, formats::decode(formats::fp32, std::bit_cast<std::uint32_t>(y)),
                      formats::Rounding::nearest_even, formats::overflow_saturate));
}

}  // namespace

const Format& scale_format(const Encoding& encoding) {
  return encoding.scaling == OperandScaling::mx ? formats::e8m0 : formats::ue4m3;
}

std::int64_t blocks_along(const Encoding& encoding, std::int64_t k) {
  const std::int64_t size = block_size(encoding);
  return (k + size - 1) / size;
}

std::int64_t quantise_blocks(const Encoding& encoding, const float* values, std::int64_t lines,
                             std::int64_t k, std::vector<std::byte>& codes,
                             std::vector<std::byte>& scales, int threads) {
  const std::int64_t size = block_size(encoding), blocks = blocks_along(encoding, k);
  codes.resize(static_cast<std::size_t>(lines * k));
  scales.resize(static_cast<std::size_t>(lines * blocks));
  const Scales chosen(encoding);
  const std::uint64_t magnitude = formats::magnitude_mask(encoding.format);
  std::atomic<std::int64_t> lost = 0;
  formats::parallel_for(
      static_cast<std::size_t>(lines), 64, threads, [&](std::size_t begin, std::size_t end) {
        std::int64_t zeros = 0;
        for (std::size_t line = begin; line < end; ++line) {
          for (std::int64_t block = 0; block < blocks; ++block) {
            const auto count = static_cast<std::size_t>(std::min(size, k - block * size));
            const std::size_t at =
                line * static_cast<std::size_t>(k) + static_cast<std::size_t>(block * size);
            const BlockCode scale = chosen.of(amax_of(values + at, count));
            scales[line * static_cast<std::size_t>(blocks) + static_cast<std::size_t>(block)] =
                std::byte{scale.code};
            for (std::size_t i = at; i < at + count; ++i) {
              const std::uint8_t code = element_code(encoding.format, scale.group, values[i]);
              codes[i] = std::byte{code};
              zeros += (code & magnitude) == 0 && values[i] != 0 ? 1 : 0;
            }
          }
        }
        lost += zeros;
      });
  return lost;
}

}  // namespace guardbit::experiments::training
