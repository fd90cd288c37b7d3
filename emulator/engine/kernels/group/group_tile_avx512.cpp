#include <array>
#include <cstring>

#include "emulator/engine/cpu.hpp"
#include "emulator/engine/kernels/group/group_tile.hpp"

#if defined(__x86_64__)
#include <immintrin.h>

// GCC 12's own headers leave the operand of _mm512_undefined unset, and warn of it.
#pragma GCC diagnostic ignored "-Wuninitialized"
#if defined(__clang__)
#pragma clang attribute push(                                                     \
    __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx512vnni,fma"))), \
    apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx512f,avx512bw,avx512dq,avx512vl,avx512vnni,fma")
#endif

namespace guardbit::emulator::groups {

namespace {

constexpr int down = _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC;
constexpr int to_zero = _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC;
constexpr int vectors = tile_columns / 16;  // of 32-bit lanes
constexpr int and_or = 0xEA;                // (x & y) | z
constexpr int fraction_bits = 52, bias = exponent_bias;
constexpr double nudge = 1 + 0x1p-47;
constexpr std::int64_t exponent_field = std::int64_t{0x7FF} << fraction_bits;

/// As the high 12 bits of an FP64 number.
constexpr std::int64_t field_of(int exponent) {
  return std::int64_t{exponent + bias} << fraction_bits;
}

[[gnu::always_inline]] inline __m512i fields_of(__m512d x) {
  return _mm512_and_si512(_mm512_castpd_si512(x), _mm512_set1_epi64(exponent_field));
}

/// Even and odd columns of each vector of 16.
struct Sums {
  __m512d of[tile_rows][vectors][2];
};

template <class T>
[[gnu::always_inline]] inline T read(const std::byte* from) {
  T x;
  std::memcpy(&x, from, sizeof x);
  return x;
}

/// The group's sums S and 1.5 * 2^20, of even or odd columns.
[[gnu::always_inline]] inline __m512d numbers_of(__m512i dots, int parity) {
  return _mm512_castsi512_pd(
      parity == 0 ? _mm512_slli_epi64(dots, 32)
                  : _mm512_and_si512(dots, _mm512_set1_epi64(std::int64_t{-1} << 32)));
}

template <int Quads>
struct Steps {
  static constexpr std::ptrdiff_t a_elements = Quads * 4 * tile_rows, a_scales = 8 * tile_rows,
                                  a_words = 4 * tile_rows;
  static constexpr std::ptrdiff_t b_elements = Quads * 4 * tile_columns,
                                  b_scales = 2 * 8 * tile_columns, b_words = 4 * tile_columns;
};

/// The panels from block to block.
template <int Quads>
void advance(Panel& a, Panel& b) {
  using S = Steps<Quads>;
  a.elements += groups_of_block * S::a_elements;
  a.scales += groups_of_block * S::a_scales;
  a.starts += groups_of_block * S::a_words;
  a.nonzero += groups_of_block * S::a_words;
  a.exponents += groups_of_block * S::a_words;
  ++a.ranges;
  b.elements += groups_of_block * S::b_elements;
  b.scales += groups_of_block * S::b_scales;
  b.nonzero += groups_of_block * S::b_words;
  b.exponents += groups_of_block * S::b_words;
  ++b.ranges;
}

/// The high word of 2^exponent, doubled.
[[gnu::always_inline]] inline __m512i word(int exponent) {
  return _mm512_set1_epi32(
      static_cast<std::int32_t>(static_cast<std::uint32_t>(exponent + bias) << 21));
}

/// What the claims say of a block.
enum class Kind {
  /// claim 2: no term is cut; results are FP32's normal numbers or exact
  uncut,
  /// claim 3: terms may be cut; exponents are those of FP32's normal numbers
  normal,
  /// neither
  general
};
constexpr int normal_exponent = -126;
/// Of the word 1.5 * 2^20 + S if S is not negative; else it is one less, since |S| < 2^16.
constexpr int third_byte = first_sum >> 16 & 0xFF;

/// The high word of a number, without its sign, compares as the number does; zeros, infinities and
/// NaNs count as large from below, as small from above.
[[gnu::always_inline]] inline Kind kind_of(const ScaleRule& rule, const Panel& a, const Panel& b,
                                           const Sums& sums) {
  const int lowest = a.ranges->lowest + b.ranges->lowest;
  const int highest = a.ranges->highest + b.ranges->highest;
  const int reach = kept_fraction_bits - rule.fraction_bits;
  if (lowest > highest) return Kind::uncut;  // nothing is added
  if (lowest < rule.fraction_bits - 149 || highest > 112) return Kind::general;
  const Kind if_cut = lowest < normal_exponent ? Kind::general : Kind::normal;
  const __m512i one_exponent = _mm512_set1_epi32(1 << 21);
  __m512i smallest = _mm512_set1_epi32(-1), largest = _mm512_setzero_si512();
#pragma GCC unroll 4
  for (int r = 0; r < tile_rows; ++r) {
#pragma GCC unroll 2
    for (int v = 0; v < vectors; ++v) {
      const __m512d* const pair = sums.of[r][v];
      const __m512i high = _mm512_castps_si512(
          _mm512_mask_movehdup_ps(_mm512_castpd_ps(pair[1]), 0x5555, _mm512_castpd_ps(pair[0])));
      const __m512i magnitudes = _mm512_slli_epi32(high, 1);
      largest = _mm512_max_epu32(largest, _mm512_add_epi32(magnitudes, one_exponent));
      smallest = _mm512_min_epu32(smallest, _mm512_sub_epi32(magnitudes, _mm512_set1_epi32(1)));
    }
  }
  if (_mm512_cmpge_epu32_mask(largest, word(127)) != 0) return Kind::general;
  const bool is_uncut =
      highest - lowest <= reach &&
      _mm512_cmpge_epu32_mask(largest, word(lowest + reach + 2)) == 0 &&
      _mm512_cmplt_epu32_mask(smallest,
                              _mm512_sub_epi32(word(highest - 12), _mm512_set1_epi32(1))) == 0;
  return is_uncut ? Kind::uncut : if_cut;
}

/// FP32's 23 fraction bits (claim 3).
[[gnu::always_inline]] inline __m512d without_low_bits(__m512d x) {
  const __m512i kept = _mm512_set1_epi64(-(std::int64_t{1} << (fraction_bits - 23)));
  return _mm512_castsi512_pd(_mm512_and_si512(_mm512_castpd_si512(x), kept));
}

template <int Quads>
[[gnu::always_inline]] inline void add_uncut_block(const Panel& a, const Panel& b, Sums& sums) {
  using S = Steps<Quads>;
#pragma GCC unroll 1
  for (int g = 0; g < groups_of_block; ++g) {
    const std::byte* const a_elements = a.elements + g * S::a_elements;
    const std::byte* const b_elements = b.elements + g * S::b_elements;
    __m512i dots[tile_rows][vectors];
#pragma GCC unroll 4
    for (int r = 0; r < tile_rows; ++r) {
#pragma GCC unroll 2
      for (int v = 0; v < vectors; ++v)
        dots[r][v] = _mm512_set1_epi32(read<std::int32_t>(a.starts + g * S::a_words + 4 * r));
    }
#pragma GCC unroll 8
    for (int q = 0; q < Quads; ++q) {
      __m512i columns[vectors];
#pragma GCC unroll 2
      for (int v = 0; v < vectors; ++v)
        columns[v] = _mm512_loadu_si512(b_elements + (q * vectors + v) * 64);
#pragma GCC unroll 4
      for (int r = 0; r < tile_rows; ++r) {
        const __m512i row =
            _mm512_set1_epi32(read<std::int32_t>(a_elements + (q * tile_rows + r) * 4));
#pragma GCC unroll 2
        for (int v = 0; v < vectors; ++v)
          dots[r][v] = _mm512_dpbusd_epi32(dots[r][v], columns[v], row);
      }
    }
#pragma GCC unroll 2
    for (int v = 0; v < vectors; ++v) {
#pragma GCC unroll 2
      for (int p = 0; p < 2; ++p) {
        const std::byte* const at = b.scales + g * S::b_scales + (v * 2 + p) * 64;
        const __m512d scale = _mm512_loadu_pd(at);
        const __m512d start = _mm512_loadu_pd(at + 8 * tile_columns);
#pragma GCC unroll 4
        for (int r = 0; r < tile_rows; ++r) {
          const __m512d scaled = _mm512_fmadd_pd(numbers_of(dots[r][v], p), scale, start);
          const __m512d row = _mm512_set1_pd(read<double>(a.scales + g * S::a_scales + 8 * r));
          sums.of[r][v][p] = _mm512_fmadd_pd(scaled, row, sums.of[r][v][p]);
        }
      }
    }
  }
#pragma GCC unroll 4
  for (int r = 0; r < tile_rows; ++r) {
#pragma GCC unroll 2
    for (int v = 0; v < vectors; ++v) {
#pragma GCC unroll 2
      for (int p = 0; p < 2; ++p) {
        sums.of[r][v][p] = without_low_bits(sums.of[r][v][p]);
      }
    }
  }
}

/// To FP32's numbers toward zero, 2^128 and more to infinity, zeros to +0.
[[gnu::always_inline]] inline __m512d rounded(__m512d exact) {
  const __m512d kept = _mm512_cvtps_pd(_mm512_cvt_roundpd_ps(exact, to_zero));
  const __mmask8 over =
      _mm512_cmp_pd_mask(_mm512_abs_pd(exact), _mm512_set1_pd(0x1p128), _CMP_GE_OQ);
  const __m512i infinite =
      _mm512_mask_ternarylogic_epi64(_mm512_castpd_si512(kept), over, _mm512_set1_epi64(INT64_MIN),
                                     _mm512_set1_epi64(exponent_field), and_or);
  return _mm512_add_pd(_mm512_castsi512_pd(infinite), _mm512_setzero_pd());
}

/// A block of 16 columns whose terms may be cut: its groups' sums times B's scales, of even and odd
/// columns; for every column E + 1023 of the groups, e0's at least, and the number of negative
/// ones.
struct CutBlock {
  __m512d scaled[tile_rows][groups_of_block][2];
  __m512i largest[tile_rows], negatives[tile_rows];
};

/// The scales of a block's rows, nudged.
struct NudgedScales {
  alignas(64) double of[groups_of_block * tile_rows];

