#include <algorithm>
#include <array>
#include <cstring>

#include "emulator/engine/cpu.hpp"
#include "emulator/engine/kernels/half/half_tile.hpp"

#if defined(__x86_64__)
#include <immintrin.h>
#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx2,fma,f16c"))), apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx2,fma,f16c")
#endif

namespace guardbit::emulator::half {

namespace {

constexpr int vectors = lines_of_panel / 4;
constexpr double nudge = 1 + 0x1p-30;
constexpr int fraction_bits = 52, bias = 1023;
constexpr std::int8_t exponent_of_zero = -128;

std::size_t place_of(int place, int line, bool is_a) {
  const int at =
      is_a ? (line / rows_together * longest_panel + place) * rows_together + line % rows_together
           : place * lines_of_panel + line;
  return static_cast<std::size_t>(at);
}

void pack(const Codes* codes, const Blocks& blocks, bool negate, bool is_a, Panel& to) {
  const std::uint16_t flip = negate ? 0x8000 : 0;
  for (int block = 0; block < blocks.count; ++block) {
    std::array<std::uint16_t, lines_of_panel> negative{}, positive{};
    for (int i = 0; i < blocks.block_k; ++i) {
      const int place = block * blocks.block_k + i;
      alignas(32) std::array<float, lines_of_panel> values;
      for (std::size_t part = 0; part < lines_of_panel; part += 8) {
        const __m128i half = _mm_xor_si128(
            _mm_loadu_si128(reinterpret_cast<const __m128i*>(codes[place].data() + part)),
            _mm_set1_epi16(static_cast<std::int16_t>(flip)));
        _mm256_store_ps(values.data() + part, _mm256_cvtph_ps(half));
      }
      for (int line = 0; line < lines_of_panel; ++line) {
        const auto at = static_cast<std::size_t>(line);
        std::uint32_t bits = 0;
        std::memcpy(&bits, &values[at], sizeof bits);
        const bool is_zero = bits << 1 == 0, is_negative = bits >> 31 != 0;
        const int exponent = static_cast<int>(bits >> 23 & 0xFF) - 127;
        const std::size_t there = place_of(place, line, is_a);
        to.values[there] = is_a ? double{values[at]} : double{values[at]} * nudge;
        const std::size_t first = is_a ? 2 * there - at % 2 : 2 * there;
        // A special's may be any (fused_tile.hpp).
        const auto kept = static_cast<std::int8_t>(std::clamp(exponent, -14, 15));
        to.exponents[first] = to.exponents[first + (is_a ? 2 : 1)] =
            is_zero ? exponent_of_zero : kept;
        const auto bit = static_cast<std::uint16_t>(1U << i);
        if (!is_zero) (is_negative ? negative : positive)[at] |= bit;
      }
    }
    for (int line = 0; line < lines_of_panel; ++line) {
      to.negative[place_of(block, line, is_a)] = negative[static_cast<std::size_t>(line)];
      to.positive[place_of(block, line, is_a)] = positive[static_cast<std::size_t>(line)];
    }
  }
}

[[gnu::always_inline]] inline __m256i load(const void* from) {
  return _mm256_loadu_si256(static_cast<const __m256i*>(from));
}

[[gnu::always_inline]] inline __m256i word(std::uint16_t x) {
  return _mm256_set1_epi16(static_cast<std::int16_t>(x));
}

/// The bits that are set in each 16.
[[gnu::always_inline]] inline __m256i counts_of(__m256i x) {
  const __m256i of_nibble = _mm256_setr_epi8(0, 1, 1, 2, 1, 2, 2, 3, 1, 2, 2, 3, 2, 3, 3, 4, 0, 1,
                                             1, 2, 1, 2, 2, 3, 1, 2, 2, 3, 2, 3, 3, 4);
  const __m256i nibble = _mm256_set1_epi8(15);
  const __m256i low = _mm256_shuffle_epi8(of_nibble, _mm256_and_si256(x, nibble));
  const __m256i high =
      _mm256_shuffle_epi8(of_nibble, _mm256_and_si256(_mm256_srli_epi16(x, 4), nibble));
  return _mm256_maddubs_epi16(_mm256_add_epi8(low, high), _mm256_set1_epi8(1));
}

/// Sixteen words, four of which become four of 64 bits.
struct Words {
  alignas(32) std::array<std::uint16_t, lines_of_panel> words;

