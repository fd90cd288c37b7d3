#pragma once

// Bands of an operand: their codes become the numbers, exponents and signs that panels hold.
// Included behind `#pragma GCC target`, as fused_panels.hpp is.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>

#include "emulator/engine/kernels/fused/fused_arithmetic.hpp"
#include "emulator/engine/kernels/fused/fused_panels.hpp"
#include "emulator/engine/kernels/fused/line_vectors.hpp"
#include "emulator/engine/matrix_product.hpp"

namespace guardbit::emulator::fused {

/// Codes to numbers and their exponents.
template <class Isa>
class Decoder {
  using Words = typename LineVectors<Isa>::Words;
  using Floats = typename LineVectors<Isa>::Floats;
  using Integers = typename LineVectors<Isa>::Integers;

 public:
  Decoder(const OperandRule& rule, bool negate)
      : magnitude_(static_cast<std::uint32_t>(formats::magnitude_mask(rule.format))),
        first_special_(magnitude_ + 1),
        shift_(23 - rule.format.fraction_bits),
        sign_shift_(32 - formats::bits(rule.format)),
        flip_(negate ? 0x80000000U : 0),
        scale_(__builtin_bit_cast(float, static_cast<std::uint32_t>(254 - rule.format.bias) << 23)),
        min_exponent_(rule.min_exponent) {
    if (formats::has_nan(rule.format)) first_special_ = magnitude_;
    if (formats::has_infinity(rule.format))
      first_special_ = infinity_ = static_cast<std::uint32_t>(formats::infinity_code(rule.format));
  }

  struct Factors {
    Floats values;
    Integers exponents;
    /// all ones or none
    Integers is_zero, is_special, is_negative;
  };

  [[gnu::always_inline]] Factors operator()(const Words& codes) const {
    Factors x;
    const Words magnitude = codes & magnitude_;
    const Words sign = ((codes << sign_shift_) & 0x80000000U) ^ flip_;
    const Floats finite = as<Floats>(magnitude << shift_) * scale_;
    x.is_zero = magnitude == 0U;
    x.is_special = magnitude >= first_special_;
    x.is_negative = as<Integers>(sign) < 0;
    const Words is_special = as<Words>(x.is_special);
    const Words is_nan = is_special & as<Words>(magnitude != infinity_);
    const Words chosen =
        (is_special & 0x7F800000U) | (is_nan & 0x00400000U) | (~is_special & as<Words>(finite));
    const Integers exponent = (as<Integers>(chosen) >> 23) - 127;
    x.exponents = exponent > min_exponent_ ? exponent : min_exponent_ + (exponent & 0);
    x.values = as<Floats>(chosen | sign);
    return x;
  }

 private:
  std::uint32_t magnitude_, first_special_, infinity_ = 0xFFFFFFFFU;
  int shift_, sign_shift_;
  std::uint32_t flip_;
  float scale_;
  int min_exponent_;
};

/// Codes of 16 lines over [begin, begin + count) of k, k by k; +0 for what does not exist. The
/// element (k, line) of the operand lies at k * k_stride + line * line_stride.
template <class Isa>
struct LineCodes {
  ConstCodes codes;
  std::int64_t k_stride = 0, line_stride = 0;
  std::int64_t lines = 0, k = 0;

  using Words = typename LineVectors<Isa>::Words;
  static constexpr int lanes = LineVectors<Isa>::lanes, parts = LineVectors<Isa>::parts;

