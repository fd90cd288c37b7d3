#pragma once

// Operands as the tiles of fused_tile.hpp read them. A line is a row of A or a column of B; 16 of
// them make a unit, and are decoded together, one k after the other. A panel is what one tile
// reads: 8 lines of A, or `Kernel::columns` lines of B.
//
// Included once per instruction set, behind its `#pragma GCC target`: the vectors below become
// whatever that has, and every template is of a Kernel type of its own.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>

#include "emulator/kernels/fused_row.hpp"
#include "emulator/matrix_product.hpp"

namespace guardbit::emulator::fused {

inline constexpr int unit_lines = 16;
inline constexpr int tile_rows = 8;

using Bytes = std::int8_t __attribute__((vector_size(16)));
using Shorts = std::int16_t __attribute__((vector_size(32)));
using Integers = std::int32_t __attribute__((vector_size(64)));
using Words = std::uint32_t __attribute__((vector_size(64)));
using Floats = float __attribute__((vector_size(64)));
using Longs = std::uint64_t __attribute__((vector_size(64)));
using Doubles = double __attribute__((vector_size(128)));

template <class Vector>
[[gnu::always_inline]] inline void store(void* to, const Vector& v) {
  std::memcpy(to, &v, sizeof v);
}
template <class Vector>
[[gnu::always_inline]] inline Vector load(const void* from) {
  Vector v;
  std::memcpy(&v, from, sizeof v);
  return v;
}

constexpr double power_of_two(int exponent) {
  return __builtin_bit_cast(double, static_cast<std::uint64_t>(1023 + exponent) << 52);
}

/// What B's factors are multiplied by (fused_tile.hpp).
template <class Value>
inline constexpr Value nudge = 1 + (sizeof(Value) == 8 ? 0x1p-30 : 0x1p-20);
/// And by this, which makes sums as many times what they stand for.
template <class Value>
inline constexpr Value scale = sizeof(Value) == 8
                                   ? static_cast<Value>(power_of_two(fp64_scale_exponent))
                                   : Value{1};

/// What of a unit's factors decides how its products are summed.
struct UnitRange {
  int lowest = 0, highest = 0;  ///< exponents of its nonzero finite numbers; 0, 0 without any

  void include(const UnitRange& other) {
    lowest = std::min(lowest, other.lowest);
    highest = std::max(highest, other.highest);
  }
};

/// One operand over a range of places, panel by panel. A panel's arrays, one after the other:
///   values  [place][lines]     FP64 or FP32; B's with the nudge
///   codes   [place][lines]     bytes: 64 + exponent - the unit's lowest; 0 for zero
///   exponents [place][lines]   16 bits: (512 + exponent) << 4; 0 for zero. Only where asked for
///   signs   [group][2][lines]  bit i: factor i of the group is negative; is positive
/// B's codes, exponents and signs are repeated so that a tile's rows find them side by side.
struct PanelLayout {
  std::size_t values = 0, codes = 0, exponents = 0, signs = 0, size = 0;
  std::size_t value_step = 0, code_step = 0, exponent_step = 0, sign_step = 0;

  PanelLayout() = default;
  PanelLayout(std::size_t places, std::size_t groups, std::size_t value_bytes,
              std::size_t code_bytes, std::size_t exponent_bytes, std::size_t sign_bytes)
      : value_step(value_bytes),
        code_step(code_bytes),
        exponent_step(exponent_bytes),
        sign_step(sign_bytes) {
    const auto rounded = [](std::size_t bytes) { return (bytes + 63) / 64 * 64; };
    codes = rounded(places * value_step);
    exponents = codes + rounded(places * code_step);
    signs = exponents + rounded(places * exponent_step);
    size = signs + rounded(groups * sign_step);
  }
};

/// Sixteen codes to numbers and their exponents.
class Decoder {
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
    Integers is_zero, is_special, is_negative;  ///< all ones or none
  };

  [[gnu::always_inline]] Factors operator()(const Words& codes) const {
    Factors x;
    const Words magnitude = codes & magnitude_;
    const Words sign = ((codes << sign_shift_) & 0x80000000U) ^ flip_;
    const Floats finite = reinterpret_cast<Floats>(magnitude << shift_) * scale_;
    x.is_zero = magnitude == 0U;
    x.is_special = magnitude >= first_special_;
    x.is_negative = reinterpret_cast<Integers>(sign) < 0;
    const Words is_special = reinterpret_cast<Words>(x.is_special);
    const Words is_nan = is_special & reinterpret_cast<Words>(magnitude != infinity_);
    const Words chosen = (is_special & 0x7F800000U) | (is_nan & 0x00400000U) |
                         (~is_special & reinterpret_cast<Words>(finite));
    const Integers exponent = (reinterpret_cast<Integers>(chosen) >> 23) - 127;
    x.exponents = exponent > min_exponent_ ? exponent : min_exponent_ + (exponent & 0);
    x.values = reinterpret_cast<Floats>(chosen | sign);
    return x;
  }

