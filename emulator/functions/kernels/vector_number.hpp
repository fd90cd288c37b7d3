#pragma once

// FP32 numbers in vectors: what HostNumber has of one number, for as many as a vector holds, so
// that programs of functions are kernels. Included behind `#pragma GCC target`, as vectors are.

#include <cstdint>

#include "emulator/functions/cuda/quarter_turns.hpp"
#include "emulator/functions/kernels/single_lanes.hpp"
#include "emulator/functions/kernels/vector_rounding.hpp"
#include "emulator/functions/unit/special_function_forms.hpp"
#include "formats/rounding.hpp"
#include "formats/support/vectors/vector.hpp"

namespace guardbit::emulator::kernels {

/// Finds coefficients in tables.
template <class Isa>
struct CoefficientLookup;
template <class Isa>
struct VectorUnit;

/// The same words. Clang 14 would join (x & a) | (y & b) and a selection that follows to one masked
/// vpternlogd, of which it takes the operands in a wrong order.
template <class Words>
[[gnu::always_inline]] inline Words kept_apart(Words x) {
#if defined(__clang__) && defined(__x86_64__)
  asm("" : "+x"(x));
#endif
  return x;
}

/// Truth values of a vector's lanes.
template <class Isa>
struct VectorMask {
  typename Isa::Mask lanes;

  [[gnu::always_inline]] friend VectorMask operator&(VectorMask a, VectorMask b) {
    return {static_cast<typename Isa::Mask>(a.lanes & b.lanes)};
  }
  [[gnu::always_inline]] friend VectorMask operator|(VectorMask a, VectorMask b) {
    return {static_cast<typename Isa::Mask>(a.lanes | b.lanes)};
  }
  [[gnu::always_inline]] friend VectorMask operator!(VectorMask a) {
    return {Isa::unlike(a.lanes)};
  }
  [[gnu::always_inline]] friend bool any(VectorMask a) { return Isa::any(a.lanes); }
  [[gnu::always_inline]] friend bool all(VectorMask a) { return Isa::all(a.lanes); }
};

/// 32-bit words of a vector's lanes, unsigned.
template <class Isa>
class VectorWords {
 public:
  using Words = typename Isa::Words;
  using Mask = VectorMask<Isa>;

  VectorWords() = default;
  [[gnu::always_inline]] VectorWords(Words x) : words(x) {}  // NOLINT(google-explicit-constructor)
  [[gnu::always_inline]] VectorWords(std::uint32_t x)        // NOLINT(google-explicit-constructor)
      : words(formats::vectors::fill<Words>(x)) {}

  [[gnu::always_inline]] friend VectorWords operator+(VectorWords x, VectorWords y) {
    return x.words + y.words;
  }
  [[gnu::always_inline]] friend VectorWords operator-(VectorWords x, VectorWords y) {
    return x.words - y.words;
  }
  [[gnu::always_inline]] friend VectorWords operator&(VectorWords x, VectorWords y) {
    return x.words & y.words;
  }
  [[gnu::always_inline]] friend VectorWords operator|(VectorWords x, VectorWords y) {
    return x.words | y.words;
  }
  [[gnu::always_inline]] friend VectorWords operator^(VectorWords x, VectorWords y) {
    return x.words ^ y.words;
  }
  [[gnu::always_inline]] friend VectorWords operator<<(VectorWords x, int n) {
    return x.words << n;
  }
  [[gnu::always_inline]] friend VectorWords operator>>(VectorWords x, int n) {
    return x.words >> n;
  }
  [[gnu::always_inline]] friend Mask operator==(VectorWords x, VectorWords y) {
    return {Isa::equal(x.words, y.words)};
  }
  [[gnu::always_inline]] friend Mask operator!=(VectorWords x, VectorWords y) { return !(x == y); }
  [[gnu::always_inline]] friend Mask operator>=(VectorWords x, VectorWords y) {
    return {Isa::at_least(x.words, y.words)};
  }
  [[gnu::always_inline]] friend Mask operator<=(VectorWords x, VectorWords y) { return y >= x; }
  [[gnu::always_inline]] friend Mask operator<(VectorWords x, VectorWords y) { return !(x >= y); }
  [[gnu::always_inline]] friend Mask operator>(VectorWords x, VectorWords y) { return !(y >= x); }
  [[gnu::always_inline]] friend VectorWords select(Mask mask, VectorWords yes, VectorWords no) {
    return Isa::select(mask.lanes, yes.words, no.words);
  }