  void read(std::int64_t first_line, std::int64_t begin, int count, LineWords* to) const {
    const std::int64_t there = std::min<std::int64_t>(band_lines, lines - first_line);
    const auto inside = static_cast<int>(std::clamp<std::int64_t>(k - begin, 0, count));
    const auto at = [&](std::int64_t i, std::int64_t line) {
      return codes.data + (i * k_stride + line * line_stride) * codes.container_bytes;
    };
    int done = 0;
    if (there == band_lines && line_stride == 1) {
      for (; done < inside; ++done) {
        const std::byte* const from = at(begin + done, first_line);
        for (int part = 0; part < parts; ++part)
          put(to[done], part,
              load_codes<Isa>(from + part * lanes * codes.container_bytes, codes.container_bytes) >>
                  codes.shift);
      }
    } else if (k_stride == 1) {
      // Whole words change places, and are taken apart then.
      const int together = 4 / codes.container_bytes, width = 8 * codes.container_bytes;
      const std::uint32_t container = 0xFFFFFFFFU >> (32 - width);
      for (; done + lanes * together <= inside; done += lanes * together) {
        each_block(
            there, [&](int line) { return load<Words>(at(begin + done, first_line + line)); },
            [&](int part, int word, const Words& of_lines) {
              for (int i = 0; i < together; ++i)
                put(to[done + word * together + i], part,
                    (of_lines >> (width * i) & container) >> codes.shift);
            });
      }
      for (; done + lanes <= inside; done += lanes) {
        each_block(
            there,
            [&](int line) {
              return load_codes<Isa>(at(begin + done, first_line + line), codes.container_bytes) >>
                     codes.shift;
            },
            [&](int part, int word, const Words& of_lines) {
              put(to[done + word], part, of_lines);
            });
      }
    }
    for (; done < count; ++done) {
      to[done].of.fill(0);
      if (done >= inside) continue;
      for (std::int64_t line = 0; line < there; ++line)
        to[done].of[static_cast<std::size_t>(line)] = static_cast<std::uint32_t>(
            codes[(begin + done) * k_stride + (first_line + line) * line_stride]);
    }
  }

 private:
  [[gnu::always_inline]] static void put(LineWords& to, int part, const Words& x) {
    store(to.of.data() + part * lanes, x);
  }
  /// Calls put(part, i, words) for the i-th words of each part's lines, which are lines(line).
  template <class Lines, class Put>
  [[gnu::always_inline]] static void each_block(std::int64_t there, const Lines& words_of_line,
                                                const Put& put_words) {
    for (int part = 0; part < parts; ++part) {
      formats::vectors::ArrayOf<Words, lanes> block = {};
      for (int i = 0; i < lanes; ++i)
        if (const int line = part * lanes + i; line < there) block[i] = words_of_line(line);
      transpose<Isa>(block);
      for (int i = 0; i < lanes; ++i) put_words(part, i, block[i]);
    }
  }
};

/// Places are packed so many at a time: whole blocks, and whole executions of composed
/// instructions.
inline constexpr int piece = 256;

/// What a band of an operand is read from.
template <class Isa>
struct BandSource {
  const FusedInstruction& instruction;
  const OperandRule& rule;
  using Factors = typename Decoder<Isa>::Factors;

  LineCodes<Isa> lines;
  Decoder<Isa> decode;
  /// factors whose signs stand together
  int group = 0;
  /// along K; of scaled instructions
  LineCodes<Isa> scales{};
  /// where stored values stand; of a sparse A
  ConstMatrix places{};

  using Words = typename LineVectors<Isa>::Words;
  using Integers = typename LineVectors<Isa>::Integers;
  using Doubles = typename Isa::Doubles;
  static constexpr int lanes = LineVectors<Isa>::lanes, parts = LineVectors<Isa>::parts;

  /// The codes at places [begin, begin + count), k by k.
  void read(std::int64_t first_line, std::int64_t begin, int count, LineWords* to) const {
    if (places.codes.data != nullptr) return read_sparse(first_line, begin, count, to);
    if (instruction.composition == Composition::chain)
      return lines.read(first_line, begin, count, to);
    std::array<LineWords, piece> ascending;
    lines.read(first_line, begin, count, ascending.data());
    const std::size_t size = instruction.order.size();
    for (std::size_t i = 0; i < static_cast<std::size_t>(count); ++i)
      to[i] = ascending[i / size * size + static_cast<std::size_t>(instruction.order[i % size])];
  }

  /// Stored values at their k's, +0 between them.
  void read_sparse(std::int64_t first_line, std::int64_t begin, int count, LineWords* to) const {
    std::fill_n(to, count, LineWords{});
    const std::int64_t group_k = instruction.sparsity.group_elements;
    const std::int64_t stored = instruction.sparsity.stored_per_group;
    const std::int64_t first = begin / group_k * stored;
    const std::int64_t last = std::min(lines.k, (begin + count) / group_k * stored);
    const std::int64_t there = std::min<std::int64_t>(band_lines, lines.lines - first_line);
    for (std::int64_t line = 0; line < there; ++line) {
      for (std::int64_t s = first; s < last; ++s) {
        const auto place = static_cast<int>(places(first_line + line, s));
        const int k = dense_k(instruction.sparsity, static_cast<int>(s - first), place);
        to[k].of[static_cast<std::size_t>(line)] = static_cast<std::uint32_t>(
            lines.codes[s * lines.k_stride + (first_line + line) * lines.line_stride]);
      }
    }
  }

