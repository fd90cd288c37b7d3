#include <array>
#include <cstring>
#include <type_traits>

#include "emulator/cpu.hpp"
#include "emulator/kernels/half_tile.hpp"

#if defined(__x86_64__)
#include <immintrin.h>
#pragma GCC push_options
#pragma GCC target("avx2,fma,f16c")

namespace guardbit::emulator::half {

namespace {

constexpr int vectors = lines_of_panel / 4;
constexpr double nudge = 1 + 0x1p-30;
constexpr int fraction_bits = 52, bias = 1023;
constexpr std::int16_t exponent_of_zero = -8000;

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
        to.exponents[there] =
            is_zero ? exponent_of_zero : static_cast<std::int16_t>(exponent < -14 ? -14 : exponent);
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

/// The four words of vector v, each at bit 48 or 0 of 64.
template <int v>
[[gnu::always_inline]] inline __m256i spread(__m256i words, bool to_top) {
  const __m256i four = _mm256_permute4x64_epi64(words, v * 0x55);
  const __m256i top = _mm256_setr_epi8(-1, -1, -1, -1, -1, -1, 0, 1, -1, -1, -1, -1, -1, -1, 2, 3,
                                       -1, -1, -1, -1, -1, -1, 4, 5, -1, -1, -1, -1, -1, -1, 6, 7);
  const __m256i bottom =
      _mm256_setr_epi8(0, 1, -1, -1, -1, -1, -1, -1, 2, 3, -1, -1, -1, -1, -1, -1, 4, 5, -1, -1, -1,
                       -1, -1, -1, 6, 7, -1, -1, -1, -1, -1, -1);
  return _mm256_shuffle_epi8(four, to_top ? top : bottom);
}

/// Two rows of a tile: X of each vector, and the sums.
struct Rows {
  __m256d sums[rows_together][vectors], offsets[rows_together][vectors];
};

/// What the accumulators of four columns begin at.
template <int v>
[[gnu::always_inline]] inline __m256d start(const Blocks& blocks, __m256i exponents,
                                            __m256i negatives, __m256d sum, __m256d& offset) {
  const __m256d magnitude = _mm256_andnot_pd(_mm256_set1_pd(-0.0), sum);
  const __m256d products = _mm256_castsi256_pd(spread<v>(exponents, true));
  const __m256i field = _mm256_set1_epi64x(std::int64_t{0x7FF} << fraction_bits);
  const __m256i shift =
      _mm256_set1_epi64x(std::int64_t{fraction_bits - blocks.kept_fraction_bits} << fraction_bits);
  const __m256i largest =
      _mm256_add_epi64(_mm256_castpd_si256(_mm256_max_pd(products, magnitude)), shift);
  const __m256i x = _mm256_or_si256(_mm256_and_si256(largest, field),
                                    _mm256_set1_epi64x(std::int64_t{1} << (fraction_bits - 1)));
  offset = _mm256_castsi256_pd(x);
  const __m256i sign = _mm256_srli_epi64(_mm256_castpd_si256(sum), 63);
  const __m256i low = _mm256_add_epi64(spread<v>(negatives, false), sign);
  return _mm256_fmadd_pd(sum, _mm256_set1_pd(nudge), _mm256_castsi256_pd(_mm256_add_epi64(x, low)));
}

/// Rounded to FP32 toward zero (results are normal numbers or zeros). The difference is taken the
/// other way round, whose zero, downward, is the negative one.
[[gnu::always_inline]] inline __m256d finish(__m256d accumulator, __m256d offset) {
  const __m256d negated = _mm256_sub_pd(offset, accumulator);
  const __m256d exact = _mm256_xor_pd(negated, _mm256_set1_pd(-0.0));
  const __m256i kept = _mm256_set1_epi64x(-(std::int64_t{1} << (fraction_bits - 23)));
  return _mm256_and_pd(exact, _mm256_castsi256_pd(kept));
}

[[gnu::always_inline]] inline __m256i largest_exponents(const std::int16_t* a,
                                                        const std::int16_t* b, int count, int r) {
  __m256i largest = _mm256_set1_epi16(-127);
  for (int i = 0; i < count; ++i)
    largest =
        _mm256_max_epi16(largest, _mm256_add_epi16(_mm256_set1_epi16(a[i * rows_together + r]),
                                                   load(b + i * lines_of_panel)));
  return _mm256_slli_epi16(_mm256_add_epi16(largest, _mm256_set1_epi16(bias)), 4);
}

template <int BlockK>
[[gnu::always_inline]] inline void add_block(const Blocks& blocks, const Panel& a, const Panel& b,
                                             int first, int block, Rows& rows) {
  const std::size_t of_a = place_of(block * BlockK, first, true);
  const std::size_t of_b = place_of(block * BlockK, 0, false);
  const std::size_t signs_of_a = place_of(block, first, true);
  const std::size_t signs_of_b = place_of(block, 0, false);
  const __m256i b_negative = load(&b.negative[signs_of_b]);
  const __m256i b_positive = load(&b.positive[signs_of_b]);
  __m256d accumulators[rows_together][vectors];
#pragma GCC unroll 2
  for (int r = 0; r < rows_together; ++r) {
    const std::size_t row = signs_of_a + static_cast<std::size_t>(r);
    const __m256i negatives =
        counts_of(_mm256_or_si256(_mm256_and_si256(word(a.negative[row]), b_positive),
                                  _mm256_and_si256(word(a.positive[row]), b_negative)));
    const __m256i exponents = largest_exponents(&a.exponents[of_a], &b.exponents[of_b], BlockK, r);
    const auto begin = [&](auto v) {
      accumulators[r][v] =
          start<v>(blocks, exponents, negatives, rows.sums[r][v], rows.offsets[r][v]);
    };
    begin(std::integral_constant<int, 0>{});
    begin(std::integral_constant<int, 1>{});
    begin(std::integral_constant<int, 2>{});
    begin(std::integral_constant<int, 3>{});
  }
#pragma GCC unroll 4
  for (int i = 0; i < BlockK; ++i) {
    __m256d columns[vectors];
#pragma GCC unroll 4
    for (int v = 0; v < vectors; ++v)
      columns[v] =
          _mm256_loadu_pd(&b.values[of_b + static_cast<std::size_t>(i * lines_of_panel + 4 * v)]);
#pragma GCC unroll 2
    for (int r = 0; r < rows_together; ++r) {
      const __m256d row =
          _mm256_broadcast_sd(&a.values[of_a + static_cast<std::size_t>(i * rows_together + r)]);
#pragma GCC unroll 4
      for (int v = 0; v < vectors; ++v)
        accumulators[r][v] = _mm256_fmadd_pd(row, columns[v], accumulators[r][v]);
    }
  }
#pragma GCC unroll 2
  for (int r = 0; r < rows_together; ++r) {
#pragma GCC unroll 4
    for (int v = 0; v < vectors; ++v)
      rows.sums[r][v] = finish(accumulators[r][v], rows.offsets[r][v]);
  }
}

template <int BlockK>
void add_blocks(const Blocks& blocks, const Panel& a, const Panel& b, const std::byte* from,
                std::int64_t from_stride, std::byte* to, std::int64_t to_stride) {
  for (int first = 0; first < lines_of_panel; first += rows_together) {
    Rows rows;
    for (int r = 0; r < rows_together; ++r) {
      for (int v = 0; v < vectors; ++v) {
        __m256d sum = _mm256_setzero_pd();
        if (from != nullptr) {
          const std::byte* const at = from + (first + r) * from_stride + 16 * v;
          sum = _mm256_cvtps_pd(_mm_loadu_ps(reinterpret_cast<const float*>(at)));
          const __m256d is_zero = _mm256_cmp_pd(sum, _mm256_setzero_pd(), _CMP_EQ_OQ);
          sum = _mm256_andnot_pd(is_zero, sum);  // -0 becomes +0
        }
        rows.sums[r][v] = sum;
      }
    }
    for (int block = 0; block < blocks.count; ++block)
      add_block<BlockK>(blocks, a, b, first, block, rows);
    for (int r = 0; r < rows_together; ++r) {
      for (int v = 0; v < vectors; ++v) {
        const __m128 value = _mm256_cvtpd_ps(rows.sums[r][v]);
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

#pragma GCC pop_options

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