  Words words;
};

template <class Isa>
class VectorNumber {
 public:
  using Word = VectorWords<Isa>;
  using Mask = VectorMask<Isa>;
  using Floats = typename Isa::Floats;
  using Words = typename Isa::Words;

  VectorNumber() = default;
  [[gnu::always_inline]] VectorNumber(float x)  // NOLINT(google-explicit-constructor): constants
      : number_(Isa::all(x)) {}
  [[gnu::always_inline]] static VectorNumber of(Word code) {
    return of_floats(formats::vectors::as<Floats>(code.words));
  }
  [[gnu::always_inline]] static VectorNumber of_floats(Floats x) {
    VectorNumber number;
    number.number_ = x;
    return number;
  }
  [[gnu::always_inline]] static VectorNumber of_integer(Word n) {
    return of_floats(Isa::of_signed(n.words));
  }

  [[gnu::always_inline]] friend Word bits(VectorNumber x) {
    return formats::vectors::as<Words>(x.number_);
  }
  [[gnu::always_inline]] Floats floats() const { return number_; }

  [[gnu::always_inline]] friend VectorNumber operator+(VectorNumber x, VectorNumber y) {
    return of_floats(x.number_ + y.number_);
  }
  [[gnu::always_inline]] friend VectorNumber operator-(VectorNumber x, VectorNumber y) {
    return of_floats(x.number_ - y.number_);
  }
  [[gnu::always_inline]] friend VectorNumber operator*(VectorNumber x, VectorNumber y) {
    return of_floats(x.number_ * y.number_);
  }
  [[gnu::always_inline]] friend VectorNumber operator/(VectorNumber x, VectorNumber y) {
    return of_floats(x.number_ / y.number_);
  }
  [[gnu::always_inline]] friend VectorNumber operator-(VectorNumber x) {
    return of(bits(x) ^ mufu::sign_bit);
  }
  [[gnu::always_inline]] friend VectorNumber square_root(VectorNumber x) {
    return of_floats(Isa::square_root(x.number_));
  }
  [[gnu::always_inline]] friend VectorNumber divide(VectorNumber x, VectorNumber y,
                                                    formats::Rounding rounding) {
    return of_floats(VectorRounding<Isa>::divide(x.number_, y.number_, rounding));
  }
  [[gnu::always_inline]] friend VectorNumber square_root(VectorNumber x,
                                                         formats::Rounding rounding) {
    return of_floats(VectorRounding<Isa>::square_root(x.number_, rounding));
  }
  [[gnu::always_inline]] friend VectorNumber fma(VectorNumber x, VectorNumber y, VectorNumber z) {
    return of_floats(Isa::fma(x.number_, y.number_, z.number_));
  }
  [[gnu::always_inline]] friend VectorNumber fma_down(VectorNumber x, VectorNumber y,
                                                      VectorNumber z) {
    return of_floats(VectorRounding<Isa>::fma_down(x.number_, y.number_, z.number_));
  }
  [[gnu::always_inline]] friend VectorNumber add_toward_zero(VectorNumber x, VectorNumber y) {
    return of_floats(VectorRounding<Isa>::add_toward_zero(x.number_, y.number_));
  }
  [[gnu::always_inline]] friend VectorNumber multiply_toward_zero(VectorNumber x, VectorNumber y) {
    return of_floats(VectorRounding<Isa>::multiply_toward_zero(x.number_, y.number_));
  }

  /// One by one.
  [[gnu::always_inline]] friend VectorNumber truncated_remainder(VectorNumber x, VectorNumber y,
                                                                 int exponent) {
    return remainder_of_lanes(x, y, exponent);
  }

