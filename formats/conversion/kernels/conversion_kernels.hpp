#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "formats/conversion/kernels/conversion_plan.hpp"

namespace guardbit::formats::kernels {

/// of an FP32 number
inline constexpr std::size_t word_bytes = sizeof(std::uint32_t);

/// Elements that a kernel takes at a time: every count below is a multiple of it.
inline constexpr std::size_t granule = 64;

/// What a table says of each code of at most 8 bits.
using ByteTable = std::array<std::uint32_t, 256>;

/// Magnitudes from which on each next code is reached, ascending; ~0 for none. An FP32 magnitude is
/// below ~0.
template <std::size_t count>
using Thresholds = std::array<std::uint32_t, count>;

/// Which random bits lift a magnitude from code k, which rounding toward zero gives, to the next.
/// With magnitudes of the format as integers M_k times its finest step, that step times the block's
/// unit as U * 2^(f + 32), and the number's magnitude as X * 2^e, the discarded fraction is
///   d = (X * 2^e / (U * 2^(f + 32)) - M_k) / (M_(k+1) - M_k).
/// Its first n bits and the n random ones, R, carry when floor(d * 2^n) + R >= 2^n. Since 2^n - R
/// is an integer, the floor does not matter. With r = R * 2^(32 - n), the random bits at the top of
/// a word, and s = e - f, that is
///   X * 2^s + U * (M_(k+1) - M_k) * r >= U * M_(k+1) * 2^32.
/// Nor does it matter that X * 2^s is truncated to an integer: all else is one. And the right side
/// has no bits below 32: the upper word of the sum decides. X * 2^s is below U * M_(k+1) * 2^32, so
/// the sum fits 64 bits where U * (2 * M_(k+1) - M_k) fits 32.
///
/// Where no number is next, `weight` is 0 and `next` is ~0: no 24 bits, however shifted, reach
/// that.
struct BlockCarries {
  /// U * (M_(k+1) - M_k)
  std::array<std::uint32_t, 8> weight{};
  /// U * M_(k+1)
  std::array<std::uint32_t, 8> next{};
  /// from the exponent's field, at least 1, to s, in two's complement
  std::uint32_t offset = 0;
};

/// What `count` adds up, a number in each lane that it has. Errors are in 2^-63 units of the
/// destination's last place: 32 upper bits and 32 lower ones, of which the sums are by halves. Sums
/// hold 65536 elements.
struct LaneCounts {
  using Lanes = std::array<std::uint32_t, 16>;
  // No member tells of a zero that stays one.
  alignas(64) Lanes nans_in{};
  Lanes zeros_made{}, infinities_made{}, nans_made{}, saturated{}, subnormals_made{}, inexact{};
  Lanes uncompared{};
  /// by the weight of the half's last bit
  Lanes error_0{}, error_16{}, error_32{}, error_48{};
  /// of the largest error
  Lanes most_lower{}, most_upper{};
};

/// What became of the numbers of a block, were they all finite and still are.
struct BlockErrors {
  std::uint32_t zeros_made = 0;
  std::uint32_t inexact = 0;
  /// magnitudes out of range
  std::uint32_t past = 0;
  /// magnitudes that may be
  std::uint32_t uncertain = 0;
  /// that are or were not finite: all else is wrong then
  std::uint32_t others = 0;
};

/// What block_errors compares with, by sign where an array of two.
struct BlockLimits {
  /// what an element of 1 stands for
  double unit = 0;
  std::array<std::uint32_t, 2> may_be_past{}, past{};
};

/// The array kernels for one kind of CPU. Addresses need no alignment except where said.
struct Kernels {
  std::string_view name;
  /// FP32 words to codes in containers. `random` holds a word per element for
  /// RoundingClass::stochastic, else it is not read. `stream` stores past the caches: `codes` is a
  /// multiple of 64 bytes then.
  void (*narrow)(const Narrowing& plan, const std::byte* words, const std::uint32_t* random,
                 std::byte* codes, std::size_t count, bool stream);
  /// Compares words and the codes that narrowing them made, for as many elements as LaneCounts
  /// holds. `values` are the numbers before a multiplication that `words` are the products of, else
  /// the words. `random` as for `narrow`.
  void (*count)(const Counting& plan, const std::byte* values, const std::byte* words,
                const std::uint32_t* random, const std::byte* codes, std::size_t count,
                LaneCounts& counts);
  /// Codes in containers to FP32 words.
  void (*widen)(const Widening& plan, const std::byte* codes, std::byte* words, std::size_t count);
  /// FP32 words to products; the two arrays may be the same.
  void (*multiply)(const Multiplication& plan, const std::byte* words, std::byte* products,
                   std::size_t count);
  /// Codes in bytes to whatever the table has, in 8-, 16- or 32-bit containers.
  void (*look_up)(const ByteTable& table, int container, const std::byte* codes, std::byte* results,
                  std::size_t count, bool stream);
  /// rather than widening and narrowing
  bool looks_up_quickly = false;
  /// Orders what was streamed before whatever this thread stores next.
  void (*finish_streams)();
  /// The 32 bits of random_bits(seed, first + i, 32) for each i; `first` is a multiple of 4.
  void (*random_words)(std::uint64_t seed, std::uint64_t first, std::uint32_t* words,
                       std::size_t count);
  /// The largest FP32 magnitude of each block of 2^block_shift (NaNs are larger than infinity).
  /// Here and below blocks have at least 16 elements.
  void (*block_maxima)(const std::byte* words, int block_shift, std::uint32_t* maxima,
                       std::size_t count);
  /// `narrow` to bytes with a `lowest` of its own for each block, for Signs::bit and complement.
  void (*narrow_blocks)(const Narrowing& plan, const std::uint32_t* lowest, int block_shift,
                        const std::byte* words, const std::uint32_t* random, std::byte* codes,
                        std::size_t count);
  /// Codes of `width` bits, a sign bit on top and below it how many thresholds of the block's row
  /// the magnitude reaches.
  void (*compare_blocks)(const Thresholds<8>* rows, const std::byte* row_of_block, int block_shift,
                         int width, const std::byte* words, std::byte* codes, std::size_t count);
  /// The same, one more where the block's carries say so of the element's random word.
  void (*carry_blocks)(const Thresholds<8>* rows, const BlockCarries* carries,
                       const std::byte* row_of_block, int block_shift, int width,
                       const std::byte* words, const std::uint32_t* random,
                       std::uint32_t random_mask, std::byte* codes, std::size_t count);
  /// Numbers of one block, of any length: the squares of the words', the squares of the errors, and
  /// the errors in units. `numbers` are those of the element codes.
  BlockErrors (*block_errors)(const BlockLimits& limits, const double* numbers,
                              const std::byte* words, const std::byte* codes, std::size_t count,
                              double* squares, double* noise, double* errors);
  /// Codes of `width` < 8 bits, one per byte with nothing above them, to dense ones and back.
  void (*pack)(int width, const std::byte* codes, std::byte* dense, std::size_t count);
  void (*unpack)(int width, const std::byte* dense, std::byte* codes, std::size_t count);
};

/// Each from a source of its own, of which CMakeLists.txt chooses those of the CPU.
extern const Kernels* const avx512;
extern const Kernels* const avx2;
extern const Kernels* const neon;
extern const Kernels* const portable;

/// The kernels that this CPU can run, the widest first; the portable ones are last.
std::span<const Kernels* const> available();

}  // namespace guardbit::formats::kernels
