#pragma once

// Words of the integer and single-bit input families; generated_inputs.hpp calls this.

#include <cstdint>

#include "gpu/inputs/input_shape.hpp"

namespace guardbit::gpu {

constexpr std::uint64_t integer_word(const OperandWords& f, std::int64_t value) {
  return static_cast<std::uint64_t>(value) & f.mask;
}

/// The ends of the range, their neighbours, and small numbers.
constexpr std::uint64_t extreme_word(const OperandWords& f, Draw& draw) {
  switch (draw.take(3)) {
    case 0: return 0;
    case 1: return 1;
    case 2: return f.mask;
    case 3: return f.sign;
    case 4: return f.largest;
    case 5: return f.sign != 0 ? f.sign + 1 : f.largest - 1;
    default: return f.mask >> 1;
  }
}

/// A value at an end of the range of C, up to `reach` inside it.
constexpr std::uint64_t saturating_addend(const OperandWords& c, std::uint32_t reach, Draw& draw) {
  const std::uint64_t inside = (draw.take(32) * (std::uint64_t{reach} + 1)) >> 32;
  return draw.coin() ? c.largest - inside : c.sign + inside;
}

/// Large factors whose signs alternate in runs of 1 to 64 positions, so that every order of
/// saturating steps gives another sum. The sign is that of A if A is signed, else that of B.
constexpr std::uint64_t alternating_a(const InputShape& x, std::uint64_t key, std::int64_t t, int i,
                                      int s, Draw& draw) {
  Draw row(key, t, Place::row, i);
  const auto run = static_cast<int>(row.below(7));
  const bool low = (((s >> run) & 1) != 0) != row.coin();
  if (row.coin() && s == row.below(x.stored_k)) return raw_word(x.a, draw);
  if (!low) return x.a.largest;
  return x.a.sign != 0 ? x.a.sign + 1 : 0;
}

constexpr std::uint64_t alternating_b(const InputShape& x, std::uint64_t key, std::int64_t t, int k,
                                      int j) {
  if (x.a.sign != 0 || x.b.sign == 0) return x.b.largest;
  Draw column(key, t, Place::column, j);
  const bool low = (((k >> column.below(7)) & 1) != 0) != column.coin();
  return low ? x.b.sign + 1 : x.b.largest;
}

constexpr std::uint64_t small_integer(const OperandWords& f, int reach, Draw& draw) {
  return integer_word(f, f.sign != 0 ? draw.between(-reach, reach) : draw.between(0, reach));
}

/// Bits that are mostly clear or mostly set; the choice for A and for B changes with the execution.
constexpr std::uint64_t few_bits_word(std::int64_t t, bool is_b, Draw& draw) {
  constexpr int few = 24, most = 232;
  const bool mostly_set = (((t >> (is_b ? 1 : 0)) & 1) != 0) != is_b;
  return draw.chance(mostly_set ? most : few) ? 1 : 0;
}

constexpr std::uint64_t integer_a(const InputShape& x, InputFamily family, std::uint64_t key,
                                  std::int64_t t, int i, int s) {
  Draw draw(key, t, Place::a, i * x.stored_k + s);
  switch (family) {
    case InputFamily::small_integers: return small_integer(x.a, 3, draw);
    case InputFamily::extreme_integers: return extreme_word(x.a, draw);
    case InputFamily::alternating_saturation: return alternating_a(x, key, t, i, s, draw);
    case InputFamily::few_bits: return few_bits_word(t, false, draw);
    default: return raw_word(x.a, draw);
  }
}

constexpr std::uint64_t integer_b(const InputShape& x, InputFamily family, std::uint64_t key,
                                  std::int64_t t, int k, int j) {
  Draw draw(key, t, Place::b, k * x.n + j);
  switch (family) {
    case InputFamily::small_integers: return small_integer(x.b, 3, draw);
    case InputFamily::extreme_integers: return extreme_word(x.b, draw);
    case InputFamily::alternating_saturation: return alternating_b(x, key, t, k, j);
    case InputFamily::few_bits: return few_bits_word(t, true, draw);
    default: return raw_word(x.b, draw);
  }
}

constexpr std::uint64_t integer_c(const InputShape& x, InputFamily family, std::uint64_t key,
                                  std::int64_t t, int i, int j) {
  Draw draw(key, t, Place::c, i * x.n + j);
  switch (family) {
    case InputFamily::small_integers: return small_integer(x.c, 1000, draw);
    case InputFamily::few_bits: return small_integer(x.c, 300, draw);
    case InputFamily::extreme_integers: return extreme_word(x.c, draw);
    case InputFamily::near_saturation: {
      // About as far as random products of both signs come.
      const auto reach =
          static_cast<std::uint32_t>(x.a.largest * x.b.largest * static_cast<unsigned>(x.stored_k));
      return saturating_addend(x.c, reach >> draw.take(2), draw);
    }
    case InputFamily::alternating_saturation:
      return saturating_addend(x.c, draw.take(2) == 0 ? 1000 : 5, draw);
    case InputFamily::wrapping_bits:
      return saturating_addend(x.c, static_cast<std::uint32_t>(x.stored_k), draw);
    default: return raw_word(x.c, draw);
  }
}

}  // namespace guardbit::gpu
