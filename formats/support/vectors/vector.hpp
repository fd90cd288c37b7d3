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

template <class Vector>
[[gnu::always_inline]] inline Vector load(const void* from) {
  Vector v;
  std::memcpy(&v, from, sizeof v);
  return v;
}
template <class Vector>
[[gnu::always_inline]] inline void store(void* to, const Vector& v) {
  std::memcpy(to, &v, sizeof v);
}

/// What a Lane of memory is, in every lane, as any vector.
template <class Vector, class Lane>
[[gnu::always_inline]] inline Vector broadcast(const void* from) {
  Lane x;
  std::memcpy(&x, from, sizeof x);
  return as<Vector>(fill<typename VectorOf<Lane, static_cast<int>(sizeof(Vector))>::Type>(x));
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
