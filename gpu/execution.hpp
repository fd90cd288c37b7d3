#pragma once

#include <algorithm>
#include <array>
#include <span>
#include <string_view>
#include <utility>

#include "gpu/inputs.hpp"
#include "gpu/words.hpp"

namespace guardbit::gpu {

/// One execution's operands, being filled.
class Execution {
 public:
  Execution(const TensorCoreInstruction& instruction, Batch& batch, int index, std::uint64_t key)
      : row(instruction), random(key), index_(index), batch_(batch) {}

  std::uint64_t& a(int i, int s) { return batch_.a[position(row.m, row.stored_k(), i, s)]; }
  std::uint64_t& b(int k, int j) { return batch_.b[position(row.k, row.n, k, j)]; }
  std::uint64_t& c(int i, int j) { return batch_.c[position(row.m, row.n, i, j)]; }
  std::uint8_t& e(int i, int s) { return batch_.e[position(row.m, row.stored_k(), i, s)]; }
  int column(int i, int s) { return row.sparse ? dense_column(row, s, e(i, s)) : s; }

  template <class Make>
  void fill_a(Make make) {
    for (int i = 0; i < row.m; ++i)
      for (int s = 0; s < row.stored_k(); ++s) a(i, s) = make(i, s);
  }
  template <class Make>
  void fill_b(Make make) {
    for (int k = 0; k < row.k; ++k)
      for (int j = 0; j < row.n; ++j) b(k, j) = make(k, j);
  }
  template <class Make>
  void fill_c(Make make) {
    for (int i = 0; i < row.m; ++i)
      for (int j = 0; j < row.n; ++j) c(i, j) = make(i, j);
  }

  /// Random sign and fraction, exponent uniform in [low, high]; `kept` leading fraction bits may be
  /// non-zero.
  std::uint64_t value(const Format& type, int low, int high, int kept = 64) {
    std::uint64_t fraction = random.bits();
    if (kept < type.fraction_bits) fraction &= ~formats::low_bits(word_fraction_bits(type) - kept);
    return compose(type, random.chance(50), random.range(low, high), fraction);
  }
  std::uint64_t raw(const Format& type) { return random.bits() & word_mask(type); }
  std::uint64_t finite(const Format& type) {
    for (;;)
      if (const std::uint64_t code = raw(type); is_finite(type, code)) return code;
  }
  std::uint64_t zero(const Format& type) { return random.chance(50) ? sign_bit(type) : 0; }

  void fill_near_one() {
    fill_a([&](int, int) { return value(row.a, -2, 0); });
    fill_b([&](int, int) { return value(row.b, -2, 0); });
    fill_c([&](int, int) { return value(row.c, -2, 2); });
  }

  /// Products whose exponents lie in [low, high] as far as the formats reach; the split between a
  /// and b varies with k.
  void fill_products(int low, int high) {
    for (int k = 0; k < row.k; ++k) {
      const int target = random.range(low, high);
      const int a_low =
          std::max(min_exponent(row.a) - row.a.fraction_bits, target - max_exponent(row.b));
      const int a_high =
          std::min(max_exponent(row.a), target - min_exponent(row.b) + row.b.fraction_bits);
      const int split = a_low <= a_high ? random.range(a_low, a_high)
                                        : (target > 0 ? max_exponent(row.a)
                                                      : min_exponent(row.a) - row.a.fraction_bits);
      for (int j = 0; j < row.n; ++j) b(k, j) = value(row.b, target - split - 1, target - split);
      splits_[static_cast<std::size_t>(k)] = split;
    }
    fill_a([&](int i, int s) {
      const int split = splits_[static_cast<std::size_t>(column(i, s))];
      return value(row.a, split - 1, split);
    });
  }

