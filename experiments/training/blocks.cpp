#include "experiments/training/blocks.hpp"

#include <algorithm>
#include <atomic>
#include <bit>

#include "experiments/scaling/block_scales.hpp"
#include "formats/codec.hpp"
#include "formats/format_catalogue.hpp"
#include "formats/random.hpp"
#include "formats/support/parallel.hpp"

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

  float tensor_decode() const { return tensor_decode_; }

 private:
  const Encoding& encoding_;
  Nvfp4Scales nvfp4_;
  float tensor_decode_;
};

std::uint8_t element_code(const Encoding& encoding, const GroupScale& group, float x,
                          std::uint64_t index) {
  const float y = group.divides ? x / group.encode : x * group.encode;
  constexpr int random_bits = 8;  // as cvt.rs.satfinite.e2m1x4 takes
  return static_cast<std::uint8_t>(formats::encode(
      encoding.format, formats::decode(formats::fp32, std::bit_cast<std::uint32_t>(y)),
      encoding.stochastic ? formats::Rounding::stochastic : formats::Rounding::nearest_even,
      formats::overflow_saturate,
      encoding.stochastic ? formats::random_bits(encoding.random_seed, index, random_bits)
                          : formats::RandomBits{}));
}

/// Lines of numbers cut into blocks.
struct Lines {
  const float* values = nullptr;
  std::int64_t lines = 0, k = 0, size = 0, blocks = 0;

  std::int64_t at(std::int64_t line, std::int64_t block) const { return line * k + block * size; }
  std::size_t length(std::int64_t block) const {
    return static_cast<std::size_t>(std::min(size, k - block * size));
  }
  /// Of a block in lines [first, last).
  float amax(std::int64_t first, std::int64_t last, std::int64_t block) const {
    float largest = 0;
    for (std::int64_t line = first; line < last; ++line) {
      const float here = amax_of(values + at(line, block), length(block));
      if (here > largest || here != here) largest = here;
    }
    return largest;
  }
};

/// Quantises lines [first, last), which share a block's scale; returns the underflow.
std::int64_t quantise_group(const Encoding& encoding, const Scales& chosen, const Lines& x,
                            std::int64_t first, std::int64_t last, CodedLines& to) {
  const std::uint64_t magnitude = formats::magnitude_mask(encoding.format);
  std::int64_t zeros = 0;
  for (std::int64_t block = 0; block < x.blocks; ++block) {
    const BlockCode scale = chosen.of(x.amax(first, last, block));
    for (std::int64_t line = first; line < last; ++line) {
      to.scales[static_cast<std::size_t>(line * x.blocks + block)] = std::byte{scale.code};
      const auto begin = static_cast<std::size_t>(x.at(line, block));
      for (std::size_t i = begin; i < begin + x.length(block); ++i) {
        const std::uint8_t code = element_code(encoding, scale.group, x.values[i], i);
        to.codes[i] = std::byte{code};
        zeros += (code & magnitude) == 0 && x.values[i] != 0 ? 1 : 0;
      }
    }
  }
  return zeros;
}

}  // namespace

const Format& scale_format(const Encoding& encoding) {
  return encoding.scaling == OperandScaling::mx ? formats::e8m0 : formats::ue4m3;
}

std::int64_t blocks_along(const Encoding& encoding, std::int64_t k) {
  const std::int64_t size = block_size(encoding);
  return (k + size - 1) / size;
}

CodedLines quantise_blocks(const Encoding& encoding, const float* values, std::int64_t lines,
                           std::int64_t k, int threads) {
  const Lines x{values, lines, k, block_size(encoding), blocks_along(encoding, k)};
  CodedLines to;
  to.codes.resize(static_cast<std::size_t>(lines * k));
  to.scales.resize(static_cast<std::size_t>(lines * x.blocks));
  const Scales chosen(encoding);
  if (encoding.scaling == OperandScaling::nvfp4) to.decode = chosen.tensor_decode();
  const std::int64_t together = encoding.square_blocks ? x.size : 1;
  std::atomic<std::int64_t> lost = 0;
  const std::int64_t groups = (lines + together - 1) / together;
  formats::parallel_for(static_cast<std::size_t>(groups), static_cast<std::size_t>(64 / together),
                        threads, [&](std::size_t begin, std::size_t end) {
                          for (auto group = static_cast<std::int64_t>(begin);
                               group < static_cast<std::int64_t>(end); ++group)
                            lost += quantise_group(encoding, chosen, x, group * together,
                                                   std::min(lines, (group + 1) * together), to);
                        });
  to.underflow = lost;
  return to;
}

void mix_along(float* values, std::int64_t lines, std::int64_t k) {
  constexpr std::int64_t points = 16;
  constexpr unsigned negative = 0x9d2c;  // signs drawn once
  for (std::int64_t line = 0; line < lines; ++line) {
    for (std::int64_t begin = 0; begin + points <= k; begin += points) {
      float* const x = values + line * k + begin;
      for (std::int64_t i = 0; i < points; ++i)
        if ((negative >> i & 1U) != 0) x[i] = -x[i];
      for (std::int64_t half = 1; half < points; half *= 2) {
        for (std::int64_t i = 0; i < points; ++i) {
          if ((i & half) != 0) continue;
          const float a = x[i], b = x[i + half];
          x[i] = a + b;
          x[i + half] = a - b;
        }
      }
      for (std::int64_t i = 0; i < points; ++i) x[i] *= 0.25F;
    }
  }
}

}  // namespace guardbit::experiments::training