 private:
  std::uint32_t magnitude_, first_special_, infinity_ = 0xFFFFFFFFU;
  int shift_, sign_shift_;
  std::uint32_t flip_;
  float scale_;
  int min_exponent_;
};

/// Transposes 16 vectors of 16 words.
[[gnu::always_inline]] inline void transpose(std::array<Words, 16>& x) {
  const auto exchange = [&x](std::size_t distance, const auto& mix) {
    for (std::size_t i = 0; i < 16; ++i) {
      if ((i & distance) != 0) continue;
      mix(x[i], x[i + distance]);
    }
  };
  exchange(8, [](Words& p, Words& q) {
    const Words low =
        __builtin_shufflevector(p, q, 0, 1, 2, 3, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23);
    q = __builtin_shufflevector(p, q, 8, 9, 10, 11, 12, 13, 14, 15, 24, 25, 26, 27, 28, 29, 30, 31);
    p = low;
  });
  exchange(4, [](Words& p, Words& q) {
    const Words low =
        __builtin_shufflevector(p, q, 0, 1, 2, 3, 16, 17, 18, 19, 8, 9, 10, 11, 24, 25, 26, 27);
    q = __builtin_shufflevector(p, q, 4, 5, 6, 7, 20, 21, 22, 23, 12, 13, 14, 15, 28, 29, 30, 31);
    p = low;
  });
  exchange(2, [](Words& p, Words& q) {
    const Words low =
        __builtin_shufflevector(p, q, 0, 1, 16, 17, 4, 5, 20, 21, 8, 9, 24, 25, 12, 13, 28, 29);
    q = __builtin_shufflevector(p, q, 2, 3, 18, 19, 6, 7, 22, 23, 10, 11, 26, 27, 14, 15, 30, 31);
    p = low;
  });
  exchange(1, [](Words& p, Words& q) {
    const Words low =
        __builtin_shufflevector(p, q, 0, 16, 2, 18, 4, 20, 6, 22, 8, 24, 10, 26, 12, 28, 14, 30);
    q = __builtin_shufflevector(p, q, 1, 17, 3, 19, 5, 21, 7, 23, 9, 25, 11, 27, 13, 29, 15, 31);
    p = low;
  });
}

/// Sixteen neighbouring containers as words.
[[gnu::always_inline]] inline Words load_codes(const std::byte* from, int container_bytes) {
  using Bytes16 = std::uint8_t __attribute__((vector_size(16)));
  using Shorts16 = std::uint16_t __attribute__((vector_size(32)));
  if (container_bytes == 1)  // GCC 12 takes bytes apart one by one where words are the aim
    return __builtin_convertvector(__builtin_convertvector(load<Bytes16>(from), Shorts16), Words);
  if (container_bytes == 2) return __builtin_convertvector(load<Shorts16>(from), Words);
  return load<Words>(from);
}

/// Codes of 16 lines over [begin, begin + count) of k, k by k; +0 for what does not exist. The
/// element (k, line) of the operand lies at k * k_stride + line * line_stride.
struct LineCodes {
  ConstCodes codes;
  std::int64_t k_stride = 0, line_stride = 0;
  std::int64_t lines = 0, k = 0;