  /// The scales of a band's lines over K: factors, and what they add to exponents.
  struct Scales {
    alignas(64) std::array<double, band_lines> factors{};
    alignas(64) std::array<std::int32_t, band_lines> exponents{};
  };
  /// Takes those of a place where new ones begin.
  void take_scales(std::int64_t first_line, std::int64_t place, Scales& to) const {
    if (instruction.scale_k == 0 || place % instruction.scale_k != 0) return;
    LineWords codes;
    scales.read(first_line, place / instruction.scale_k, 1, &codes);
    for (std::size_t i = 0; i < band_lines; ++i) {
      const std::uint32_t code = codes.of[i];
      to.exponents[i] = static_cast<std::int32_t>(code) - 127;
      to.factors[i] = code == 255 ? std::numeric_limits<double>::quiet_NaN()
                                  : __builtin_bit_cast(double, (std::uint64_t{code} + 896) << 52);
    }
  }

  /// Calls visit(place, part, factors, scales) for the band's factors, exponents scaled; places
  /// count from 0, and all places of a piece and a part come one after the other.
  template <class Visit>
  [[gnu::always_inline]] void each_factor(std::int64_t first_line, std::int64_t begin,
                                          std::int64_t count, const Visit& visit) const {
    std::array<LineWords, piece> codes;
    for (std::int64_t at = 0; at < count; at += piece) {
      const auto length = static_cast<int>(std::min<std::int64_t>(piece, count - at));
      read(first_line, begin + at, length, codes.data());
      for (int part = 0; part < parts; ++part) {
        Scales scale;
        Integers exponents{};
        for (int i = 0; i < length; ++i) {
          Factors x = decode(words_of<Isa>(codes[static_cast<std::size_t>(i)], part));
          if (instruction.scale_k != 0) {
            take_scales(first_line, begin + at + i, scale);
            exponents = load<Integers>(scale.exponents.data() + part * lanes);
          }
          x.exponents += exponents;
          visit(static_cast<std::size_t>(at + i), part, x, scale);
        }
      }
    }
  }

  /// Exponents of the band's nonzero finite numbers.
  BandRange range(std::int64_t first_line, std::int64_t begin, std::int64_t count) const {
    if (!instruction.any_exponents) return {rule.min_exponent, formats::max_exponent(rule.format)};
    constexpr int none = 10000;
    Integers lowest = Integers{} + none, highest = Integers{} - none;
    each_factor(
        first_line, begin, count,
        [&](std::size_t, int, const Factors& x, const Scales&) __attribute__((always_inline)) {
          const Integers counts = ~(x.is_zero | x.is_special);
          const Integers low = (x.exponents & counts) | (none & ~counts);
          const Integers high = (x.exponents & counts) | (-none & ~counts);
          lowest = low < lowest ? low : lowest;
          highest = high > highest ? high : highest;
        });
    BandRange range{none, -none};
    for (int i = 0; i < lanes; ++i) {
      range.lowest = std::min(range.lowest, lowest[i]);
      range.highest = std::max(range.highest, highest[i]);
    }
    return range.lowest == none ? BandRange{} : range;
  }

  /// Is any number of a band infinite or NaN?
  bool any_special(std::int64_t first_line) const {
    std::array<LineWords, piece> codes;
    Integers special{};
    for (std::int64_t at = 0; at < lines.k; at += piece) {
      const auto length = static_cast<int>(std::min<std::int64_t>(piece, lines.k - at));
      lines.read(first_line, at, length, codes.data());
      for (int i = 0; i < length; ++i)
        for (int part = 0; part < parts; ++part)
          special |= decode(words_of<Isa>(codes[static_cast<std::size_t>(i)], part)).is_special;
    }
    bool any = false;
    for (int i = 0; i < lanes; ++i) any = any || special[i] != 0;
    return any;
  }

