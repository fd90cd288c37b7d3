#include <immintrin.h>

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <type_traits>
#include <utility>

#include "formats/conversion/kernels/conversion_kernels.hpp"
#include "formats/conversion/kernels/philox_keys.hpp"

// What follows is compiled for the instruction set,
#include "formats/support/vectors/target_avx512.inc"
// these templates among it.
#include "formats/conversion/kernels/kernels_of.hpp"
#include "formats/conversion/kernels/lanes_vectors.hpp"
#include "formats/support/vectors/avx512.hpp"

namespace guardbit::formats::kernels {
namespace {

/// A table of 256 bytes in registers, looked up for 64 bytes at a time.
class BytePermutation {
 public:
  explicit BytePermutation(const ByteTable& table, int byte) {
    alignas(64) std::array<std::uint8_t, 256> bytes{};
    for (std::size_t i = 0; i < bytes.size(); ++i)
      bytes[i] = static_cast<std::uint8_t>(table[i] >> (8 * byte));
    for (std::size_t part = 0; part < 4; ++part)
      parts_[part] = _mm512_load_si512(bytes.data() + 64 * part);
  }

  __m512i operator()(__m512i codes) const {
    const __m512i low = _mm512_permutex2var_epi8(parts_[0], codes, parts_[1]);
    const __m512i high = _mm512_permutex2var_epi8(parts_[2], codes, parts_[3]);
    return _mm512_mask_mov_epi8(low, _mm512_movepi8_mask(codes), high);
  }

