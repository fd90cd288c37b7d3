#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>

#include "formats/block_format.hpp"
#include "formats/conversion/kernels/conversion_kernels.hpp"
#include "formats/random.hpp"
#include "formats/rounding.hpp"
#include "formats/value.hpp"

namespace guardbit::formats {

/// How the scale of a block follows from its largest finite magnitude: that over the element
/// format's largest number, or over the largest power of two in it, rounded into the scale format,
/// saturating.
struct ScaleRule {
  enum class Divisor : std::uint8_t { largest_number, largest_power };
  Divisor divisor = Divisor::largest_power;
  Rounding rounding = Rounding::toward_zero;

  friend constexpr bool operator==(const ScaleRule&, const ScaleRule&) = default;
};

/// OCP Microscaling Formats (MX) 1.0, 6.3: the exponent of the largest magnitude less that of the
/// largest element. Magnitudes past the largest number saturate.
inline constexpr ScaleRule scale_of_exponents = {ScaleRule::Divisor::largest_power,
                                                 Rounding::toward_zero};
/// The smallest power of two at which nothing saturates (cvt.rp.ue8m0 of the quotient).
inline constexpr ScaleRule scale_without_overflow = {ScaleRule::Divisor::largest_number,
                                                     Rounding::upward};
/// The number nearest to the quotient, which scales with a fraction (NVFP4's ue4m3) call for.
inline constexpr ScaleRule scale_nearest = {ScaleRule::Divisor::largest_number,
                                            Rounding::nearest_even};

struct BlockQuantisationOptions {
  ScaleRule rule = scale_of_exponents;
  /// of the elements
  Rounding rounding = Rounding::nearest_even;
  /// of the elements
  Overflow overflow = overflow_saturate;
  /// divides everything; finite, above zero
  std::optional<Value> tensor_scale;
  /// Of Rounding::stochastic: the element at `column` of `row` takes random_bits(seed, row * length
  /// + column, random_bits).
  std::uint64_t seed = 0;
  /// 1 to 32
  int random_bits = most_random_bits;
  /// 0: all
  int threads = 0;
  /// Elements done, now and then, from any thread, one at a time.
  std::function<void(std::size_t done)> progress;
};

/// x * scale, whose significands have at most 64 bits together.
Value scaled(const Value& x, const Value& scale);

/// The scale of a block whose largest finite magnitude is `largest` (zero if all are).
std::uint64_t block_scale(const BlockFormat& format, const Value& largest,
                          const BlockQuantisationOptions& options);

/// The element that stands for x in a block of that scale: x over the scale and the tensor scale,
/// rounded once. Where the scale is zero, so is every element, with its sign. `random` is that of
/// Rounding::stochastic.
std::uint64_t block_element(const BlockFormat& format, const Value& x, std::uint64_t scale,
                            const BlockQuantisationOptions& options, RandomBits random = {});

/// FP32 rows to blocks, choosing scales and rounding elements in one pass over memory. NaN and
/// infinity do not count for the scale; the overflow policy says what they become. Prepared once
/// for any number of arrays.
class BlockQuantisation {
 public:
  /// Throws Error for stochastic rounding of scales and for a tensor scale that is not a number
  /// above zero.
  /// `kernels` is one of kernels::available(), the widest if null.
  explicit BlockQuantisation(const BlockFormat& format,
                             const BlockQuantisationOptions& options = {},
                             const kernels::Kernels* kernels = nullptr);

  /// Reads rows * length FP32 words; writes element_bytes(format, length) dense bytes and
  /// scale_bytes(format, length) for each row, one after the other.
  void operator()(std::span<const std::byte> input, std::int64_t rows, std::int64_t length,
                  std::span<std::byte> elements, std::span<std::byte> scales) const;

  /// Elements of one row, from a block's first on: a code in each byte and the blocks' scales.
  /// `first` is the index of the first element in the array.
  void codes(const std::byte* words, std::uint64_t first, std::size_t count, std::byte* codes,
             std::byte* scales) const;

  /// False where every element takes the reference's way.
  bool uses_kernels() const { return method_ != Method::reference; }

 private:
  enum class Method : std::uint8_t {
    /// the scale is a power of two: it moves the destination's lowest exponent
    exponents,
    /// few elements and scales: FP32 magnitudes from which each one is reached
    thresholds,
    reference,
  };

  void prepare_exponents();
  void prepare_thresholds();
  bool prepare_carries();
  std::int32_t choose_exponents(std::span<const std::uint32_t> largest, std::byte* scales,
                                std::uint32_t* lowest) const;
  void count_thresholds(std::span<const std::uint32_t> largest, std::byte* scales) const;
  // `first` is the index of the first element in the array.
  void quantise_row(const std::byte* words, std::uint64_t first, std::size_t length,
                    std::byte* elements, std::byte* scales) const;
  void quantise_chunk(const std::byte* words, std::uint64_t first, std::size_t count,
                      std::byte* codes, std::byte* scales) const;
  void quantise_by_thresholds(std::span<const std::uint32_t> largest, const std::byte* words,
                              const std::uint32_t* random, std::byte* codes,
                              std::byte* scales) const;
  void quantise_by_exponents(std::span<const std::uint32_t> largest, const std::byte* words,
                             const std::uint32_t* random, std::byte* codes,
                             std::byte* scales) const;
  void quantise_by_reference(const std::byte* words, std::uint64_t first, std::byte* codes,
                             std::byte& scale) const;
  bool is_stochastic() const { return options_.rounding == Rounding::stochastic; }

  /// magnitudes, where thresholds serve
  static constexpr std::size_t most_elements = 8;
  static constexpr std::size_t most_scales = 128;

  BlockFormat format_;
  BlockQuantisationOptions options_;
  const kernels::Kernels* kernels_;
  Method method_ = Method::reference;
  kernels::Narrowing narrowing_, raised_narrowing_;
  std::int64_t block_size_ = 0;
  // exponents: the scale's code is (word + round_up) >> 23, plus an offset, within bounds.
  std::uint32_t round_up_ = 0;
  std::int32_t scale_offset_ = 0;
  // thresholds
  kernels::Thresholds<most_scales> scale_thresholds_{};
  static constexpr int eighth_shift = 20;  // of words, to their sign, exponent and 3 bits more
  /// thresholds, by an eighth of a binade
  std::array<std::uint8_t, 0x7F8> reached_before_{};
  std::array<kernels::Thresholds<most_elements>, most_scales> element_thresholds_{};
  /// where stochastic
  std::array<kernels::BlockCarries, most_scales> carries_{};
  std::uint32_t random_mask_ = 0;
};

}  // namespace guardbit::formats
