#pragma once

// Families of whole matrices: every element is drawn alone, so that a device and a host make a
// matrix of any size in any order. `guardbit gpu gemm --family` and `guardbit bench --data` name
// them.

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "emulator/inputs/input_families.hpp"
#include "emulator/inputs/special_words.hpp"

namespace guardbit::emulator::inputs {

/// A part of all elements, for ElementDraw.
constexpr std::uint64_t share(double part) { return static_cast<std::uint64_t>(part * 0x1p32); }

/// How an element is drawn. Integers take part in `zeros` alone; otherwise they are uniform, those
/// of 32 bits over 24: an addend is what some thousand products add up to.
struct ElementDraw {
  enum class Numbers : std::uint8_t {
    /// a normal distribution
    normal,
    raw,
    finite,
    /// exponents uniform in [low, high], half of the fractions all ones; for element_draw only
    /// normal numbers
    spread,
    /// subnormal numbers, and those of the same size above them
    small,
  };
  Numbers numbers = Numbers::normal;
  int low = 0, high = 0;
  /// shares of zeros of either sign; of infinities and NaNs, with `extremes` also zeros and the
  /// ends of the range; of subnormal numbers
  std::uint64_t zeros = 0, specials = 0, subnormals = 0;
  bool extremes = false;
};

/// A normally distributed number, of as many random bits as the format holds: the sum of twelve
/// uniform ones.
constexpr std::uint64_t normal_word(const OperandWords& f, Draw& draw) {
  constexpr int point = 17, below = 43;  // bits after the binary point, and random ones after these
  std::int64_t sum = -12 * 0xFFFF;
  for (int i = 0; i < 12; ++i) sum += 2 * static_cast<std::int64_t>(draw.take(16));
  const bool negative = sum < 0;
  std::uint64_t magnitude =
      static_cast<std::uint64_t>(negative ? -sum : sum) << below | draw.wide(below);
  int exponent = 63 - point - below;
  if (magnitude == 0) return 0;
  for (; magnitude >> 63 == 0; magnitude <<= 1) --exponent;
  if (exponent < f.lowest) return negative ? f.negative_zero : 0;
  return word_with_exponent(f, negative && f.sign != 0, exponent,
                            f.fraction_bits == 0 ? 0 : magnitude << 1 >> (64 - f.fraction_bits));
}

constexpr std::uint64_t spread_word(const OperandWords& f, const ElementDraw& x, Draw& draw) {
  const bool negative = f.sign != 0 && draw.coin();
  const int exponent = draw.between(x.low, x.high);
  const bool ones = draw.coin();
  return word_with_exponent(f, negative, exponent, ones ? f.mask : draw.wide(f.fraction_bits));
}

/// A word of the lowest binades: any fraction, and every other time the exponent bit above it.
constexpr std::uint64_t small_word(const OperandWords& f, Draw& draw) {
  const std::uint64_t sign = signed_zero(f, draw);
  return sign | draw.wide(f.fraction_bits + static_cast<int>(draw.take(1)));
}

constexpr bool falls(std::uint64_t part, Draw& draw) { return part != 0 && draw.take(32) < part; }

/// An element of a format that is no integer.
constexpr std::uint64_t floating_element(const OperandWords& f, const ElementDraw& x, Draw& draw) {
  if (falls(x.zeros, draw)) return signed_zero(f, draw);
  if (falls(x.specials, draw)) {
    const bool nans_only = !f.has_infinity && !x.extremes;
    return nans_only ? signed_zero(f, draw) | f.nan : special_word(f, draw, x.extremes);
  }
  if (falls(x.subnormals, draw))
    return signed_zero(f, draw) | draw.wide(f.fraction_bits) | smallest_word(f);
  switch (x.numbers) {
    case ElementDraw::Numbers::raw: return raw_word(f, draw);
    case ElementDraw::Numbers::finite: return finite_word(f, draw);
    case ElementDraw::Numbers::spread: return spread_word(f, x, draw);
    case ElementDraw::Numbers::small: return small_word(f, draw);
    case ElementDraw::Numbers::normal: break;
  }
  return normal_word(f, draw);
}

constexpr std::uint64_t integer_element(const OperandWords& f, const ElementDraw& x, Draw& draw) {
  if (falls(x.zeros, draw)) return 0;
  const std::uint64_t word = raw_word(f, draw);
  if (f.mask >> 16 == 0) return word;
  return static_cast<std::uint64_t>(static_cast<std::int64_t>(word << 40) >> 40) & f.mask;
}

/// Element `index` of the matrix that `seed` selects, without the bits that the unit ignores.
constexpr std::uint64_t matrix_element(const OperandWords& f, const ElementDraw& x,
                                       std::uint64_t seed, std::uint64_t index) {
  Draw draw(mixed(seed), static_cast<std::int64_t>(index), Place::a, 0);
  // Only integers have no exponents.
  const std::uint64_t word =
      f.highest == f.lowest ? integer_element(f, x, draw) : floating_element(f, x, draw);
  return word >> f.ignored << f.ignored;
}

/// A family of matrices by the word that options take.
struct MatrixFamily {
  std::string_view word = "normal";
  InputFamily family = InputFamily::normal_numbers;
  ElementDraw elements{};
  /// exponents uniform over all that neither over- nor underflow in D
  bool wide = false;
  /// products at neighbouring k cancel, all but the last bits of a tenth: the maker of the product
  /// repeats elements
  bool cancelling = false;
};

inline constexpr auto matrix_families = [] {
  using enum InputFamily;
  using enum ElementDraw::Numbers;
  return std::to_array<MatrixFamily>({
      {"normal", normal_numbers},
      {"raw", raw_bits, {.numbers = raw}},
      {"finite", finite_bits, {.numbers = finite}},
      {"narrow", narrow_exponents, {.numbers = spread, .low = -2, .high = 0}},
      {"wide", wide_exponents, {}, true},
      {"sparse", sparse_zeros, {.numbers = finite, .zeros = share(0.97)}},
      {"zeros", sparse_zeros, {.zeros = share(0.97)}},
      {"relu", rectified_numbers, {.zeros = share(0.5)}},
      {"tiny", subnormal_operands, {.numbers = small}},
      {"subnormals", subnormal_operands, {.subnormals = share(0.5)}},
      {"specials", many_specials, {.specials = share(0.002), .extremes = true}},
      {"cancelling", pair_cancellation, {}, false, true},
  });
}();

constexpr const MatrixFamily* find_matrix_family(std::string_view word) {
  for (const MatrixFamily& family : matrix_families)
    if (family.word == word) return &family;
  return nullptr;
}

/// The draw of a family for operands of format `f` of products with results `d`.
constexpr ElementDraw element_draw(const MatrixFamily& family, const Format& f, const Format& d) {
  ElementDraw x = family.elements;
  const OperandWords words = operand_words(f);
  x.low = larger(x.low, words.least_normal);
  if (!family.wide || formats::is_integer(f)) return x;
  constexpr int headroom = 12;  // K to 2^24 in powers of two, shared by both factors
  const int reach = larger(1, formats::max_exponent(d) / 2 - headroom);
  x.numbers = ElementDraw::Numbers::spread;
  x.low = larger(words.lowest, -reach);
  x.high = smaller(words.highest - 1, reach);
  return x;
}

}  // namespace guardbit::emulator::inputs