 private:
  __m512i parts_[4];
};

void put(std::byte* at, __m512i x, bool stream) {
  if (stream) {
    _mm512_stream_si512(static_cast<__m512i*>(static_cast<void*>(at)), x);
  } else {
    _mm512_storeu_si512(at, x);
  }
}

/// Bytes of even and odd places, as one vector of pairs in order and the next one. Unpacking works
/// within 128-bit parts, so the operands' 64-bit parts are put where it finds them.
void put_pairs(std::byte* at, __m512i even, __m512i odd, bool stream) {
  const __m512i order = _mm512_setr_epi64(0, 4, 1, 5, 2, 6, 3, 7);
  const __m512i e = _mm512_permutexvar_epi64(order, even);
  const __m512i o = _mm512_permutexvar_epi64(order, odd);
  put(at, _mm512_unpacklo_epi8(e, o), stream);
  put(at + 64, _mm512_unpackhi_epi8(e, o), stream);
}

void look_up_bytes(const ByteTable& table, int container, const std::byte* codes,
                   std::byte* results, std::size_t count, bool stream) {
  const BytePermutation byte0(table, 0);
  const BytePermutation byte1(table, 1);
  const auto load = [&](std::size_t i) { return _mm512_loadu_si512(codes + i); };
  if (container == 8) {
    for (std::size_t i = 0; i < count; i += 64) put(results + i, byte0(load(i)), stream);
  } else if (container == 16) {
    for (std::size_t i = 0; i < count; i += 64) {
      const __m512i c = load(i);
      put_pairs(results + 2 * i, byte0(c), byte1(c), stream);
    }
  } else {
    const BytePermutation byte2(table, 2);
    const BytePermutation byte3(table, 3);
    for (std::size_t i = 0; i < count; i += 64) {
      const __m512i c = load(i);
      const __m512i order = _mm512_setr_epi64(0, 4, 1, 5, 2, 6, 3, 7);
      const __m512i b0 = _mm512_permutexvar_epi64(order, byte0(c));
      const __m512i b1 = _mm512_permutexvar_epi64(order, byte1(c));
      const __m512i b2 = _mm512_permutexvar_epi64(order, byte2(c));
      const __m512i b3 = _mm512_permutexvar_epi64(order, byte3(c));
      const auto put_words = [&](std::byte* at, __m512i low, __m512i high) {
        const __m512i l = _mm512_permutexvar_epi64(order, low);
        const __m512i h = _mm512_permutexvar_epi64(order, high);
        put(at, _mm512_unpacklo_epi16(l, h), stream);
        put(at + 64, _mm512_unpackhi_epi16(l, h), stream);
      };
      put_words(results + 4 * i, _mm512_unpacklo_epi8(b0, b1), _mm512_unpacklo_epi8(b2, b3));
      put_words(results + 4 * i + 128, _mm512_unpackhi_epi8(b0, b1), _mm512_unpackhi_epi8(b2, b3));
    }
  }
}

/// Bits of a register that hold 64 codes of a width.
__mmask64 dense_mask(int width) { return (__mmask64{1} << (8 * width)) - 1; }

/// For each width below 8 the places of the first `width` bytes of each 64-bit lane, in order.
constexpr auto closing_orders = [] {
  std::array<std::array<std::uint8_t, 64>, 8> orders{};
  for (std::size_t width = 1; width < orders.size(); ++width) {
    for (std::size_t i = 0; i < 8 * width; ++i)
      orders[width][i] = static_cast<std::uint8_t>(i / width * 8 + i % width);
  }
  return orders;
}();

/// Products by powers of two bring neighbours together: pairs of bytes, pairs of those, halves of a
/// 64-bit lane. Then each lane's `width` bytes close up.
void pack_bytes(int width, const std::byte* codes, std::byte* dense, std::size_t count) {
  const auto second = [](int shift) { return 1 << shift; };
  const __m512i pairs =
      _mm512_set1_epi16(static_cast<short>(second(width) << 8 | 1));  // two bytes: 1 and 2^width
  const __m512i fours = _mm512_set1_epi32(second(2 * width) << 16 | 1);
  const __m128i apart = _mm_cvtsi32_si128(32 - 4 * width);
  const __m512i low = _mm512_set1_epi64(0xFFFFFFFF);
  const __m512i closed = _mm512_loadu_si512(closing_orders[static_cast<std::size_t>(width)].data());
  const std::byte* const end = dense + count / 8 * static_cast<std::size_t>(width);
  for (std::size_t i = 0; i < count; i += 64) {
    __m512i x = _mm512_loadu_si512(codes + i);
    x = _mm512_maddubs_epi16(pairs, x);
    x = _mm512_madd_epi16(x, fours);
    x = _mm512_or_si512(_mm512_and_si512(x, low),
                        _mm512_srl_epi64(_mm512_andnot_si512(low, x), apart));
    x = _mm512_permutexvar_epi8(closed, x);
    // A whole register, whose upper part the next one overwrites, where it does not pass the end.
    if (end - dense >= 64) {
      _mm512_storeu_si512(dense, x);
    } else {
      _mm512_mask_storeu_epi8(dense, dense_mask(width), x);
    }
    dense += 8 * width;
  }
}

/// The other way: each lane gets its bytes, and each byte of it the 8 bits from its code on.
void unpack_bytes(int width, const std::byte* dense, std::byte* codes, std::size_t count) {
  const auto w = static_cast<std::size_t>(width);
  alignas(64) std::array<std::uint8_t, 64> order{};
  alignas(64) std::array<std::uint8_t, 64> shifts{};
  for (std::size_t i = 0; i < order.size(); ++i) {
    order[i] = static_cast<std::uint8_t>(i / 8 * w + i % 8);
    shifts[i] = static_cast<std::uint8_t>(i % 8 * w);
  }
  const __m512i open = _mm512_load_si512(order.data());
  const __m512i shift = _mm512_load_si512(shifts.data());
  const __m512i mask = _mm512_set1_epi8(static_cast<char>((1 << width) - 1));
  for (std::size_t i = 0; i < count; i += 64) {
    const __m512i x = _mm512_maskz_loadu_epi8(dense_mask(width), dense);
    const __m512i lanes = _mm512_permutexvar_epi8(open, x);
    _mm512_storeu_si512(codes + i,
                        _mm512_and_si512(_mm512_multishift_epi64_epi8(shift, lanes), mask));
    dense += 8 * width;
  }
}

constexpr Kernels make_row() {
  Kernels made = kernels_of<VectorLanes<vectors::Avx512>>("avx512");
  made.look_up = look_up_bytes;
  made.looks_up_quickly = true;
  made.pack = pack_bytes;
  made.unpack = unpack_bytes;
  return made;
}
constexpr Kernels row = make_row();

}  // namespace
const Kernels* const avx512 = &row;
}  // namespace guardbit::formats::kernels

#include "formats/support/vectors/target_end.inc"
