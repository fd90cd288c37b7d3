#pragma once

#include <immintrin.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>

#include "emulator/functions/numbers/host_number.hpp"
#include "emulator/functions/unit/quotients.hpp"
#include "emulator/functions/unit/special_function_forms.hpp"

// Instructions of PTX on words, by their names with `_` for each dot: what compare_toolkits.py
// makes of a kernel calls them. For x86 with AVX2 and FMA.
namespace ptx {

using Word = std::uint32_t;
using Wide = std::uint64_t;
using Signed = std::int32_t;
using WideSigned = std::int64_t;
using guardbit::emulator::HostNumber;
namespace mufu = guardbit::emulator::mufu;

/// A kernel's operands: pointers.
struct Arguments {
  void* at[5];
};

inline float number(Wide x) { return std::bit_cast<float>(static_cast<Word>(x)); }
inline double wide_number(Wide x) { return std::bit_cast<double>(x); }
/// All NaNs are one.
inline Word code(float x) { return x == x ? std::bit_cast<Word>(x) : mufu::nan_code; }
inline Signed as_signed(Wide x) { return static_cast<Signed>(static_cast<Word>(x)); }

inline Word loaded(Wide address) {
  return *reinterpret_cast<const Word*>(address);  // NOLINT
}
inline void store(Wide address, Wide x) {
  *reinterpret_cast<Word*>(address) = static_cast<Word>(x);  // NOLINT
}

/// Comparisons are false of NaNs; those that end in `u` are true.
inline bool is_unordered(Wide a, Wide b) { return std::isunordered(number(a), number(b)); }
inline bool eq_f32(Wide a, Wide b) { return number(a) == number(b); }
inline bool lt_f32(Wide a, Wide b) { return number(a) < number(b); }
inline bool le_f32(Wide a, Wide b) { return number(a) <= number(b); }
inline bool gt_f32(Wide a, Wide b) { return number(a) > number(b); }
inline bool ge_f32(Wide a, Wide b) { return number(a) >= number(b); }
inline bool ne_f32(Wide a, Wide b) { return !is_unordered(a, b) && !eq_f32(a, b); }
inline bool equ_f32(Wide a, Wide b) { return is_unordered(a, b) || eq_f32(a, b); }
inline bool ltu_f32(Wide a, Wide b) { return !ge_f32(a, b); }
inline bool leu_f32(Wide a, Wide b) { return !gt_f32(a, b); }
inline bool gtu_f32(Wide a, Wide b) { return !le_f32(a, b); }
inline bool geu_f32(Wide a, Wide b) { return !lt_f32(a, b); }
inline bool neu_f32(Wide a, Wide b) { return !eq_f32(a, b); }

/// Shifts by more than the width.
inline Word shl_b32(Wide x, Wide n) { return n > 31 ? 0 : static_cast<Word>(x) << n; }
inline Wide shl_b64(Wide x, Wide n) { return n > 63 ? 0 : x << n; }
inline Word shr_u32(Wide x, Wide n) { return n > 31 ? 0 : static_cast<Word>(x) >> n; }
inline Word shr_s32(Wide x, Wide n) {
  return static_cast<Word>(as_signed(x) >> std::min<Wide>(n, 31));
}
inline Wide shr_u64(Wide x, Wide n) { return n > 63 ? 0 : x >> n; }
inline Wide bfi_b64(Wide field, Wide into, Wide position, Wide length) {
  const Wide mask = (length > 63 ? ~Wide{0} : (Wide{1} << length) - 1) << position;
  return (into & ~mask) | (field << position & mask);
}
inline Word clz_b32(Wide x) { return static_cast<Word>(std::countl_zero(static_cast<Word>(x))); }

inline Word add_f32(Wide a, Wide b) { return code(number(a) + number(b)); }
inline Word sub_f32(Wide a, Wide b) { return code(number(a) - number(b)); }
inline Word mul_f32(Wide a, Wide b) { return code(number(a) * number(b)); }
inline Word add_rn_f32(Wide a, Wide b) { return add_f32(a, b); }
inline Word sub_rn_f32(Wide a, Wide b) { return sub_f32(a, b); }
inline Word mul_rn_f32(Wide a, Wide b) { return mul_f32(a, b); }
inline Word fma_rn_f32(Wide a, Wide b, Wide c) {
  return code(__builtin_fmaf(number(a), number(b), number(c)));
}
inline Word div_rn_f32(Wide a, Wide b) { return code(number(a) / number(b)); }
inline Word rcp_rn_f32(Wide a) { return code(1 / number(a)); }
inline Word sqrt_rn_f32(Wide a) { return code(std::sqrt(number(a))); }
inline Wide mul_f64(Wide a, Wide b) { return std::bit_cast<Wide>(wide_number(a) * wide_number(b)); }

/// The CPU's rounding, while this stands.
class Rounding {
 public:
  static constexpr unsigned down = 0x2000, toward_zero = 0x6000;

  explicit Rounding(unsigned mode) { _mm_setcsr((before_ & ~0x6000U) | mode); }
  ~Rounding() { _mm_setcsr(before_); }
  Rounding(const Rounding&) = delete;
  Rounding& operator=(const Rounding&) = delete;

