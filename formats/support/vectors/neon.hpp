#pragma once

#include <arm_neon.h>

#include <cstdint>

#include "formats/support/vectors/vector.hpp"

namespace guardbit::formats::vectors {

/// NEON as every AArch64 CPU has it, with Avx2's members; and dot products of bytes, which not
/// every one has.
struct Neon : Vectors<16> {
  static constexpr bool names_rounding = false, nans_as_x86 = false;

  /// The thread must round down, or toward zero, which is the same above zero.
  static Doubles fma_down(Doubles a, Doubles b, Doubles c) { return fma(a, b, c); }
  static Floats fma_down(Floats a, Floats b, Floats c) { return fma(a, b, c); }
  static Doubles fma(Doubles a, Doubles b, Doubles c) {
    return as<Doubles>(vfmaq_f64(as<float64x2_t>(c), as<float64x2_t>(a), as<float64x2_t>(b)));
  }
  static Floats fma(Floats a, Floats b, Floats c) {
    return as<Floats>(vfmaq_f32(as<float32x4_t>(c), as<float32x4_t>(a), as<float32x4_t>(b)));
  }

  static Doubles all(double x) { return as<Doubles>(vdupq_n_f64(x)); }
  static Floats all(float x) { return as<Floats>(vdupq_n_f32(x)); }
  /// A number in memory in every lane.
  template <class Number>
  static auto factor(const std::byte* at) {
    Number x = 0;
    std::memcpy(&x, at, sizeof x);
    return all(x);
  }

  static Words words(Vectors<8>::Shorts x) { return as<Words>(vmovl_u16(as<uint16x4_t>(x))); }
  static Words words(Vectors<4>::Bytes x) {
    std::uint32_t bits = 0;
    std::memcpy(&bits, &x, sizeof bits);
    return as<Words>(vmovl_u16(vget_low_u16(vmovl_u8(vcreate_u8(bits)))));
  }
  static Doubles doubles(Vectors<8>::Floats x) {
    return as<Doubles>(vcvt_f64_f32(as<float32x2_t>(x)));
  }
  static Vectors<8>::Floats floats(Doubles x) {
    return as<Vectors<8>::Floats>(vcvt_f32_f64(as<float64x2_t>(x)));
  }

  static Doubles larger(Doubles x, Doubles y) { return x > y ? x : y; }
  static Floats larger(Floats x, Floats y) { return x > y ? x : y; }
  /// Of a NaN and anything a NaN.
  static Floats larger_magnitude(Floats x, Floats y) {
    return as<Floats>(vmaxq_f32(vabsq_f32(as<float32x4_t>(x)), vabsq_f32(as<float32x4_t>(y))));
  }
  template <class Vector>
  static Vector and_or(Vector x, Vector y, Vector z) {
    return (x & y) | z;
  }
  template <class Vector>
  static Vector or_and(Vector x, Vector y, Vector z) {
    return x | (y & z);
  }
  static Doubles replaced(Doubles x, Doubles y, Doubles limit, Doubles magnitude) {
    const uint64x2_t sign = vdupq_n_u64(std::uint64_t{1} << 63);
    const uint64x2_t over = vcageq_f64(as<float64x2_t>(y), as<float64x2_t>(limit));
    const float64x2_t other = vbslq_f64(sign, as<float64x2_t>(x), as<float64x2_t>(magnitude));
    return as<Doubles>(vbslq_f64(over, other, as<float64x2_t>(x)));
  }

  static Doubles less_offset(Doubles x, Longs mask) {
    const uint64x2_t half = vdupq_n_u64(std::uint64_t{1} << 51);
    return x - as<Doubles>(vbslq_u64(as<uint64x2_t>(mask), as<uint64x2_t>(x), half));
  }

  static Bytes bit_counts(Bytes x) { return as<Bytes>(vcntq_u8(as<uint8x16_t>(x))); }
  static Bytes bit_counts_of_nibbles(Bytes x) { return bit_counts(x); }
  static Words bit_counts(Words x) {
    return as<Words>(vpaddlq_u16(vpaddlq_u8(vcntq_u8(as<uint8x16_t>(x)))));
  }

  static Vectors<8>::Floats floats_toward_zero(Doubles x) {
    // Downward is toward zero of what is not negative.
    const float32x2_t magnitude = vcvt_f32_f64(vabsq_f64(as<float64x2_t>(x)));
    const uint32x2_t high = vshrn_n_u64(as<uint64x2_t>(x), 32);
    return as<Vectors<8>::Floats>(
        vbsl_u32(vdup_n_u32(0x80000000), high, as<uint32x2_t>(magnitude)));
  }
  static Vectors<8>::Shorts fp16_codes(Floats x) {
    // Exact, so that the thread's direction does not matter, but for infinities.
    return as<Vectors<8>::Shorts>(vcvt_f16_f32(as<float32x4_t>(fp16_rounded(x))));
  }
  static Floats fp16_numbers(Vectors<8>::Shorts x) {
    return as<Floats>(vcvt_f32_f16(as<float16x4_t>(x)));
  }
  /// Multiples of FP16's last place at each number's exponent, which the rounding to integers that
  /// names its direction finds. The conversion to FP16 rounds as the thread does.
  static Floats fp16_rounded(Floats x) {
    constexpr std::uint32_t least = 127 - 14, fraction_bits = 23;
    const uint32x4_t field = vandq_u32(as<uint32x4_t>(x), vdupq_n_u32(0xFFU << fraction_bits));
    const uint32x4_t exponent = vmaxq_u32(field, vdupq_n_u32(least << fraction_bits));
    const auto up = vsubq_u32(vdupq_n_u32((2U * 127 + 10) << fraction_bits), exponent);
    const auto down = vsubq_u32(exponent, vdupq_n_u32(10U << fraction_bits));
    const float32x4_t places = vrndnq_f32(vmulq_f32(as<float32x4_t>(x), as<float32x4_t>(up)));
    const float32x4_t rounded = vmulq_f32(places, as<float32x4_t>(down));
    const uint32x4_t over = vcageq_f32(rounded, vdupq_n_f32(0x1p16F));
    const uint32x4_t infinity = vdupq_n_u32(0x7F800000), sign = vdupq_n_u32(0x80000000);
    const uint32x4_t infinite = vbslq_u32(sign, as<uint32x4_t>(x), infinity);
    return as<Floats>(vbslq_u32(over, infinite, as<uint32x4_t>(rounded)));
  }

