#include "formats/conversion/block_quantisation.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cassert>
#include <cstring>
#include <mutex>

#include "formats/arithmetic.hpp"
#include "formats/codec.hpp"
#include "formats/conversion/dense_codes.hpp"
#include "formats/support/error.hpp"
#include "formats/support/first_code.hpp"
#include "formats/support/parallel.hpp"
#include "formats/tensors/storage.hpp"

namespace guardbit::formats {

namespace {

constexpr std::size_t chunk_elements = 1024;  // whole blocks of 16 and 32
constexpr std::size_t most_blocks = chunk_elements / 16;
constexpr std::uint32_t infinity = fp32_infinity;
constexpr std::uint32_t sign_bit = 0x80000000;
constexpr std::uint32_t never = ~std::uint32_t{0};

std::uint32_t word_at(const std::byte* words, std::size_t index) {
  return load_word<std::uint32_t>(words + index * kernels::word_bytes);
}

Value power_of_two(int exponent) { return {Kind::finite, false, exponent, 1}; }

bool is_symmetric(Rounding rounding) {
  return rounding != Rounding::upward && rounding != Rounding::downward;
}

}  // namespace

Value scaled(const Value& x, const Value& scale) {
  const Unrounded product = multiply(x, scale);
  assert(product.significand >> 64 == 0);
  return {product.kind, product.negative, product.exponent,
          static_cast<std::uint64_t>(product.significand)};
}

std::uint64_t block_scale(const BlockFormat& format, const Value& largest,
                          const BlockQuantisationOptions& options) {
  const Format& element = format.element;
  const Value number =
      decode(element, is_integer(element) ? magnitude_mask(element) : max_finite_code(element));
  Value divisor = options.rule.divisor == ScaleRule::Divisor::largest_number
                      ? number
                      : power_of_two(number.exponent + leading_bit(number.significand));
  divisor.exponent += format.element_exponent;
  if (options.tensor_scale) divisor = scaled(divisor, *options.tensor_scale);
  return encode(format.scale, divide(largest, divisor), options.rule.rounding, overflow_saturate);
}

std::uint64_t block_element(const BlockFormat& format, const Value& x, std::uint64_t scale,
                            const BlockQuantisationOptions& options, RandomBits random) {
  Value unit = decode(format.scale, scale);
  if (unit.kind == Kind::zero) {
    return encode(format.element, x.kind == Kind::nan ? x : zero_value(x.negative),
                  options.rounding, options.overflow);
  }
  unit.exponent += format.element_exponent;
  if (options.tensor_scale) unit = scaled(unit, *options.tensor_scale);
  const Unrounded quotient = x.kind == Kind::nan ? exactly(x) : divide(x, unit);
  return encode(format.element, quotient, options.rounding, options.overflow, random);
}

BlockQuantisation::BlockQuantisation(const BlockFormat& format,
                                     const BlockQuantisationOptions& options,
                                     const kernels::Kernels* kernels)
    : format_(format),
      options_(options),
      kernels_(kernels != nullptr ? kernels : kernels::available().front()),
      block_size_(format.block_size) {
  if (options.rule.rounding == Rounding::stochastic)
    throw Error("scale rule", "scales are not rounded stochastically");
  assert(options.random_bits >= 1 && options.random_bits <= most_random_bits);
  if (options.tensor_scale &&
      (options.tensor_scale->kind != Kind::finite || options.tensor_scale->negative))
    throw Error("tensor scale", "a tensor scale is a finite number above zero");
  if (block_size_ != 16 && block_size_ != 32) return;
  if (format.scale == e8m0 && !options.tensor_scale) {
    prepare_exponents();
  } else if (bits(format.element) - (format.element.has_sign ? 1 : 0) <= 3 &&
             format.element.encoding == Encoding::floating && has_negative_zero(format.element) &&
             bits(format.scale) <= 8 && !format.scale.has_sign && is_symmetric(options.rounding) &&
             encode_overflow(format.element, false, options.rounding, options.overflow) ==
                 max_finite_code(format.element)) {
    prepare_thresholds();
  }
}

void BlockQuantisation::prepare_exponents() {
  const auto plan = kernels::narrowing(format_.element, options_.rounding, options_.overflow,
                                       -format_.element_exponent, options_.random_bits);
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
  // Where a random carry decides, it does from the code below.
  BlockQuantisationOptions to_code_below = options_;
  if (is_stochastic()) {
    to_code_below.rounding = Rounding::toward_zero;
    if (!prepare_carries()) return;
  }
  scale_thresholds_.fill(never);
  for (std::uint64_t code = 1; code <= scales; ++code) {
    scale_thresholds_[code - 1] = first_word([&](std::uint32_t word) {
      return block_scale(format_, decode(fp32, word), options_) >= code;
    });
    if (scale_thresholds_[code - 1] >= infinity) scale_thresholds_[code - 1] = never;
  }
  for (std::size_t eighth = 0; eighth < reached_before_.size(); ++eighth) {
    const auto first = static_cast<std::uint32_t>(eighth) << eighth_shift;
    const auto* const past =
        std::upper_bound(scale_thresholds_.begin(), scale_thresholds_.end(), first);
    reached_before_[eighth] = static_cast<std::uint8_t>(past - scale_thresholds_.begin());
  }
  for (std::uint64_t scale = 0; scale <= scales; ++scale) {
    element_thresholds_[scale].fill(never);
    for (std::uint64_t code = 1; code <= magnitudes && scale != 0; ++code) {
      element_thresholds_[scale][code - 1] = first_word([&](std::uint32_t word) {
        return block_element(format_, decode(fp32, word), scale, to_code_below) >= code;
      });
    }
  }
  method_ = Method::thresholds;
}

/// False where a product would not fit its word.
bool BlockQuantisation::prepare_carries() {
  const Format& element = format_.element;
  const int step = min_exponent(element) - element.fraction_bits;
  const auto magnitude = [&](std::uint64_t code) {
    const Value value = decode(element, code);
    return value.kind == Kind::zero ? 0 : value.significand << (value.exponent - step);
  };
  const std::uint64_t largest = max_finite_code(element);
  random_mask_ = ~std::uint32_t{0} << (32 - options_.random_bits);
  for (std::uint64_t scale = 0; scale <= max_finite_code(format_.scale); ++scale) {
    kernels::BlockCarries& carries = carries_[scale];
    carries.next.fill(never);
    Value unit = decode(format_.scale, scale);
    if (unit.kind == Kind::zero) continue;  // thresholds are out of reach, too
    if (options_.tensor_scale) unit = scaled(unit, *options_.tensor_scale);
    const int zeros = std::countr_zero(unit.significand);
    const std::uint64_t significand = unit.significand >> zeros;
    const int exponent = unit.exponent + zeros + format_.element_exponent + step - 32;
    for (std::uint64_t code = 0; code < largest; ++code) {
      const std::uint64_t next = magnitude(code + 1);
      const std::uint64_t weight = next - magnitude(code);
      if ((uint128{significand} * (next + weight)) >> 32 != 0) return false;
      carries.next[code] = static_cast<std::uint32_t>(significand * next);
      carries.weight[code] = static_cast<std::uint32_t>(significand * weight);
    }
    constexpr int fp32_unit = -150;  // a significand's, less its exponent's field
    carries.offset = static_cast<std::uint32_t>(fp32_unit - exponent);
  }
  return true;
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

/// The codes of scales: how many thresholds each block's largest magnitude reaches. An eighth of
/// a binade, where the count begins, holds at most one for a scale of three fraction bits, so
/// that the loop after the sum, right for any, ends at once. The threshold after the last is ~0.
void BlockQuantisation::count_thresholds(std::span<const std::uint32_t> largest,
                                         std::byte* scales) const {
  for (std::size_t b = 0; b < largest.size(); ++b) {
    const std::uint32_t word = std::min(largest[b], infinity - 1);
    std::size_t reached = reached_before_[word >> eighth_shift];
    reached += word >= scale_thresholds_[reached] ? 1U : 0U;
    while (word >= scale_thresholds_[reached]) ++reached;
    scales[b] = static_cast<std::byte>(reached);
  }
}

void BlockQuantisation::quantise_by_reference(const std::byte* words, std::uint64_t first,
                                              std::byte* codes, std::byte& scale) const {
  const auto size = static_cast<std::size_t>(block_size_);
  std::uint32_t largest = 0;
  for (std::size_t i = 0; i < size; ++i) {
    const std::uint32_t magnitude = word_at(words, i) & ~sign_bit;
    if (magnitude < infinity) largest = std::max(largest, magnitude);
  }
  const std::uint64_t code = block_scale(format_, decode(fp32, largest), options_);
  scale = static_cast<std::byte>(code);
  for (std::size_t i = 0; i < size; ++i) {
    const RandomBits random = is_stochastic()
                                  ? random_bits(options_.seed, first + i, options_.random_bits)
                                  : RandomBits{};
    codes[i] = static_cast<std::byte>(
        block_element(format_, decode(fp32, word_at(words, i)), code, options_, random));
  }
}

void BlockQuantisation::quantise_by_thresholds(std::span<const std::uint32_t> largest,
                                               const std::byte* words, const std::uint32_t* random,
                                               std::byte* codes, std::byte* scales) const {
  const std::size_t count = largest.size() * static_cast<std::size_t>(block_size_);
  const int shift = std::countr_zero(static_cast<std::size_t>(block_size_));
  const int width = bits(format_.element);
  count_thresholds(largest, scales);
  if (is_stochastic()) {
    kernels_->carry_blocks(element_thresholds_.data(), carries_.data(), scales, shift, width, words,
                           random, random_mask_, codes, count);
  } else {
    kernels_->compare_blocks(element_thresholds_.data(), scales, shift, width, words, codes, count);
  }
}

void BlockQuantisation::quantise_by_exponents(std::span<const std::uint32_t> largest,
                                              const std::byte* words, const std::uint32_t* random,
                                              std::byte* codes, std::byte* scales) const {
  const std::size_t count = largest.size() * static_cast<std::size_t>(block_size_);
  const int shift = std::countr_zero(static_cast<std::size_t>(block_size_));
  std::array<std::uint32_t, most_blocks> lowest{};
  const std::int32_t least = choose_exponents(largest, scales, lowest.data());
  const bool raised = narrowing_.alignment == kernels::Alignment::any ||
                      !kernels::tiny_vanishes(narrowing_, least - kernels::raised_field);
  for (std::size_t b = 0; b < largest.size() && !raised; ++b) lowest[b] -= kernels::raised_field;
  kernels_->narrow_blocks(raised ? raised_narrowing_ : narrowing_, lowest.data(), shift, words,
                          random, codes, count);
}

/// Whole blocks, a multiple of the granule together, to a code per byte.
void BlockQuantisation::quantise_chunk(const std::byte* words, std::uint64_t first,
                                       std::size_t count, std::byte* codes,
                                       std::byte* scales) const {
  const auto size = static_cast<std::size_t>(block_size_);
  const std::size_t blocks = count / size;
  const auto by_reference = [&](std::size_t b) {
    quantise_by_reference(words + b * size * kernels::word_bytes, first + b * size,
                          codes + b * size, scales[b]);
  };
  if (method_ == Method::reference) {
    for (std::size_t b = 0; b < blocks; ++b) by_reference(b);
    return;
  }
  std::array<std::uint32_t, most_blocks> maxima{};
  kernels_->block_maxima(words, std::countr_zero(size), maxima.data(), count);
  const auto largest = std::span(maxima).first(blocks);
  std::array<std::uint32_t, chunk_elements + 2 * kernels::granule>
      random_words;                        // written before read
  const std::uint64_t before = first % 4;  // of four elements that share a block of random words
  if (is_stochastic()) {
    kernels_->random_words(options_.seed, first - before, random_words.data(),
                           count + kernels::granule);
  }
  const std::uint32_t* const random = random_words.data() + before;
  if (method_ == Method::thresholds) {
    quantise_by_thresholds(largest, words, random, codes, scales);
  } else {
    quantise_by_exponents(largest, words, random, codes, scales);
  }
  for (std::size_t b = 0; b < blocks; ++b) {
    if (largest[b] >= infinity) by_reference(b);
  }
}

void BlockQuantisation::codes(const std::byte* words, std::uint64_t first, std::size_t count,
                              std::byte* codes, std::byte* scales) const {
  const auto size = static_cast<std::size_t>(block_size_);
  const std::size_t unit = std::max(size, kernels::granule);
  const std::size_t whole = count / unit * unit;
  for (std::size_t done = 0; done < whole; done += chunk_elements) {
    quantise_chunk(words + done * kernels::word_bytes, first + done,
                   std::min(chunk_elements, whole - done), codes + done, scales + done / size);
  }
  if (whole == count) return;
  // The rest, among zeros, which change no scale.
  const std::size_t rest = count - whole;
  std::array<std::byte, chunk_elements * kernels::word_bytes> padded;  // written before read
  std::array<std::byte, chunk_elements> padded_codes;
  std::array<std::byte, chunk_elements> padded_scales;
  std::memcpy(padded.data(), words + whole * kernels::word_bytes, rest * kernels::word_bytes);
  std::memset(padded.data() + rest * kernels::word_bytes, 0, (unit - rest) * kernels::word_bytes);
  quantise_chunk(padded.data(), first + whole, unit, padded_codes.data(), padded_scales.data());
  std::memcpy(codes + whole, padded_codes.data(), rest);
  std::memcpy(scales + whole / size, padded_scales.data(), (rest + size - 1) / size);
}

void BlockQuantisation::quantise_row(const std::byte* words, std::uint64_t first,
                                     std::size_t length, std::byte* elements,
                                     std::byte* scales) const {
  const int width = bits(format_.element);
  if (width == 8) return codes(words, first, length, elements, scales);
  const auto size = static_cast<std::size_t>(block_size_);
  std::array<std::byte, chunk_elements> in_bytes;  // written before read
  for (std::size_t done = 0; done < length; done += chunk_elements) {
    const std::size_t count = std::min(chunk_elements, length - done);
    codes(words + done * kernels::word_bytes, first + done, count, in_bytes.data(),
          scales + done / size);
    pack_dense(width, in_bytes.data(), elements + done * static_cast<std::size_t>(width) / 8, count,
               *kernels_);
  }
}

void BlockQuantisation::operator()(std::span<const std::byte> input, std::int64_t rows,
                                   std::int64_t length, std::span<std::byte> elements,
                                   std::span<std::byte> scales) const {
  assert(static_cast<std::size_t>(rows * length) * kernels::word_bytes <= input.size());
  assert(static_cast<std::size_t>(rows * element_bytes(format_, length)) <= elements.size());
  assert(static_cast<std::size_t>(rows * scale_bytes(format_, length)) <= scales.size());
  // Rows of whole chunks follow each other without padding, as if cut from one row.
  if (length % static_cast<std::int64_t>(chunk_elements) == 0) {
    rows = rows * length / static_cast<std::int64_t>(chunk_elements);
    length = chunk_elements;
  }
  const auto row_length = static_cast<std::size_t>(length);
  const std::size_t row_grain =
      std::max<std::size_t>(1, 65536 / std::max<std::size_t>(1, row_length));
  std::mutex mutex;
  std::size_t done = 0;
  parallel_for(static_cast<std::size_t>(rows), row_grain, options_.threads,
               [&](std::size_t begin, std::size_t end) {
                 for (std::size_t row = begin; row < end; ++row) {
                   const auto r = static_cast<std::int64_t>(row);
                   quantise_row(input.data() + row * row_length * kernels::word_bytes,
                                row * row_length, row_length,
                                elements.data() + r * element_bytes(format_, length),
                                scales.data() + r * scale_bytes(format_, length));
                 }
                 if (!options_.progress) return;
                 const std::lock_guard lock(mutex);
                 done += (end - begin) * row_length;
                 options_.progress(done);
               });
}

}  // namespace guardbit::formats