  void read(std::int64_t first_line, std::int64_t begin, int count, Words* to) const {
    const std::int64_t there = std::min<std::int64_t>(unit_lines, lines - first_line);
    const auto inside = static_cast<int>(std::clamp<std::int64_t>(k - begin, 0, count));
    const auto at = [&](std::int64_t i, std::int64_t line) {
      return codes.data + (i * k_stride + line * line_stride) * codes.container_bytes;
    };
    int done = 0;
    if (there == unit_lines && line_stride == 1) {
      for (; done < inside; ++done)
        to[done] = load_codes(at(begin + done, first_line), codes.container_bytes) >> codes.shift;
    } else if (k_stride == 1) {
      // Whole words change places, and are taken apart then.
      const int together = 4 / codes.container_bytes, width = 8 * codes.container_bytes;
      const std::uint32_t container = 0xFFFFFFFFU >> (32 - width);
      for (; done + 16 * together <= inside; done += 16 * together) {
        std::array<Words, 16> block{};
        for (std::int64_t line = 0; line < there; ++line)
          block[static_cast<std::size_t>(line)] = load<Words>(at(begin + done, first_line + line));
        transpose(block);
        Words* next = to + done;
        for (const Words& of_lines : block)
          for (int i = 0; i < together; ++i)
            *next++ = (of_lines >> (width * i) & container) >> codes.shift;
      }
      for (; done + 16 <= inside; done += 16) {
        std::array<Words, 16> block{};
        for (std::int64_t line = 0; line < there; ++line)
          block[static_cast<std::size_t>(line)] =
              load_codes(at(begin + done, first_line + line), codes.container_bytes) >> codes.shift;
        transpose(block);
        std::memcpy(to + done, block.data(), sizeof block);
      }
    }
    for (; done < count; ++done) {
      Words word{};
      if (done < inside) {
        for (std::int64_t line = 0; line < there; ++line)
          word[static_cast<std::size_t>(line)] = static_cast<std::uint32_t>(
              codes[(begin + done) * k_stride + (first_line + line) * line_stride]);
      }
      to[done] = word;
    }
  }
};

/// A's side of a unit: 2 panels of 8 rows.
template <class Value>
struct RowWriter {
  static constexpr bool is_double = sizeof(Value) == 8;
  static constexpr int lines = tile_rows;
  static constexpr std::size_t panels = unit_lines / lines;

  static PanelLayout layout(std::size_t places, std::size_t groups, bool with_exponents) {
    return {places,
            groups,
            lines * sizeof(Value),
            lines,
            with_exponents ? lines * 2U : 0,
            2U * lines * (is_double ? 2 : 4)};
  }

  /// For the unit of a strip's panels at `memory`.
  static RowWriter at(const PanelLayout& layout, std::byte* memory, std::int64_t unit) {
    return {layout, memory + layout.size * panels * static_cast<std::size_t>(unit)};
  }

  PanelLayout layout_of;
  std::byte* panel;

  template <class Vector>
  [[gnu::always_inline]] void deal(std::size_t at, const Vector& v) const {
    std::array<std::byte, sizeof v> bytes;
    std::memcpy(bytes.data(), &v, sizeof v);
    for (std::size_t p = 0; p < panels; ++p)
      std::memcpy(panel + p * layout_of.size + at, bytes.data() + p * sizeof v / panels,
                  sizeof v / panels);
  }
  template <class Vector>
  [[gnu::always_inline]] void values(std::size_t place, const Vector& v) const {
    deal(layout_of.values + place * layout_of.value_step, v);
  }
  [[gnu::always_inline]] void codes(std::size_t place, const Integers& v) const {
    deal(layout_of.codes + place * layout_of.code_step, __builtin_convertvector(v, Bytes));
  }
  [[gnu::always_inline]] void exponents(std::size_t place, const Integers& v) const {
    deal(layout_of.exponents + place * layout_of.exponent_step, __builtin_convertvector(v, Shorts));
  }
  [[gnu::always_inline]] void signs(std::size_t group, bool positive, const Words& v) const {
    const std::size_t at =
        layout_of.signs + group * layout_of.sign_step + (positive ? layout_of.sign_step / 2 : 0);
    if constexpr (is_double) {
      deal(at, __builtin_convertvector(v, Shorts));
    } else {
      deal(at, v);
    }
  }
};

/// B's side of a unit: 16 of a panel's columns, which are two vectors of FP64 or one of FP32. What
/// a tile combines with 4 rows at once stands 4 times side by side: codes in 32 bits, exponents,
/// and signs of FP64's lanes, in 64.
template <class Value, int Columns>
struct ColumnWriter {
  static constexpr bool is_double = sizeof(Value) == 8;
  static constexpr int lines = Columns;
  static constexpr std::size_t sign_bytes = is_double ? 8 : 4;

  static PanelLayout layout(std::size_t places, std::size_t groups, bool with_exponents) {
    return {places,
            groups,
            Columns * sizeof(Value),
            Columns * std::size_t{4},
            with_exponents ? Columns * std::size_t{8} : 0,
            2 * Columns * sign_bytes};
  }

  static ColumnWriter at(const PanelLayout& layout, std::byte* memory, std::int64_t unit) {
    const std::int64_t line = unit * unit_lines;
    return {layout, memory + layout.size * static_cast<std::size_t>(line / lines),
            static_cast<std::size_t>(line % lines)};
  }

  PanelLayout layout_of;
  std::byte* panel;
  std::size_t first_column;

