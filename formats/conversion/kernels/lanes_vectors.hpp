#pragma once

#include <cstddef>
#include <cstdint>

#include "formats/conversion/kernels/philox_keys.hpp"
#include "formats/support/vectors/vector.hpp"

namespace guardbit::formats::kernels {

/// PortableLanes' members for the words of an instruction set's vectors. Include it where the
/// target allows those.
template <class Isa>
struct VectorLanes {
  static constexpr std::size_t count = Isa::bytes / 4;
  using Word = typename Isa::Words;
  using Mask = typename Isa::Mask;
  using Long = typename Isa::Longs;
  using Integer = typename Isa::template Of<std::int32_t>;

  static Word set(std::uint32_t x) { return vectors::fill<Word>(x); }
  static Word load(const std::byte* at) { return vectors::load<Word>(at); }
  static Word load16(const std::byte* at) {
    return Isa::words(vectors::load<typename vectors::Vectors<Isa::bytes / 2>::Shorts>(at));
  }
  static Word load8(const std::byte* at) {
    return Isa::words(vectors::load<typename vectors::Vectors<Isa::bytes / 4>::Bytes>(at));
  }
  static void store(std::byte* at, Word x) { vectors::store(at, x); }

  static Word shift_left(Word x, Word n) { return Isa::shift_left(x, n); }
  static Word shift_right(Word x, Word n) { return Isa::shift_right(x, n); }
  static Word excess(Word x, Word y) {
    using Shorts = typename Isa::Shorts;
    return as<Word>(Isa::excess(as<Shorts>(x), as<Shorts>(y)));
  }
  static Word smaller(Word x, Word y) { return x < y ? x : y; }
  static Word larger(Word x, Word y) { return x > y ? x : y; }
  static std::uint32_t largest(Word x) { return Isa::largest(x); }
  static Mask at_least(Word x, Word y) { return Isa::at_least(x, y); }
  static Mask equal(Word x, Word y) { return Isa::equal(x, y); }
  static Mask either(Mask x, Mask y) { return static_cast<Mask>(x | y); }
  static Mask both(Mask x, Mask y) { return static_cast<Mask>(x & y); }
  static Mask without(Mask x, Mask y) { return static_cast<Mask>(x & ~y); }
  static bool any(Mask x) { return Isa::any(x); }
  static Word select(Mask mask, Word yes, Word no) { return Isa::select(mask, yes, no); }
  static Word negative(Word x) { return as<Word>(as<Integer>(x) >> 31); }
  static Word float_of(Word x) {
    return as<Word>(__builtin_convertvector(as<Integer>(x), typename Isa::Floats));
  }

  static Word high_product(Word significand, Word high, Word low) {
    const auto of_even = [&](Long even) __attribute__((always_inline)) {
      const Long low_product = Isa::low_products(even, as<Long>(low));
      const Long product = Isa::low_products(even, as<Long>(high)) + (low_product >> 32);
      const Long lost = (product & 0xFFFFFF) | (low_product & low_half);
      return (product >> 24) | (as<Long>(lost != 0) & 1);
    };
    return as<Word>(of_even(as<Long>(significand)) | of_even(as<Long>(significand) >> 32) << 32);
  }

  static Word upper_of_sum(Word x, Word shift, Word a, Word b) {
    // A shift that is negative is a long one, which leaves nothing, as an unsigned number.
    const Long left = as<Long>(shift), right = as<Long>(-shift);
    const Long even = (Isa::shift_left(as<Long>(x) & low_half, left & low_half) |
                       Isa::shift_right(as<Long>(x) & low_half, right & low_half)) +
                      Isa::low_products(as<Long>(a), as<Long>(b));
    const Long upper = as<Long>(x) >> 32;
    const Long odd = (Isa::shift_left(upper, left >> 32) | Isa::shift_right(upper, right >> 32)) +
                     Isa::low_products(as<Long>(a) >> 32, as<Long>(b) >> 32);
    return as<Word>(even >> 32 | (odd & ~low_half));
  }
  static Word pick(const std::uint32_t* words, Word index) { return Isa::pick(words, index); }

  static void store8(std::byte* at, Word x0, Word x1, Word x2, Word x3, bool stream) {
    put(at, Isa::narrowed(x0, x1, x2, x3), stream);
  }
  static void store16(std::byte* at, Word x0, Word x1, Word x2, Word x3, bool stream) {
    put(at, Isa::narrowed(x0, x1), stream);
    put(at + Isa::bytes, Isa::narrowed(x2, x3), stream);
  }
  static void store32(std::byte* at, Word x0, Word x1, Word x2, Word x3, bool stream) {
    put(at, x0, stream);
    put(at + Isa::bytes, x1, stream);
    put(at + 2 * Isa::bytes, x2, stream);
    put(at + 3 * Isa::bytes, x3, stream);
  }
  static void finish_streams() { Isa::finish_streams(); }

  static constexpr std::size_t random_step = 2 * count;
  static void random_words(const PhiloxKeys& keys, std::uint64_t first, std::uint32_t* words) {
    // As many counters as 64-bit lanes, each word of one in a low half; what the products leave in
    // the upper halves is never multiplied.
    constexpr int lanes = vectors::lanes<Long>;
    Long counter{};
    for (int i = 0; i < lanes; ++i) counter[i] = first / 4 + static_cast<std::uint64_t>(i);
    Long c0 = counter & low_half, c1 = counter >> 32, c2{}, c3{};
    for (const auto& key : keys) {
      const Long product0 = Isa::low_products(c0, Long{} + philox_multipliers[0]);
      const Long product1 = Isa::low_products(c2, Long{} + philox_multipliers[1]);
      c0 = (product1 >> 32) ^ c1 ^ key[0];
      c1 = product1;
      c2 = (product0 >> 32) ^ c3 ^ key[1];
      c3 = product0;
    }
    const Long first_half = (c0 & low_half) | c1 << 32, second_half = (c2 & low_half) | c3 << 32;
    const auto in_turns = [&]<int... lane>(int part, std::integer_sequence<int, lane...>)
        __attribute__((always_inline)) {
      return part == 0 ? __builtin_shufflevector(first_half, second_half,
                                                 (lane / 2 + lane % 2 * lanes)...)
                       : __builtin_shufflevector(first_half, second_half,
                                                 (lanes / 2 + lane / 2 + lane % 2 * lanes)...);
    };
    constexpr std::make_integer_sequence<int, lanes> all;
    vectors::store(words, in_turns(0, all));
    vectors::store(words + count, in_turns(1, all));
  }

 private:
  static constexpr std::uint64_t low_half = 0xFFFFFFFF;
  template <class To, class From>
  static To as(const From& from) {
    return vectors::as<To>(from);
  }
  template <class Vector>
  static void put(std::byte* at, const Vector& x, bool stream) {
    if (stream) {
      Isa::stream(at, x);
    } else {
      vectors::store(at, x);
    }
  }
};

}  // namespace guardbit::formats::kernels