  /// Writes the band's values, codes and signs.
  template <class Writer>
  BandRange pack(std::int64_t first_line, std::int64_t begin, std::int64_t count,
                 const Writer& to) const {
    BandRange found = range(first_line, begin, count);
    Words negative{}, positive{};
    Integers special{};
    const auto places_of_group = static_cast<std::size_t>(group);
    each_factor(
        first_line, begin, count,
        [&](std::size_t place, int part, const Factors& x, const Scales& scale)
            __attribute__((always_inline)) {
              const int line = part * lanes;
              if constexpr (Writer::is_double) {
                put_doubles<0>(place, line, x, scale, to);
                put_doubles<1>(place, line, x, scale, to);
              } else {
                to.values(place, line, x.values);
              }
              special |= x.is_special;
              const Integers code = x.exponents + (64 - found.lowest);
              to.codes(place, line, (code < 127 ? code : Integers{} + 127) & ~x.is_zero);
              const std::size_t in_group = place % places_of_group;
              const std::uint32_t bit = 1U << in_group;
              negative |= as<Words>(x.is_negative & ~x.is_zero) & bit;
              positive |= as<Words>(~x.is_negative & ~x.is_zero) & bit;
              if (in_group + 1 == places_of_group) {
                to.signs(place / places_of_group, false, line, negative);
                to.signs(place / places_of_group, true, line, positive);
                negative = positive = Words{};
              }
            });
    for (int i = 0; i < lanes; ++i) found.has_specials = found.has_specials || special[i] != 0;
    return found;
  }
  template <int half, class Writer>
  [[gnu::always_inline]] void put_doubles(std::size_t place, int line, const Factors& x,
                                          const Scales& scale, const Writer& to) const {
    Doubles values = Isa::doubles(half_of<half>(x.values));
    line += half * lanes / 2;
    if (instruction.scale_k != 0) values *= load<Doubles>(scale.factors.data() + line);
    to.values(place, line, values);
  }

  template <class Writer>
  void pack_exponents(std::int64_t first_line, std::int64_t begin, std::int64_t count,
                      const Writer& to) const {
    each_factor(
        first_line, begin, count,
        [&](std::size_t place, int part, const Factors& x, const Scales&)
            __attribute__((always_inline)) {
              to.exponents(place, part * lanes, ((x.exponents + 512) << 4) & ~x.is_zero);
            });
  }
};

/// A's rows; `group` factors' signs stand together.
template <class Isa>
BandSource<Isa> a_source(const FusedInstruction& instruction, const MatrixProduct& x, int group) {
  const std::int64_t stored =
      instruction.sparsity.group_elements == 0
          ? x.k
          : x.k / instruction.sparsity.group_elements * instruction.sparsity.stored_per_group;
  BandSource<Isa> a{instruction,
                    instruction.a,
                    {x.a.codes, x.a.column_stride, x.a.row_stride, x.m, stored},
                    {instruction.a, x.modifiers.negate_a},
                    group};
  if (instruction.sparsity.group_elements != 0) a.places = x.e;
  if (instruction.scale_k != 0)
    a.scales = {x.a_scale.codes, x.a_scale.column_stride, x.a_scale.row_stride, x.m,
                (x.k + instruction.scale_k - 1) / instruction.scale_k};
  return a;
}
/// B's columns.
template <class Isa>
BandSource<Isa> b_source(const FusedInstruction& instruction, const MatrixProduct& x, int group) {
  BandSource<Isa> b{instruction,
                    instruction.b,
                    {x.b.codes, x.b.row_stride, x.b.column_stride, x.n, x.k},
                    {instruction.b, x.modifiers.negate_b},
                    group};
  if (instruction.scale_k != 0)
    b.scales = {x.b_scale.codes, x.b_scale.row_stride, x.b_scale.column_stride, x.n,
                (x.k + instruction.scale_k - 1) / instruction.scale_k};
  return b;
}

/// Can A be spread out over K with zeros between its stored values? Not where B has an infinity or
/// a NaN that those would meet, nor where two values of a group claim one place.
template <class Isa>
bool can_spread(const FusedInstruction& instruction, const MatrixProduct& x) {
  const Sparsity& sparsity = instruction.sparsity;
  if (sparsity.group_elements == 0) return true;
  const BandSource<Isa> b = b_source<Isa>(instruction, x, 1);
  for (std::int64_t line = 0; line < x.n; line += band_lines)
    if (b.any_special(line)) return false;
  const std::int64_t groups = x.k / sparsity.group_elements;
  for (std::int64_t i = 0; i < x.m; ++i) {
    for (std::int64_t g = 0; g < groups; ++g) {
      std::uint32_t taken = 0;
      for (int s = 0; s < sparsity.stored_per_group; s += sparsity.chunk) {
        const std::uint32_t place = 1U << x.e(i, g * sparsity.stored_per_group + s);
        if ((taken & place) != 0) return false;
        taken |= place;
      }
    }
  }
  return true;
}

}  // namespace guardbit::emulator::fused