  [[gnu::always_inline]] static void store_twice(std::byte* to, const Words& v) {
    store(to, __builtin_shufflevector(v, v, 0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7));
    store(to + 64, __builtin_shufflevector(v, v, 8, 8, 9, 9, 10, 10, 11, 11, 12, 12, 13, 13, 14, 14,
                                           15, 15));
  }
  /// Every number four times in a row, in 16 bits.
  [[gnu::always_inline]] static void store_copies(std::byte* to, const Words& v) {
    store_twice(to, v * 0x10001U);
  }
  template <class Vector>
  [[gnu::always_inline]] void values(std::size_t place, const Vector& v) const {
    store(panel + layout_of.values + place * layout_of.value_step + first_column * sizeof(Value),
          v * (nudge<Value> * scale<Value>));
  }
  [[gnu::always_inline]] void codes(std::size_t place, const Integers& v) const {
    store(panel + layout_of.codes + place * layout_of.code_step + first_column * 4,
          reinterpret_cast<Words>(v) * 0x01010101U);
  }
  [[gnu::always_inline]] void exponents(std::size_t place, const Integers& v) const {
    store_copies(panel + layout_of.exponents + place * layout_of.exponent_step + first_column * 8,
                 reinterpret_cast<Words>(v));
  }
  [[gnu::always_inline]] void signs(std::size_t group, bool positive, const Words& v) const {
    std::byte* const to = panel + layout_of.signs + group * layout_of.sign_step +
                          (positive ? layout_of.sign_step / 2 : 0) + first_column * sign_bytes;
    if constexpr (is_double) {
      store_copies(to, v);
    } else {
      store(to, v);
    }
  }
};

/// Places are packed so many at a time: whole blocks, and whole executions of composed rows.
inline constexpr int piece = 256;

/// One unit of an operand: what to read.
struct UnitSource {
  const FusedRow& row;
  const OperandRule& rule;
  LineCodes lines;
  Decoder decode;
  int group = 0;         ///< factors whose signs stand together
  LineCodes scales{};    ///< along K; of scaled rows
  ConstMatrix places{};  ///< where stored values stand; of a sparse A

  /// The codes at places [begin, begin + count), k by k.
  void read(std::int64_t first_line, std::int64_t begin, int count, Words* to) const {
    if (places.codes.data != nullptr) return read_sparse(first_line, begin, count, to);
    if (row.composition == Composition::chain) return lines.read(first_line, begin, count, to);
    std::array<Words, piece> ascending;
    lines.read(first_line, begin, count, ascending.data());
    const std::size_t size = row.order.size();
    for (std::size_t i = 0; i < static_cast<std::size_t>(count); ++i)
      to[i] = ascending[i / size * size + static_cast<std::size_t>(row.order[i % size])];
  }

  /// Stored values at their k's, +0 between them.
  void read_sparse(std::int64_t first_line, std::int64_t begin, int count, Words* to) const {
    std::fill_n(to, count, Words{});
    const std::int64_t group_k = row.sparsity.group_elements;
    const std::int64_t stored = row.sparsity.stored_per_group;
    const std::int64_t first = begin / group_k * stored;
    const std::int64_t last = std::min(lines.k, (begin + count) / group_k * stored);
    const std::int64_t there = std::min<std::int64_t>(unit_lines, lines.lines - first_line);
    for (std::int64_t line = 0; line < there; ++line) {
      for (std::int64_t s = first; s < last; ++s) {
        const auto place = static_cast<int>(places(first_line + line, s));
        const int k = dense_k(row.sparsity, static_cast<int>(s - first), place);
        to[k][line] = static_cast<std::uint32_t>(
            lines.codes[s * lines.k_stride + (first_line + line) * lines.line_stride]);
      }
    }
  }

  /// The scales of 16 lines at a place: factors, and what they add to exponents.
  struct Scales {
    Doubles factors;
    Integers exponents;
  };
  [[gnu::always_inline]] Scales scales_at(std::int64_t first_line, std::int64_t place) const {
    Words codes;
    scales.read(first_line, place / row.scale_k, 1, &codes);
    Scales found;
    found.exponents = reinterpret_cast<Integers>(codes) - 127;
    for (int i = 0; i < unit_lines; ++i)
      found.factors[i] = codes[i] == 255
                             ? std::numeric_limits<double>::quiet_NaN()
                             : __builtin_bit_cast(double, (std::uint64_t{codes[i]} + 896) << 52);
    return found;
  }
  bool is_new_scale(std::int64_t place) const {
    return row.scale_k != 0 && place % row.scale_k == 0;
  }