  explicit NudgedScales(const std::byte* scales) {
    for (int i = 0; i < groups_of_block * tile_rows; i += 8)
      _mm512_store_pd(of + i,
                      _mm512_mul_pd(_mm512_loadu_pd(scales + 8 * i), _mm512_set1_pd(nudge)));
  }
};

template <int Quads, Kind kind>
[[gnu::always_inline]] inline void find_terms(const Panel& a, const Panel& b, int v,
                                              CutBlock& block) {
  using S = Steps<Quads>;
#pragma GCC unroll 4
  for (int r = 0; r < tile_rows; ++r) {
    block.largest[r] =
        _mm512_set1_epi32((kind == Kind::normal ? normal_exponent : zero_exponent) + bias);
    block.negatives[r] = _mm512_set1_epi32(groups_of_block * third_byte);
  }
#pragma GCC unroll 4
  for (int g = 0; g < groups_of_block; ++g) {
    __m512i dots[tile_rows];
#pragma GCC unroll 4
    for (int r = 0; r < tile_rows; ++r)
      dots[r] = _mm512_set1_epi32(read<std::int32_t>(a.starts + g * S::a_words + 4 * r));
#pragma GCC unroll 8
    for (int q = 0; q < Quads; ++q) {
      const __m512i columns =
          _mm512_loadu_si512(b.elements + g * S::b_elements + (q * vectors + v) * 64);
#pragma GCC unroll 4
      for (int r = 0; r < tile_rows; ++r) {
        const __m512i row = _mm512_set1_epi32(
            read<std::int32_t>(a.elements + g * S::a_elements + (q * tile_rows + r) * 4));
        dots[r] = _mm512_dpbusd_epi32(dots[r], columns, row);
      }
    }
    const std::byte* const at = b.scales + g * S::b_scales + v * 128;
    const __m512d scales[2] = {_mm512_loadu_pd(at), _mm512_loadu_pd(at + 64)};
    const __m512d starts[2] = {_mm512_loadu_pd(at + 8 * tile_columns),
                               _mm512_loadu_pd(at + 8 * tile_columns + 64)};
    const __m512i exponents = _mm512_loadu_si512(b.exponents + g * S::b_words + v * 64);
    const __m512i nonzero = _mm512_loadu_si512(b.nonzero + g * S::b_words + v * 64);
#pragma GCC unroll 4
    for (int r = 0; r < tile_rows; ++r) {
      const int row = g * tile_rows + r;
      const __m512i row_nonzero = _mm512_set1_epi32(read<std::int32_t>(a.nonzero + 4 * row));
      const __mmask16 counts = _mm512_test_epi32_mask(nonzero, row_nonzero);
      block.largest[r] = _mm512_mask_max_epi32(
          block.largest[r], counts, block.largest[r],
          _mm512_add_epi32(exponents,
                           _mm512_set1_epi32(read<std::int32_t>(a.exponents + 4 * row))));
      block.negatives[r] =
          _mm512_dpbusd_epi32(block.negatives[r], dots[r], _mm512_set1_epi32(0x00FF0000));
#pragma GCC unroll 2
      for (int p = 0; p < 2; ++p)
        block.scaled[r][g][p] = _mm512_fmadd_pd(numbers_of(dots[r], p), scales[p], starts[p]);
    }
  }
}

/// c and the terms of the even or odd columns of a row, cut and added.
template <Kind kind>
[[gnu::always_inline]] inline __m512d cut_and_add(const CutBlock& block, int r, int p,
                                                  const __m512d (&scales)[groups_of_block],
                                                  __m512d c) {
  const __m512i of_groups =
      p == 0 ? _mm512_slli_epi64(block.largest[r], 52)
             : fields_of(_mm512_castsi512_pd(_mm512_slli_epi64(block.largest[r], 20)));
  const __m512i negatives =
      p == 0 ? _mm512_and_si512(block.negatives[r], _mm512_set1_epi64(0xFFFFFFFF))
             : _mm512_srli_epi64(block.negatives[r], 32);
  const __m512i c_bits = _mm512_castpd_si512(c);
  __m512i of_c = fields_of(c);
  // A nonzero addend's exponent is -126 at least, as a normal block's is; an infinity's may be any.
  if (kind == Kind::general)
    of_c = _mm512_maskz_max_epi64(_mm512_test_epi64_mask(c_bits, c_bits), of_c,
                                  _mm512_set1_epi64(field_of(normal_exponent)));
  const __m512i above =
      _mm512_set1_epi64((std::int64_t{fraction_bits - kept_fraction_bits} << fraction_bits) |
                        (std::int64_t{1} << (fraction_bits - 1)));
  const __m512i offset = _mm512_add_epi64(_mm512_max_epi64(of_groups, of_c), above);
  const __m512i start =
      _mm512_add_epi64(_mm512_add_epi64(offset, negatives), _mm512_srli_epi64(c_bits, 63));
  __m512d sum = _mm512_fmadd_round_pd(c, _mm512_set1_pd(nudge), _mm512_castsi512_pd(start), down);
#pragma GCC unroll 4
  for (int g = 0; g < groups_of_block; ++g)
    sum = _mm512_fmadd_round_pd(block.scaled[r][g][p], scales[g], sum, down);
  const __m512d exact = _mm512_sub_pd(sum, _mm512_castsi512_pd(offset));
  return kind == Kind::normal ? without_low_bits(exact) : rounded(exact);
}

template <int Quads, Kind kind>
[[gnu::noinline]] void add_cut_block(const Panel& a, const Panel& b, Sums& sums) {
  const NudgedScales rows(a.scales);
  for (int v = 0; v < vectors; ++v) {
    CutBlock block;
    find_terms<Quads, kind>(a, b, v, block);
#pragma GCC unroll 4
    for (int r = 0; r < tile_rows; ++r) {
      __m512d scales[groups_of_block];
#pragma GCC unroll 4
      for (int g = 0; g < groups_of_block; ++g)
        scales[g] = _mm512_set1_pd(rows.of[g * tile_rows + r]);
#pragma GCC unroll 2
      for (int p = 0; p < 2; ++p)
        sums.of[r][v][p] = cut_and_add<kind>(block, r, p, scales, sums.of[r][v][p]);
    }
  }
}

[[gnu::always_inline]] inline __m512i evens_then_odds() {
  return _mm512_set_epi32(15, 13, 11, 9, 7, 5, 3, 1, 14, 12, 10, 8, 6, 4, 2, 0);
}
[[gnu::always_inline]] inline __m512i in_turns() {
  return _mm512_set_epi32(15, 7, 14, 6, 13, 5, 12, 4, 11, 3, 10, 2, 9, 1, 8, 0);
}

[[gnu::always_inline]] inline void load(const std::byte* from, __m512d (&sums)[2]) {
  const __m512 parted = _mm512_permutexvar_ps(
      evens_then_odds(), _mm512_loadu_ps(reinterpret_cast<const float*>(from)));
  sums[0] = _mm512_cvtps_pd(_mm512_castps512_ps256(parted));
  sums[1] = _mm512_cvtps_pd(_mm512_extractf32x8_ps(parted, 1));
  for (__m512d& sum : sums) sum = _mm512_add_pd(sum, _mm512_setzero_pd());  // -0 becomes +0
}
[[gnu::always_inline]] inline void store(std::byte* to, const __m512d (&sums)[2]) {
  const __m512 parted = _mm512_insertf32x8(_mm512_castps256_ps512(_mm512_cvtpd_ps(sums[0])),
                                           _mm512_cvtpd_ps(sums[1]), 1);
  const __m512 values = _mm512_permutexvar_ps(in_turns(), parted);
  const __mmask16 nan = _mm512_cmp_ps_mask(values, values, _CMP_UNORD_Q);
  _mm512_storeu_si512(
      to, _mm512_mask_mov_epi32(_mm512_castps_si512(values), nan, _mm512_set1_epi32(0x7FFFFFFF)));
}

template <int Quads>
void add_blocks(const ScaleRule& rule, const Panel& a_panel, const Panel& b_panel,
                std::int64_t blocks, const std::byte* from, std::int64_t from_stride, std::byte* to,
                std::int64_t to_stride) {
  Panel a = a_panel, b = b_panel;
  Sums sums;
#pragma GCC unroll 4
  for (int r = 0; r < tile_rows; ++r) {
#pragma GCC unroll 2
    for (int v = 0; v < vectors; ++v) {
      sums.of[r][v][0] = sums.of[r][v][1] = _mm512_setzero_pd();
      if (from != nullptr) load(from + r * from_stride + 64 * v, sums.of[r][v]);
    }
  }
  for (std::int64_t block = 0; block < blocks; ++block) {
    if (const Kind kind = kind_of(rule, a, b, sums); kind == Kind::uncut) {
      add_uncut_block<Quads>(a, b, sums);
    } else {
      Sums copy = sums;  // so that the others may live in registers
      (kind == Kind::normal ? add_cut_block<Quads, Kind::normal>
                            : add_cut_block<Quads, Kind::general>)(a, b, copy);
      sums = copy;
    }
    advance<Quads>(a, b);
  }
#pragma GCC unroll 4
  for (int r = 0; r < tile_rows; ++r) {
#pragma GCC unroll 2
    for (int v = 0; v < vectors; ++v) store(to + r * to_stride + 64 * v, sums.of[r][v]);
  }
}

void convert(const GroupLines& lines, const std::byte* table, std::uint32_t* nonzero,
             std::int32_t* sums) {
  const auto bytes_of_codes = read<__m128i>(table);
  __m128i total = _mm_setzero_si128(), bits = total;
  for (int q = 0; q < lines.quads; ++q) {
    std::byte* const at = lines.elements + q * lines.quad_step;
    const __m128i codes = _mm_and_si128(read<__m128i>(at), _mm_set1_epi8(15));
    const __m128i bytes = _mm_shuffle_epi8(bytes_of_codes, codes);
    std::memcpy(at, &bytes, sizeof bytes);
    total = _mm_add_epi8(total, bytes);
    const __mmask16 counts = _mm_test_epi8_mask(codes, _mm_set1_epi8(7));
    bits = _mm_or_si128(bits, _mm_maskz_set1_epi8(counts, static_cast<char>(1 << q)));
  }
  std::memcpy(nonzero, &bits, sizeof bits);
  const __m128i of_lines = _mm_dpbusd_epi32(_mm_setzero_si128(), _mm_set1_epi8(1), total);
  std::memcpy(sums, &of_lines, sizeof of_lines);
}

}  // namespace

}  // namespace guardbit::emulator::groups

#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif

namespace guardbit::emulator::groups {

Functions functions_avx512(int places_of_group) {
  const cpu::Features& cpu = cpu::features();
  if (!cpu.avx512_kernels || !cpu.avx512_vnni) return {};
  if (places_of_group == 16) return {add_blocks<4>, convert};
  if (places_of_group == 32) return {add_blocks<8>, convert};
  return {};
}

}  // namespace guardbit::emulator::groups

#else

namespace guardbit::emulator::groups {
Functions functions_avx512(int) { return {}; }
}  // namespace guardbit::emulator::groups

#endif