  [[gnu::always_inline]] friend VectorNumber abs(VectorNumber x) {
    return of(bits(x) & ~mufu::sign_bit);
  }
  [[gnu::always_inline]] friend VectorNumber copysign(VectorNumber magnitude, VectorNumber sign) {
    const Word word = (bits(magnitude) & ~mufu::sign_bit) | (bits(sign) & mufu::sign_bit);
    return of(Word(kept_apart(word.words)));
  }
  [[gnu::always_inline]] friend VectorNumber flushed(VectorNumber x) {
    return select(abs(x) < 0x1p-126F, of(bits(x) & mufu::sign_bit), x);
  }
  [[gnu::always_inline]] friend VectorNumber rint(VectorNumber x) {
    return of_floats(Isa::to_nearest_integer(x.number_));
  }
  [[gnu::always_inline]] friend VectorNumber trunc(VectorNumber x) {
    return of_floats(Isa::to_integer_toward_zero(x.number_));
  }
  [[gnu::always_inline]] friend Word integer(VectorNumber x) {
    const Word near = Isa::to_signed(x.number_);
    const Word clamped = select(x >= 0x1p31F, Word(0x7fffffff), near);
    return select(x == x, clamped, Word(0));
  }

  [[gnu::always_inline]] friend Mask operator==(VectorNumber x, VectorNumber y) {
    return {Isa::equal(x.number_, y.number_)};
  }
  [[gnu::always_inline]] friend Mask operator<(VectorNumber x, VectorNumber y) {
    return {Isa::less(x.number_, y.number_)};
  }
  [[gnu::always_inline]] friend Mask operator>(VectorNumber x, VectorNumber y) { return y < x; }
  [[gnu::always_inline]] friend Mask operator<=(VectorNumber x, VectorNumber y) {
    return {Isa::at_most(x.number_, y.number_)};
  }
  [[gnu::always_inline]] friend Mask operator>=(VectorNumber x, VectorNumber y) { return y <= x; }

  [[gnu::always_inline]] friend VectorNumber select(Mask mask, VectorNumber yes, VectorNumber no) {
    return of(select(mask, bits(yes), bits(no)));
  }
  /// Both where lanes differ.
  template <class Yes, class No>
  [[gnu::always_inline]] static VectorNumber choose(Mask mask, const Yes& yes, const No& no) {
    VectorNumber first = 0, second = 0;
    if (any(mask)) first = yes();
    if (!all(mask)) second = no();
    return select(mask, first, second);
  }

  [[gnu::always_inline]] friend VectorNumber evaluate(const mufu::SpecialFunctionForm& form,
                                                      VectorNumber x) {
    return VectorUnit<Isa>::evaluate(form, x);
  }

  /// Large angles one by one, and only where there are some.
  [[gnu::always_inline]] friend cuda_math::Angle<VectorNumber> angle_of(VectorNumber x) {
    cuda_math::Angle<VectorNumber> angle = cuda_math::small_angle(x);
    const Mask is_large = abs(x) >= cuda_math::least_large_angle;
    if (any(is_large)) reduce_lanes(x, is_large, angle);
    return angle;
  }

 private:
  [[gnu::noinline]] static VectorNumber remainder_of_lanes(VectorNumber x, VectorNumber y,
                                                           int exponent) {
    constexpr auto count = static_cast<std::size_t>(formats::vectors::lanes<Words>);
    std::uint32_t numerators[count], divisors[count];
    formats::vectors::store(numerators, bits(x).words);
    formats::vectors::store(divisors, bits(y).words);
    remainders(numerators, divisors, exponent, count);
    return of(formats::vectors::load<Words>(numerators));
  }
  [[gnu::noinline]] static void reduce_lanes(VectorNumber x, Mask is_large,
                                             cuda_math::Angle<VectorNumber>& angle) {
    constexpr auto count = static_cast<std::size_t>(formats::vectors::lanes<Words>);
    std::uint32_t codes[count], quarters[count], rests[count];
    formats::vectors::store(codes, bits(x).words);
    formats::vectors::store(quarters, angle.quarter.words);
    formats::vectors::store(rests, bits(angle.r).words);
    reduce_large_angles(codes, Isa::bits_of(is_large.lanes), quarters, rests);
    angle.quarter = formats::vectors::load<Words>(quarters);
    angle.r = of(formats::vectors::load<Words>(rests));
  }

  Floats number_;
};

}  // namespace guardbit::emulator::kernels