  /// Exponents of the unit's nonzero finite numbers.
  UnitRange range(std::int64_t first_line, std::int64_t begin, std::int64_t count) const {
    if (!row.wide_exponents) return {rule.min_exponent, formats::max_exponent(rule.format)};
    constexpr int none = 10000;
    Integers lowest = Integers{} + none, highest = Integers{} - none;
    Scales scale{};
    std::array<Words, piece> codes;
    for (std::int64_t at = 0; at < count; at += piece) {
      const auto length = static_cast<int>(std::min<std::int64_t>(piece, count - at));
      read(first_line, begin + at, length, codes.data());
      for (int i = 0; i < length; ++i) {
        Decoder::Factors x = decode(codes[static_cast<std::size_t>(i)]);
        if (is_new_scale(begin + at + i)) scale = scales_at(first_line, begin + at + i);
        x.exponents += scale.exponents;
        const Integers counts = ~(x.is_zero | x.is_special);
        const Integers low = (x.exponents & counts) | (none & ~counts);
        const Integers high = (x.exponents & counts) | (-none & ~counts);
        lowest = low < lowest ? low : lowest;
        highest = high > highest ? high : highest;
      }
    }
    UnitRange range{none, -none};
    for (int i = 0; i < unit_lines; ++i) {
      range.lowest = std::min(range.lowest, lowest[i]);
      range.highest = std::max(range.highest, highest[i]);
    }
    return range.lowest == none ? UnitRange{} : range;
  }

  /// Is any number of a unit infinite or NaN?
  bool any_special(std::int64_t first_line) const {
    std::array<Words, piece> codes;
    Integers special{};
    for (std::int64_t at = 0; at < lines.k; at += piece) {
      const auto length = static_cast<int>(std::min<std::int64_t>(piece, lines.k - at));
      lines.read(first_line, at, length, codes.data());
      for (int i = 0; i < length; ++i)
        special |= decode(codes[static_cast<std::size_t>(i)]).is_special;
    }
    bool any = false;
    for (int i = 0; i < unit_lines; ++i) any = any || special[i] != 0;
    return any;
  }

  /// Writes the unit's values, codes and signs.
  template <class Writer>
  UnitRange pack(std::int64_t first_line, std::int64_t begin, std::int64_t count,
                 const Writer& to) const {
    const UnitRange found = range(first_line, begin, count);
    std::array<Words, piece> codes;
    Words negative{}, positive{};
    std::size_t place = 0, group_index = 0;
    int in_group = 0;
    Scales scale{};
    for (std::int64_t at = 0; at < count; at += piece) {
      const auto length = static_cast<int>(std::min<std::int64_t>(piece, count - at));
      read(first_line, begin + at, length, codes.data());
      for (int i = 0; i < length; ++i, ++place) {
        Decoder::Factors x = decode(codes[static_cast<std::size_t>(i)]);
        if (is_new_scale(begin + at + i)) scale = scales_at(first_line, begin + at + i);
        if constexpr (Writer::is_double) {
          const Doubles values = __builtin_convertvector(x.values, Doubles);
          to.values(place, row.scale_k == 0 ? values : values * scale.factors);
        } else {
          to.values(place, x.values);
        }
        x.exponents += scale.exponents;
        const Integers code = x.exponents + (64 - found.lowest);
        to.codes(place, (code < 127 ? code : 127 + (code & 0)) & ~x.is_zero);
        const std::uint32_t bit = 1U << in_group;
        negative |= reinterpret_cast<Words>(x.is_negative & ~x.is_zero) & bit;
        positive |= reinterpret_cast<Words>(~x.is_negative & ~x.is_zero) & bit;
        if (++in_group == group) {
          to.signs(group_index, false, negative);
          to.signs(group_index, true, positive);
          negative = positive = Words{};
          ++group_index;
          in_group = 0;
        }
      }
    }
    return found;
  }

  template <class Writer>
  void pack_exponents(std::int64_t first_line, std::int64_t begin, std::int64_t count,
                      const Writer& to) const {
    std::array<Words, piece> codes;
    std::size_t place = 0;
    Scales scale{};
    for (std::int64_t at = 0; at < count; at += piece) {
      const auto length = static_cast<int>(std::min<std::int64_t>(piece, count - at));
      read(first_line, begin + at, length, codes.data());
      for (int i = 0; i < length; ++i, ++place) {
        Decoder::Factors x = decode(codes[static_cast<std::size_t>(i)]);
        if (is_new_scale(begin + at + i)) scale = scales_at(first_line, begin + at + i);
        x.exponents += scale.exponents;
        to.exponents(place, ((x.exponents + 512) << 4) & ~x.is_zero);
      }
    }
  }
};

}  // namespace guardbit::emulator::fused
