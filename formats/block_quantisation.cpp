#include "formats/block_quantisation.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cassert>
#include <cstring>
#include <vector>

#include "formats/arithmetic.hpp"
#include "formats/catalogue.hpp"
#include "formats/codec.hpp"
#include "formats/error.hpp"
#include "formats/first_word.hpp"
#include "formats/parallel.hpp"
#include "formats/storage.hpp"

namespace guardbit::formats {

namespace {

constexpr std::size_t chunk = 1024;  // elements; whole blocks of 16 and 32
constexpr std::size_t word_bytes = sizeof(std::uint32_t);
constexpr std::uint32_t infinity = fp32_infinity;
constexpr std::uint32_t sign_bit = 0x80000000;
constexpr std::uint32_t never = ~std::uint32_t{0};

std::uint32_t word_at(const std::byte* words, std::size_t index) {
  return load_word<std::uint32_t>(words + index * word_bytes);
}

/// Both are products of few bits.
Value times(const Value& x, const Value& y) {
  const Unrounded product = multiply(x, y);
  assert(product.significand >> 64 == 0);
  return {product.kind, product.negative, product.exponent,
          static_cast<std::uint64_t>(product.significand)};
}

Value power_of_two(int exponent) { return {Kind::finite, false, exponent, 1}; }

bool is_symmetric(Rounding rounding) {
  return rounding != Rounding::upward && rounding != Rounding::downward;
}

}  // namespace

std::uint64_t block_scale(const BlockFormat& format, const Value& largest,
                          const BlockQuantisationOptions& options) {
  const Format& element = format.element;
  const Value number =
      decode(element, is_integer(element) ? magnitude_mask(element) : max_finite_code(element));
  Value divisor = options.rule.divisor == ScaleRule::Divisor::largest_number
                      ? number
                      : power_of_two(number.exponent + leading_bit(number.significand));
  divisor.exponent += format.element_exponent;
  if (options.tensor_scale) divisor = times(divisor, *options.tensor_scale);
  return encode(format.scale, divide(largest, divisor), options.rule.rounding, overflow_saturate);
}

std::uint64_t block_element(const BlockFormat& format, const Value& x, std::uint64_t scale,
                            const BlockQuantisationOptions& options) {
  Value unit = decode(format.scale, scale);
  if (unit.kind == Kind::zero) {
    return encode(format.element, x.kind == Kind::nan ? x : zero_value(x.negative),
                  options.rounding, options.overflow);
  }
  unit.exponent += format.element_exponent;
  if (options.tensor_scale) unit = times(unit, *options.tensor_scale);
  const Unrounded quotient = x.kind == Kind::nan ? exactly(x) : divide(x, unit);
  return encode(format.element, quotient, options.rounding, options.overflow);
}

BlockQuantisation::BlockQuantisation(const BlockFormat& format,
                                     const BlockQuantisationOptions& options,
                                     const kernels::Kernels* kernels)
    : format_(format),
      options_(options),
      kernels_(kernels != nullptr ? kernels : kernels::available().front()),
      block_size_(format.block_size) {
  if (options.rounding == Rounding::stochastic || options.rule.rounding == Rounding::stochastic)
    throw Error("rounding", "blocks are not quantised stochastically");
  if (options.tensor_scale &&
      (options.tensor_scale->kind != Kind::finite || options.tensor_scale->negative))
    throw Error("tensor scale", "a tensor scale is a finite number above zero");
  if (block_size_ != 16 && block_size_ != 32) return;
  if (format.scale == e8m0 && !options.tensor_scale) {
    prepare_exponents();
  } else if (bits(format.element) - (format.element.has_sign ? 1 : 0) <= 3 &&
             format.element.encoding == Encoding::floating && has_negative_zero(format.element) &&
             bits(format.scale) <= 8 && !format.scale.has_sign && is_symmetric(options.rounding)) {
    prepare_thresholds();
  }
}

void BlockQuantisation::prepare_exponents() {
  const auto plan = kernels::narrowing(format_.element, options_.rounding, options_.overflow,
                                       -format_.element_exponent, 32);
  if (!plan || plan->container != 8 ||
      (plan->signs != kernels::Signs::bit && plan->signs != kernels::Signs::complement) ||
      plan->alignment == kernels::Alignment::same_exponents)
    return;
  narrowing_ = *plan;
  raised_narrowing_ = kernels::raised(*plan);
  // Twice the magnitude has the next scale, so one binade tells all: from some fraction on the
  // scale is one more than at the power of two.
  constexpr std::uint32_t one = 0x3F800000;
  const auto scale_at = [&](std::uint32_t word) {
    return static_cast<std::int32_t>(block_scale(format_, decode(fp32, word), options_));
  };
  const std::int32_t at_one = scale_at(one);
  const std::uint32_t first = std::clamp(
      first_word([&](std::uint32_t word) { return scale_at(word) > at_one; }), one, 2 * one);
  round_up_ = one + 0x800000 - std::min(first, one + 0x800000);
  scale_offset_ = at_one - static_cast<std::int32_t>((one + round_up_) >> 23);
  method_ = Method::exponents;
}

void BlockQuantisation::prepare_thresholds() {
  const std::uint64_t scales = max_finite_code(format_.scale);
  const std::uint64_t magnitudes = max_finite_code(format_.element);
  if (scales >= most_scales || magnitudes >= most_elements) return;
  scale_thresholds_.fill(never);
  for (std::uint64_t code = 1; code <= scales; ++code) {
    scale_thresholds_[code - 1] = first_word([&](std::uint32_t word) {
      return block_scale(format_, decode(fp32, word), options_) >= code;
    });
    if (scale_thresholds_[code - 1] >= infinity) scale_thresholds_[code - 1] = never;
  }
  for (std::uint64_t scale = 0; scale <= scales; ++scale) {
    element_thresholds_[scale].fill(never);
    for (std::uint64_t code = 1; code <= magnitudes && scale != 0; ++code) {
      element_thresholds_[scale][code - 1] = first_word([&](std::uint32_t word) {
        return block_element(format_, decode(fp32, word), scale, options_) >= code;
      });
    }
  }
  method_ = Method::thresholds;
}

/// Scales of blocks whose scales are powers of two, and the lowest fields that these make of the
/// raised narrowing's; the least of those.
std::int32_t BlockQuantisation::choose_exponents(std::span<const std::uint32_t> largest,
                                                 std::byte* scales, std::uint32_t* lowest) const {
  constexpr auto most = static_cast<std::int32_t>(max_finite_code(e8m0));
  const std::int32_t unscaled = static_cast<std::int32_t>(raised_narrowing_.lowest) - 127;
  const auto set = [&](std::size_t b, std::int32_t code) {
    scales[b] = static_cast<std::byte>(code);
    lowest[b] = static_cast<std::uint32_t>(unscaled + code);
    return unscaled + code;
  };
  std::int32_t least = 255 + kernels::raised_field;
  bool any_tiny = false;
  for (std::size_t b = 0; b < largest.size(); ++b) {
    const std::uint32_t word = std::min(largest[b], infinity - 1);
    const auto code = static_cast<std::int32_t>((word + round_up_) >> 23) + scale_offset_;
    const bool is_tiny = word < 0x800000;  // no field of its own
    any_tiny = any_tiny || is_tiny;
    const std::int32_t field = set(b, std::clamp(code, 0, most));
    least = is_tiny ? least : std::min(least, field);
  }
  for (std::size_t b = 0; any_tiny && b < largest.size(); ++b) {
    if (largest[b] == 0) {
      set(b, 0);
      lowest[b] = 255 + kernels::raised_field;  // zeros stay zeros under any
    } else if (largest[b] < 0x800000) {
      least = std::min(least, set(b, static_cast<std::int32_t>(block_scale(
                                         format_, decode(fp32, largest[b]), options_))));
    }
  }
  return least;
}

/// The code of the scale: how many thresholds the largest magnitude reaches.
std::uint64_t BlockQuantisation::count_thresholds(std::uint32_t largest) const {
  std::size_t reached = 0;
  for (std::size_t step = most_scales / 2; step != 0; step /= 2)
    reached += largest >= scale_thresholds_[reached + step - 1] ? step : 0;
  return reached;
}

void BlockQuantisation::quantise_by_reference(const std::byte* words, std::byte* codes,
                                              std::byte& scale) const {
  const auto size = static_cast<std::size_t>(block_size_);
  std::uint32_t largest = 0;
  for (std::size_t i = 0; i < size; ++i) {
    const std::uint32_t magnitude = word_at(words, i) & ~sign_bit;
    if (magnitude < infinity) largest = std::max(largest, magnitude);
  }
  const std::uint64_t code = block_scale(format_, decode(fp32, largest), options_);
  scale = static_cast<std::byte>(code);
  for (std::size_t i = 0; i < size; ++i) {
    codes[i] = static_cast<std::byte>(
        block_element(format_, decode(fp32, word_at(words, i)), code, options_));
  }
}

/// Whole blocks, a multiple of the granule together, to a code per byte.
void BlockQuantisation::quantise_chunk(const std::byte* words, std::size_t count, std::byte* codes,
                                       std::byte* scales) const {
  const auto size = static_cast<std::size_t>(block_size_);
  const std::size_t blocks = count / size;
  if (method_ == Method::reference) {
    for (std::size_t b = 0; b < blocks; ++b)
      quantise_by_reference(words + b * size * word_bytes, codes + b * size, scales[b]);
    return;
  }
  std::array<std::uint32_t, chunk / 16> largest{};
  std::array<std::uint32_t, chunk / 16> lowest{};
  const int shift = std::countr_zero(size);
  kernels_->block_maxima(words, shift, largest.data(), count);
  if (method_ == Method::thresholds) {
    for (std::size_t b = 0; b < blocks; ++b)
      scales[b] = static_cast<std::byte>(count_thresholds(std::min(largest[b], infinity - 1)));
    kernels_->compare_blocks(element_thresholds_.data(), scales, shift, bits(format_.element),
                             words, codes, count);
  } else {
    const std::int32_t least =
        choose_exponents(std::span(largest).first(blocks), scales, lowest.data());
    const bool raised = narrowing_.alignment == kernels::Alignment::any ||
                        !kernels::tiny_vanishes(narrowing_, least - kernels::raised_field);
    for (std::size_t b = 0; b < blocks && !raised; ++b) lowest[b] -= kernels::raised_field;
    kernels_->narrow_blocks(raised ? raised_narrowing_ : narrowing_, lowest.data(), shift, words,
                            codes, count);
  }
  for (std::size_t b = 0; b < blocks; ++b) {
    if (largest[b] >= infinity)
      quantise_by_reference(words + b * size * word_bytes, codes + b * size, scales[b]);
  }
}

void BlockQuantisation::quantise_row(const std::byte* words, std::size_t length,
                                     std::byte* elements, std::byte* scales) const {
  const auto size = static_cast<std::size_t>(block_size_);
  const int width = bits(format_.element);
  std::array<std::byte, chunk> codes;  // written before read
  std::array<std::byte, chunk * word_bytes> padded;
  std::array<std::byte, chunk> padded_scales;
  for (std::size_t done = 0; done < length; done += chunk) {
    const std::size_t count = std::min(chunk, length - done);
    const std::byte* const at = words + done * word_bytes;
    std::byte* const to = elements + done * static_cast<std::size_t>(width) / 8;
    std::byte* const scales_at = scales + done / size;
    if (count == chunk) {
      quantise_chunk(at, count, width == 8 ? to : codes.data(), scales_at);
      if (width != 8) kernels_->pack(width, codes.data(), to, count);
      continue;
    }
    // The rest of the row, among zeros, which change no scale.
    const std::size_t unit = std::max(size, kernels::granule);
    const std::size_t whole = (count + unit - 1) / unit * unit;
    std::fill_n(padded.begin(), whole * word_bytes, std::byte{0});
    std::memcpy(padded.data(), at, count * word_bytes);
    quantise_chunk(padded.data(), whole, codes.data(), padded_scales.data());
    std::memcpy(scales_at, padded_scales.data(), (count + size - 1) / size);
    if (width != 8) {
      kernels_->pack(width, codes.data(), padded.data(), whole);
      std::memcpy(to, padded.data(), (count * static_cast<std::size_t>(width) + 7) / 8);
    } else {
      std::memcpy(to, codes.data(), count);
    }
  }
}

void BlockQuantisation::operator()(std::span<const std::byte> input, std::int64_t rows,
                                   std::int64_t length, std::span<std::byte> elements,
                                   std::span<std::byte> scales) const {
  assert(static_cast<std::size_t>(rows * length) * word_bytes <= input.size());
  assert(static_cast<std::size_t>(rows * element_bytes(format_, length)) <= elements.size());
  assert(static_cast<std::size_t>(rows * scale_bytes(format_, length)) <= scales.size());
  // Rows of whole chunks follow each other without padding, as if cut from one row.
  if (length % static_cast<std::int64_t>(chunk) == 0) {
    rows = rows * length / static_cast<std::int64_t>(chunk);
    length = chunk;
  }
  const auto row_grain = static_cast<std::size_t>(
      std::max<std::int64_t>(1, 65536 / std::max<std::int64_t>(1, length)));
  parallel_for(static_cast<std::size_t>(rows), row_grain, options_.threads,
               [&](std::size_t begin, std::size_t end) {
                 for (std::size_t row = begin; row < end; ++row) {
                   const auto r = static_cast<std::int64_t>(row);
                   quantise_row(input.data() + row * static_cast<std::size_t>(length) * word_bytes,
                                static_cast<std::size_t>(length),
                                elements.data() + r * element_bytes(format_, length),
                                scales.data() + r * scale_bytes(format_, length));
                 }
               });
}

}  // namespace guardbit::formats
