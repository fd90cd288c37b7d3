#pragma once

// Vectors as compilers know them: arithmetic, comparisons (all ones or none in each lane), `mask ?
// x : y`, __builtin_convertvector and __builtin_shufflevector mean the same to g++ and clang for
// every instruction set. What they cannot say stands in one structure an instruction set
// (avx512.hpp, avx2.hpp). Kernels are templates over such a structure, `Isa`, so that each has code
// of its own; they are included where the compiler may use the instruction set.

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>

namespace guardbit::formats::vectors {

template <class Lane, int bytes>
struct VectorOf {
  using Type [[gnu::vector_size(bytes)]] = Lane;
};

/// Vectors of so many bytes.
template <int size>
struct Vectors {
  static constexpr int bytes = size;
  template <class Lane>
  using Of = typename VectorOf<Lane, size>::Type;
  using Bytes = Of<std::uint8_t>;
  using Shorts = Of<std::uint16_t>;
  using Words = Of<std::uint32_t>;
  using Longs = Of<std::uint64_t>;
  using Floats = Of<float>;
  using Doubles = Of<double>;

  /// Byte n of every word.
  [[gnu::always_inline]] static Words byte_of_words(const Words& x, int n) {
    const Words lowest = x >> static_cast<std::uint32_t>(8 * n);
    return n == 3 ? lowest : lowest & 0xFF;
  }
};

/// Four bytes, which are no vector of wider lanes.
template <>
struct Vectors<4> {
  static constexpr int bytes = 4;
  using Bytes = typename VectorOf<std::uint8_t, 4>::Type;
  using Shorts = typename VectorOf<std::uint16_t, 4>::Type;
};

/// The same bits as another vector.
template <class To, class From>
[[gnu::always_inline]] inline To as(const From& from) {
  static_assert(sizeof(To) == sizeof(From));
  return reinterpret_cast<To>(from);
}

/// An array whose size is a signed number.
template <class Element, int size>
using ArrayOf = Element[static_cast<std::size_t>(size)];

template <class Vector>
using LaneOf = std::remove_cvref_t<decltype(std::declval<Vector&>()[0])>;
template <class Vector>
inline constexpr int lanes = static_cast<int>(sizeof(Vector) / sizeof(LaneOf<Vector>));

/// One number in every lane.
template <class Vector>
[[gnu::always_inline]] inline Vector fill(LaneOf<Vector> x) {
  if constexpr (std::is_floating_point_v<LaneOf<Vector>>) {  // x + 0 is not x where x is -0
    using Bits = std::conditional_t<sizeof x == 8, std::uint64_t, std::uint32_t>;
    using Words = typename VectorOf<Bits, static_cast<int>(sizeof(Vector))>::Type;
    return as<Vector>(Words{} + __builtin_bit_cast(Bits, x));
  } else {
    return Vector{} + x;
  }
}

/// Two vectors side by side.
template <class Vector>
struct Pair {
  Vector first, second;
};
template <class Value>
inline constexpr bool is_pair = false;
template <class Vector>
inline constexpr bool is_pair<Pair<Vector>> = true;

/// Vectors, or pairs of them.
template <class Vector>
[[gnu::always_inline]] inline Vector load(const void* from) {
  if constexpr (is_pair<Vector>) {
    using Each = decltype(Vector::first);
    return {load<Each>(from), load<Each>(static_cast<const std::byte*>(from) + sizeof(Each))};
  } else {
    Vector v;
    std::memcpy(&v, from, sizeof v);
    return v;
  }
}
template <class Vector>
[[gnu::always_inline]] inline void store(void* to, const Vector& v) {
  if constexpr (is_pair<Vector>) {  // GCC 12 copies a pair in pieces
    store(to, v.first);
    store(static_cast<std::byte*>(to) + sizeof v.first, v.second);
  } else {
    std::memcpy(to, &v, sizeof v);
  }
}

/// What a Lane of memory is, in every lane, as any vector.
template <class Vector, class Lane>
[[gnu::always_inline]] inline Vector broadcast(const void* from) {
  Lane x;
  std::memcpy(&x, from, sizeof x);
  return as<Vector>(fill<typename VectorOf<Lane, static_cast<int>(sizeof(Vector))>::Type>(x));
}

// Two vectors of doubles as words in *pair order*: of every 16 bytes two words of the first and
// then two of the second. They come apart and together again within 16 bytes, which costs least.

/// The words of every 16 bytes that `index` names, four of x and four of y.
template <class Words, int... index>
[[gnu::always_inline]] inline Words within_parts(const Words& x, const Words& y) {
  return [&]<int... part>(std::integer_sequence<int, part...>) __attribute__((always_inline)) {
    constexpr auto place = [](int lane) {
      constexpr ArrayOf<int, 4> chosen = {index...};
      const int at = chosen[lane % 4];
      return lane / 4 * 4 + at % 4 + (at < 4 ? 0 : lanes<Words>);
    };
    return __builtin_shufflevector(x, y, (place(part))...);
  }
  (std::make_integer_sequence<int, lanes<Words>>());
}
template <class Words, int high, class Doubles>
[[gnu::always_inline]] inline Words high_or_low_words(const Doubles& x, const Doubles& y) {
  // As floats: x86 has one instruction for it.
  using Floats = typename VectorOf<float, static_cast<int>(sizeof x)>::Type;
  return as<Words>(
      within_parts<Floats, high, 2 + high, 4 + high, 6 + high>(as<Floats>(x), as<Floats>(y)));
}
/// The high words of x's and y's doubles, or the low ones, in pair order.
template <class Words, class Doubles>
[[gnu::always_inline]] inline Words high_words(const Doubles& x, const Doubles& y) {
  return high_or_low_words<Words, 1>(x, y);
}
template <class Words, class Doubles>
[[gnu::always_inline]] inline Words low_words(const Doubles& x, const Doubles& y) {
  return high_or_low_words<Words, 0>(x, y);
}
/// The first vector of doubles that has such words in pair order, or the second.
template <class Doubles, int part, class Words>
[[gnu::always_inline]] inline Doubles of_words(const Words& low, const Words& high) {
  return as<Doubles>(
      within_parts<Words, 2 * part, 2 * part + 4, 2 * part + 1, 2 * part + 5>(low, high));
}
/// To pair order from that of the lanes, and back.
template <class Words>
[[gnu::always_inline]] inline Words in_pair_order(const Words& x) {
  return [&]<int... lane>(std::integer_sequence<int, lane...>) __attribute__((always_inline)) {
    return __builtin_shufflevector(
        x, x, (lane / 4 * 2 + lane % 2 + (lane % 4 < 2 ? 0 : lanes<Words> / 2))...);
  }
  (std::make_integer_sequence<int, lanes<Words>>());
}
template <class Words>
[[gnu::always_inline]] inline Words from_pair_order(const Words& x) {
  return [&]<int... lane>(std::integer_sequence<int, lane...>) __attribute__((always_inline)) {
    constexpr auto place = [](int column) {
      constexpr int half = lanes<Words> / 2;
      return column % half / 2 * 4 + column % 2 + (column < half ? 0 : 2);
    };
    return __builtin_shufflevector(x, x, (place(lane))...);
  }
  (std::make_integer_sequence<int, lanes<Words>>());
}

/// The first half of the lanes, or the second.
template <int part, class Vector>
[[gnu::always_inline]] inline auto half_of(const Vector& v) {
  constexpr int count = lanes<Vector> / 2;
  return [&]<int... lane>(std::integer_sequence<int, lane...>) __attribute__((always_inline)) {
    return __builtin_shufflevector(v, v, (lane + part * count)...);
  }
  (std::make_integer_sequence<int, count>());
}

}  // namespace guardbit::formats::vectors