  [[gnu::always_inline]] void store(__m256i x) {
    _mm256_store_si256(reinterpret_cast<__m256i*>(words.data()), x);
  }
  [[gnu::always_inline]] __m256i of(int v) const {
    return _mm256_cvtepu16_epi64(
        _mm_loadl_epi64(reinterpret_cast<const __m128i*>(words.data() + 4 * v)));
  }
};

/// The sum, negated, rounded to FP32 toward zero (results are normal numbers or zeros). Downward,
/// the difference's zero is the negative one: +0 negated.
[[gnu::always_inline]] inline __m256d finish(__m256d accumulator, __m256d offset) {
  const __m256i kept = _mm256_set1_epi64x(-(std::int64_t{1} << (fraction_bits - 23)));
  return _mm256_and_pd(_mm256_sub_pd(offset, accumulator), _mm256_castsi256_pd(kept));
}

/// Two rows of A and sixteen columns of B, block by block.
template <int BlockK>
class Rows {
 public:
  Rows(const Blocks& blocks, const Panel& a, const Panel& b, int first)
      : blocks_(blocks), a_(a), b_(b), first_(first) {}

  /// Sums are negated.
  using Sums = __m256d[rows_together][vectors];

  [[gnu::always_inline]] void add(Sums& sums) {
    __m256i largest = no_exponent();
    for (int i = 0; i < BlockK; ++i) include(i, largest);
    find_starts(0, largest);
    Sums accumulators;
    each([&](int r, int v) { accumulators[r][v] = start(r, v, sums[r][v]); });
    for (int block = 0; block < blocks_.count; ++block) {
      const int next = std::min(block + 1, blocks_.count - 1);
      const double* const of_a = &a_.values[place_of(block * BlockK, first_, true)];
      const double* const of_b = &b_.values[place_of(block * BlockK, 0, false)];
      largest = no_exponent();
#pragma GCC unroll 4
      for (int i = 0; i < BlockK; ++i) {
        multiply(of_a + i * rows_together, of_b + i * lines_of_panel, accumulators);
        include(next * BlockK + i, largest);
      }
      if (block == next) break;
      find_starts(next, largest);
      each([&](int r, int v) {
        accumulators[r][v] = start(r, v, finish(accumulators[r][v], offsets_[r][v]));
      });
    }
    each([&](int r, int v) { sums[r][v] = finish(accumulators[r][v], offsets_[r][v]); });
  }

 private:
  template <class Visit>
  [[gnu::always_inline]] static void each(const Visit& visit) {
#pragma GCC unroll 2
    for (int r = 0; r < rows_together; ++r) {
#pragma GCC unroll 4
      for (int v = 0; v < vectors; ++v) visit(r, v);
    }
  }

  [[gnu::always_inline]] static void multiply(const double* a, const double* b, Sums& sums) {
    __m256d columns[vectors];
#pragma GCC unroll 4
    for (int v = 0; v < vectors; ++v) columns[v] = _mm256_loadu_pd(b + 4 * v);
#pragma GCC unroll 2
    for (int r = 0; r < rows_together; ++r) {
      const __m256d row = _mm256_broadcast_sd(a + r);
#pragma GCC unroll 4
      for (int v = 0; v < vectors; ++v) sums[r][v] = _mm256_fmadd_pd(row, columns[v], sums[r][v]);
    }
  }

  /// The largest exponents of products of two rows (even bytes, odd bytes) and sixteen columns.
  [[gnu::always_inline]] static __m256i no_exponent() { return _mm256_set1_epi8(-128); }
  [[gnu::always_inline]] void include(int place, __m256i& largest) const {
    std::int32_t rows = 0;
    std::memcpy(&rows, &a_.exponents[2 * place_of(place, first_, true)], sizeof rows);
    largest = _mm256_max_epi8(largest,
                              _mm256_adds_epi8(_mm256_set1_epi32(rows),
                                               load(&b_.exponents[2 * place_of(place, 0, false)])));
  }

  /// E, as FP64's exponent fields, -127 where all products are zero (sums with a zero are -113 at
  /// most, those of two numbers -28 at least), and the number of negative products, and one more.
  [[gnu::always_inline]] void find_starts(int block, __m256i largest) {
    const __m256i none = _mm256_cmpgt_epi8(_mm256_set1_epi8(-64), largest);
    largest = _mm256_blendv_epi8(largest, _mm256_set1_epi8(-127), none);
    const __m256i b_negative = load(&b_.negative[place_of(block, 0, false)]);
    const __m256i b_positive = load(&b_.positive[place_of(block, 0, false)]);
#pragma GCC unroll 2
    for (int r = 0; r < rows_together; ++r) {
      const std::size_t row = place_of(block, first_ + r, true);
      const __m256i of_row = _mm256_srai_epi16(r == 0 ? _mm256_slli_epi16(largest, 8) : largest, 8);
      exponents_[r].store(_mm256_slli_epi16(_mm256_add_epi16(of_row, _mm256_set1_epi16(bias)), 4));
      const __m256i negative =
          _mm256_or_si256(_mm256_and_si256(word(a_.negative[row]), b_positive),
                          _mm256_and_si256(word(a_.positive[row]), b_negative));
      negatives_[r].store(_mm256_add_epi16(counts_of(negative), _mm256_set1_epi16(1)));
    }
  }