 private:
  unsigned before_ = _mm_getcsr();
};
inline Word fma_rounded(Wide a, Wide b, Wide c, unsigned mode) {
  const Rounding rounding(mode);
  float x = number(a);
  asm volatile("vfmadd213ss %2, %1, %0" : "+x"(x) : "x"(number(b)), "x"(number(c)));
  return code(x);
}
inline Word fma_rz_f32(Wide a, Wide b, Wide c) {
  return fma_rounded(a, b, c, Rounding::toward_zero);
}
inline Word fma_rm_f32(Wide a, Wide b, Wide c) { return fma_rounded(a, b, c, Rounding::down); }
inline Word add_rz_f32(Wide a, Wide b) {
  const Rounding rounding(Rounding::toward_zero);
  float x = number(a);
  asm volatile("vaddss %1, %0, %0" : "+x"(x) : "x"(number(b)));
  return code(x);
}
inline Word mul_rz_f32(Wide a, Wide b) {
  const Rounding rounding(Rounding::toward_zero);
  float x = number(a);
  asm volatile("vmulss %1, %0, %0" : "+x"(x) : "x"(number(b)));
  return code(x);
}

inline Word abs_f32(Wide x) { return code(std::fabs(number(x))); }
inline Word neg_f32(Wide x) { return code(-number(x)); }
inline Word copysign_f32(Wide sign, Wide x) {
  return static_cast<Word>((x & 0x7fffffff) | (sign & 0x80000000));
}
/// Of a NaN and a number the number; -0 is less than +0.
inline Word min_f32(Wide a, Wide b) {
  if (is_unordered(a, b)) return code(number(a) == number(a) ? number(a) : number(b));
  if (eq_f32(a, b)) return static_cast<Word>(a | b);
  return static_cast<Word>(lt_f32(a, b) ? a : b);
}
inline Word max_f32(Wide a, Wide b) {
  if (is_unordered(a, b)) return code(number(a) == number(a) ? number(a) : number(b));
  if (eq_f32(a, b)) return static_cast<Word>(a & b);
  return static_cast<Word>(gt_f32(a, b) ? a : b);
}

/// Integers saturate, and a NaN gives 0.
inline Word to_signed(float whole) {
  if (whole != whole) return 0;
  if (whole >= 0x1p31F) return 0x7fffffff;
  return whole < -0x1p31F ? 0x80000000 : static_cast<Word>(static_cast<Signed>(whole));
}
inline Word cvt_rni_s32_f32(Wide x) { return to_signed(std::nearbyint(number(x))); }
inline Word cvt_rzi_s32_f32(Wide x) { return to_signed(std::trunc(number(x))); }
inline Word cvt_rzi_u32_f32(Wide x) {
  const float whole = std::trunc(number(x));
  if (!(whole > 0)) return 0;
  return whole >= 0x1p32F ? 0xffffffff : static_cast<Word>(whole);
}
inline Word cvt_rni_f32_f32(Wide x) { return code(std::nearbyint(number(x))); }
inline Word cvt_rzi_f32_f32(Wide x) { return code(std::trunc(number(x))); }
inline Word cvt_rmi_f32_f32(Wide x) { return code(std::floor(number(x))); }
inline Word cvt_rpi_f32_f32(Wide x) { return code(std::ceil(number(x))); }
inline Word cvt_sat_f32_f32(Wide x) { return number(x) > 0 ? code(std::min(number(x), 1.0F)) : 0; }
inline Word cvt_rn_f32_s32(Wide x) { return code(static_cast<float>(as_signed(x))); }
inline Word cvt_rn_f32_u32(Wide x) { return code(static_cast<float>(static_cast<Word>(x))); }
inline Wide cvt_s64_s32(Wide x) { return static_cast<Wide>(WideSigned{as_signed(x)}); }
inline Wide cvt_u64_u32(Wide x) { return static_cast<Word>(x); }
inline Wide cvt_rn_f64_s64(Wide x) {
  return std::bit_cast<Wide>(static_cast<double>(static_cast<WideSigned>(x)));
}
inline Word cvt_rn_f32_f64(Wide x) { return code(static_cast<float>(wide_number(x))); }

inline HostNumber host(Wide x) { return HostNumber::of(static_cast<Word>(x)); }
inline Word code(HostNumber x) { return code(number(bits(x))); }
inline Word ex2_approx_f32(Wide x) { return code(mufu::ex2_approx(host(x))); }
inline Word ex2_approx_ftz_f32(Wide x) { return code(mufu::ex2_approx_ftz(host(x))); }
inline Word lg2_approx_f32(Wide x) { return code(mufu::lg2_approx(host(x))); }
inline Word lg2_approx_ftz_f32(Wide x) { return code(mufu::lg2_approx_ftz(host(x))); }
inline Word rcp_approx_ftz_f32(Wide x) { return code(mufu::rcp_approx_ftz(host(x))); }
inline Word rsqrt_approx_f32(Wide x) { return code(mufu::rsqrt_approx(host(x))); }
inline Word rsqrt_approx_ftz_f32(Wide x) { return code(mufu::rsqrt_approx_ftz(host(x))); }
inline Word sin_approx_f32(Wide x) { return code(mufu::sin_approx(host(x))); }
inline Word cos_approx_f32(Wide x) { return code(mufu::cos_approx(host(x))); }
inline Word div_approx_f32(Wide a, Wide b) { return code(mufu::div_approx(host(a), host(b))); }
inline Word div_approx_ftz_f32(Wide a, Wide b) {
  return code(mufu::div_approx_ftz(host(a), host(b)));
}

}  // namespace ptx