  static Doubles to_nearest_integer(Doubles x) {
    return as<Doubles>(vrndnq_f64(as<float64x2_t>(x)));
  }

  /// For code behind target_neondots.inc. Assembly, as clang 14 has the intrinsic only where a
  /// whole file is compiled so. Both factors are signed.
  struct ByteDots {
    static Words begin(Words start) { return start; }
    static Words add(Words sums, Bytes x, Bytes y) {
      asm("sdot %0.4s, %1.16b, %2.16b" : "+w"(sums) : "w"(x), "w"(y));
      return sums;
    }
    static Words end(Words sums, Words /*start*/) { return sums; }
  };
  /// Sums of products of two neighbouring numbers of 16 bits, signed.
  static Words pair_products(Shorts x, Shorts y) {
    const auto a = as<int16x8_t>(x), b = as<int16x8_t>(y);
    const int32x4_t low = vmull_s16(vget_low_s16(a), vget_low_s16(b));
    return as<Words>(vpaddq_s32(low, vmull_high_s16(a, b)));
  }
  static Words less_third_byte(Words x, Words y) { return x - ((y >> 16) & 0xFF); }
  static Words larger_where(Words bits, Words x, Words y) {
    const Words larger = x > y ? x : y;
    return bits != 0 ? larger : x;
  }
  static Words high_words(Doubles even, Doubles odd) {
    return as<Words>(vtrn2q_u32(as<uint32x4_t>(even), as<uint32x4_t>(odd)));
  }

  using Mask = Words;
  static Mask at_least(Words x, Words y) { return as<Mask>(x >= y); }
  static Mask equal(Words x, Words y) { return as<Mask>(x == y); }
  static bool any(Mask x) { return vmaxvq_u32(as<uint32x4_t>(x)) != 0; }
  static Words select(Mask mask, Words yes, Words no) {
    return as<Words>(vbslq_u32(as<uint32x4_t>(mask), as<uint32x4_t>(yes), as<uint32x4_t>(no)));
  }

  /// The instruction takes the low byte of a distance, as a signed one.
  static Words shift_left(Words x, Words n) {
    const uint32x4_t most = vminq_u32(as<uint32x4_t>(n), vdupq_n_u32(32));
    return as<Words>(vshlq_u32(as<uint32x4_t>(x), vreinterpretq_s32_u32(most)));
  }
  static Words shift_right(Words x, Words n) {
    const uint32x4_t most = vminq_u32(as<uint32x4_t>(n), vdupq_n_u32(32));
    return as<Words>(vshlq_u32(as<uint32x4_t>(x), vnegq_s32(vreinterpretq_s32_u32(most))));
  }
  static Longs shift_left(Longs x, Longs n) {
    return as<Longs>(vshlq_u64(as<uint64x2_t>(x), as<int64x2_t>(n))) & as<Longs>(n < 64);
  }
  static Longs shift_right(Longs x, Longs n) {
    return as<Longs>(vshlq_u64(as<uint64x2_t>(x), as<int64x2_t>(-n))) & as<Longs>(n < 64);
  }
  static Shorts excess(Shorts x, Shorts y) {
    return as<Shorts>(vqsubq_u16(as<uint16x8_t>(x), as<uint16x8_t>(y)));
  }
  static Longs low_products(Longs x, Longs y) {
    return as<Longs>(vmull_u32(vmovn_u64(as<uint64x2_t>(x)), vmovn_u64(as<uint64x2_t>(y))));
  }
  static std::uint32_t largest(Words x) { return vmaxvq_u32(as<uint32x4_t>(x)); }
  static Words pick(const std::uint32_t* table, Words index) {
    const uint8x16x2_t bytes = {vreinterpretq_u8_u32(vld1q_u32(table)),
                                vreinterpretq_u8_u32(vld1q_u32(table + 4))};
    const Words places = index * 0x04040404U + 0x03020100U;
    return as<Words>(vqtbl2q_u8(bytes, as<uint8x16_t>(places)));
  }
  static Bytes looked_up(Bytes table, Bytes index) {
    return as<Bytes>(vqtbl1q_u8(as<uint8x16_t>(table), as<uint8x16_t>(index)));
  }
  static Words byte_sums(Bytes x) { return as<Words>(vpaddlq_s16(vpaddlq_s8(as<int8x16_t>(x)))); }
  static Shorts narrowed(Words x0, Words x1) {
    return as<Shorts>(vuzp1q_u16(as<uint16x8_t>(x0), as<uint16x8_t>(x1)));
  }
  static Bytes narrowed(Words x0, Words x1, Words x2, Words x3) {
    return as<Bytes>(vuzp1q_u8(as<uint8x16_t>(narrowed(x0, x1)), as<uint8x16_t>(narrowed(x2, x3))));
  }
  /// There are no stores past the caches.
  template <class Vector>
  static void stream(void* to, Vector x) {
    store(to, x);
  }
  static void finish_streams() {}
};

}  // namespace guardbit::formats::vectors