  /// What the accumulators of four columns begin at.
  [[gnu::always_inline]] __m256d start(int r, int v, __m256d negated_sum) {
    const __m256d magnitude = _mm256_andnot_pd(_mm256_set1_pd(-0.0), negated_sum);
    const __m256d products = _mm256_castsi256_pd(_mm256_slli_epi64(exponents_[r].of(v), 48));
    const __m256i field = _mm256_set1_epi64x(std::int64_t{0x7FF} << fraction_bits);
    const __m256i shift = _mm256_set1_epi64x(
        std::int64_t{fraction_bits - blocks_.kept_fraction_bits} << fraction_bits);
    const __m256i largest =
        _mm256_add_epi64(_mm256_castpd_si256(_mm256_max_pd(products, magnitude)), shift);
    const __m256i x = _mm256_or_si256(_mm256_and_si256(largest, field),
                                      _mm256_set1_epi64x(std::int64_t{1} << (fraction_bits - 1)));
    offsets_[r][v] = _mm256_castsi256_pd(x);
    const __m256i is_positive = _mm256_srli_epi64(_mm256_castpd_si256(negated_sum), 63);
    const __m256i low = _mm256_sub_epi64(negatives_[r].of(v), is_positive);
    return _mm256_fnmadd_pd(negated_sum, _mm256_set1_pd(nudge),
                            _mm256_castsi256_pd(_mm256_add_epi64(x, low)));
  }

  const Blocks& blocks_;
  const Panel &a_, &b_;
  const int first_;
  Words exponents_[rows_together], negatives_[rows_together];  // of the coming block
  Sums offsets_;                                               // X
};

template <int BlockK>
void add_blocks(const Blocks& blocks, const Panel& a, const Panel& b, const std::byte* from,
                std::int64_t from_stride, std::byte* to, std::int64_t to_stride) {
  for (int first = 0; first < lines_of_panel; first += rows_together) {
    Rows<BlockK> rows(blocks, a, b, first);
    __m256d sums[rows_together][vectors];
    for (int r = 0; r < rows_together; ++r) {
      for (int v = 0; v < vectors; ++v) {
        __m256d sum = _mm256_setzero_pd();
        if (from != nullptr) {
          const std::byte* const at = from + (first + r) * from_stride + 16 * v;
          sum = _mm256_cvtps_pd(_mm_loadu_ps(reinterpret_cast<const float*>(at)));
          const __m256d is_zero = _mm256_cmp_pd(sum, _mm256_setzero_pd(), _CMP_EQ_OQ);
          sum = _mm256_andnot_pd(is_zero, sum);  // -0 becomes +0
        }
        sums[r][v] = _mm256_xor_pd(sum, _mm256_set1_pd(-0.0));
      }
    }
    rows.add(sums);
    for (int r = 0; r < rows_together; ++r) {
      for (int v = 0; v < vectors; ++v) {
        const __m128 value = _mm256_cvtpd_ps(_mm256_xor_pd(sums[r][v], _mm256_set1_pd(-0.0)));
        const __m128 nan = _mm_cmpunord_ps(value, value);
        const __m128 canonical = _mm_castsi128_ps(_mm_set1_epi32(0x7FFFFFFF));
        _mm_storeu_ps(reinterpret_cast<float*>(to + (first + r) * to_stride + 16 * v),
                      _mm_blendv_ps(value, canonical, nan));
      }
    }
  }
}

void add_any_blocks(const Blocks& blocks, const Panel& a, const Panel& b, const std::byte* from,
                    std::int64_t from_stride, std::byte* to, std::int64_t to_stride) {
  const auto tile = blocks.block_k == 16  ? add_blocks<16>
                    : blocks.block_k == 8 ? add_blocks<8>
                                          : add_blocks<4>;
  tile(blocks, a, b, from, from_stride, to, to_stride);
}

}  // namespace

}  // namespace guardbit::emulator::half

#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif

namespace guardbit::emulator::half {

Functions functions_avx2() {
  if (!cpu::features().avx2_kernels) return {};
  return {pack, add_any_blocks};
}

}  // namespace guardbit::emulator::half

#else

namespace guardbit::emulator::half {
Functions functions_avx2() { return {}; }
}  // namespace guardbit::emulator::half

#endif