  /// Every odd stored value repeats the product before it with the other sign, a few units in the
  /// last place off.
  void pair_up(int percent) {
    for (int s = 1; s < row.stored_k(); s += 2)
      for (int i = 0; i < row.m; ++i)
        if (random.chance(percent)) a(i, s) = (a(i, s - 1) ^ sign_bit(row.a)) + nudge(row.a);
    for (int k = 1; k < row.k; k += 2)
      for (int j = 0; j < row.n; ++j)
        if (random.chance(percent)) b(k, j) = b(k - 1, j) + nudge(row.b);
    clean();
  }
  std::uint64_t nudge(const Format& type) {
    return random.chance(70)
               ? 0
               : static_cast<std::uint64_t>(random.range(-2, 2)) << ignored_bits(type);
  }
  /// Nudging may have left the finite codes.
  void clean() {
    fill_a([&](int i, int s) {
      return is_finite(row.a, a(i, s) & word_mask(row.a)) ? a(i, s) & word_mask(row.a)
                                                          : zero(row.a);
    });
    fill_b([&](int k, int j) {
      return is_finite(row.b, b(k, j) & word_mask(row.b)) ? b(k, j) & word_mask(row.b)
                                                          : zero(row.b);
    });
  }

  /// c = -(sum of products) and a few units in the last place.
  void cancel() {
    fill_c([](int, int) { return std::uint64_t{0}; });
    fill_c([&](int i, int j) {
      const std::uint64_t code = word_of(row.c, -exact_total(row, batch_, index_, i, j)) +
                                 static_cast<std::uint64_t>(random.range(-3, 3));
      return is_finite(row.c, code & word_mask(row.c)) ? code & word_mask(row.c) : zero(row.c);
    });
  }

  /// Infinities, NaNs of every kind, extremes; `only_special` leaves zeros and finite extremes out.
  std::uint64_t special(const Format& type, bool only_special = false) {
    const std::uint64_t sign = random.chance(50) ? sign_bit(type) : 0;
    const std::uint64_t unit = std::uint64_t{1} << ignored_bits(type),
                        hidden = std::uint64_t{1} << word_fraction_bits(type);
    switch (random.range(only_special ? 6 : 0, 12)) {
      case 0: return sign;
      case 1: return sign | unit;
      case 2: return sign | (hidden - unit);
      case 3: return sign | compose(type, false, 0, 0);
      case 4: return sign | largest_finite_word(type);
      case 5: return sign | hidden;
      case 6:
      case 7:
      case 8:
        return has_infinity(type) ? sign | infinity_word(type)
                                  : sign | (largest_finite_word(type) + 1);
      case 9: return nan(type) | sign;
      case 10:
        return (nan(type) & ~(hidden >> 1)) | 1 |
               sign;  // signalling; tf32: payload in the ignored bits too
      case 11:
        return sign | infinity_word(type) | (random.chance(50) ? unit : 1);  // smallest payload
      default: return sign | (sign_bit(type) - 1);                           // largest payload
    }
  }
  std::uint64_t nan(const Format& type) {
    if (!has_infinity(type)) return sign_bit(type) - 1;
    return infinity_word(type) | ((std::uint64_t{1} << word_fraction_bits(type)) >> 1) |
           (random.bits() & word_fraction_mask(type));
  }
  /// Quiet or signalling, either sign.
  std::uint64_t any_nan(const Format& type) {
    const std::uint64_t signalling = has_infinity(type) && random.chance(50)
                                         ? (std::uint64_t{1} << word_fraction_bits(type)) >> 1
                                         : 0;
    return ((nan(type) & ~signalling) | (signalling != 0 ? 2U : 0U) | zero(type)) & word_mask(type);
  }
  std::uint64_t infinite(const Format& type) {
    return (has_infinity(type) ? infinity_word(type) : largest_finite_word(type)) |
           (random.chance(50) ? sign_bit(type) : 0);
  }

  const TensorCoreInstruction& row;
  Random random;
  Batch& batch() { return batch_; }
  int index() const { return index_; }

 private:
  std::size_t position(int rows, int columns, int i, int j) const {
    return element_index(rows, columns, index_, i, j);
  }
  int index_;
  Batch& batch_;
  std::array<int, 512> splits_{};
};

/// A kind of inputs; `round` counts how often the family has been used before in the recording.
struct InputFamily {
  std::string_view name;
  void (*fill)(Execution&, int round);
};
std::span<const InputFamily> floating_families();
std::span<const InputFamily> integer_families();
std::span<const InputFamily> bit_families();

}  // namespace guardbit::gpu
