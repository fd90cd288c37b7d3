#pragma once

// Access to the operands of one execution of a batch, with random words to fill them. The functions
// of mixed_rows_*.cpp write through it.

#include "gpu/inputs/input_shape.hpp"
#include "gpu/operands/register_words.hpp"
#include "gpu/operands/tensor_core_batch.hpp"

namespace guardbit::gpu {

/// The operands of execution `index` of a batch. Element (i, s) of A is a stored value.
class Execution {
 public:
  Execution(const TensorCoreInstruction& executed, Batch& batch, int index, std::uint64_t key)
      : instruction(executed), random(key), index_(index), batch_(batch) {}

  std::uint64_t& a(int i, int s) {
    return batch_.a[position(instruction.m, instruction.stored_k(), i, s)];
  }
  std::uint64_t& b(int k, int j) { return batch_.b[position(instruction.k, instruction.n, k, j)]; }
  std::uint64_t& c(int i, int j) { return batch_.c[position(instruction.m, instruction.n, i, j)]; }
  std::uint8_t& e(int i, int s) {
    return batch_.e[position(instruction.m, instruction.stored_k(), i, s)];
  }
  int column(int i, int s) {
    return instruction.sparse ? dense_column(instruction, s, e(i, s)) : s;
  }

  template <class Make>
  void fill_a(Make make) {
    for (int i = 0; i < instruction.m; ++i)
      for (int s = 0; s < instruction.stored_k(); ++s) a(i, s) = make(i, s);
  }
  template <class Make>
  void fill_b(Make make) {
    for (int k = 0; k < instruction.k; ++k)
      for (int j = 0; j < instruction.n; ++j) b(k, j) = make(k, j);
  }
  template <class Make>
  void fill_c(Make make) {
    for (int i = 0; i < instruction.m; ++i)
      for (int j = 0; j < instruction.n; ++j) c(i, j) = make(i, j);
  }

  /// Random sign and fraction, exponent uniform in [low, high]; `kept` leading fraction bits may be
  /// non-zero.
  std::uint64_t value(const Format& type, int low, int high, int kept = 64) {
    std::uint64_t fraction = random.bits();
    if (kept < type.fraction_bits) fraction &= ~formats::low_bits(word_fraction_bits(type) - kept);
    const int exponent = random.between(low, high);
    return compose(type, random.chance(50), exponent, fraction);
  }
  std::uint64_t raw(const Format& type) { return random.bits() & word_mask(type); }
  std::uint64_t finite(const Format& type) {
    for (;;)
      if (const std::uint64_t code = raw(type); is_finite(type, code)) return code;
  }
  std::uint64_t zero(const Format& type) { return random.chance(50) ? sign_bit(type) : 0; }

  std::uint64_t nudge(const Format& type) {
    return random.chance(70)
               ? 0
               : static_cast<std::uint64_t>(random.between(-2, 2)) << ignored_bits(type);
  }
  /// Infinities, NaNs of every kind, extremes; `only_special` leaves zeros and finite extremes out.
  std::uint64_t special(const Format& type, bool only_special = false) {
    const std::uint64_t sign = random.chance(50) ? sign_bit(type) : 0;
    const std::uint64_t lowest_bit = std::uint64_t{1} << ignored_bits(type),
                        hidden = std::uint64_t{1} << word_fraction_bits(type);
    switch (random.between(only_special ? 6 : 0, 12)) {
      case 0: return sign;
      case 1: return sign | lowest_bit;
      case 2: return sign | (hidden - lowest_bit);
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
        return sign | infinity_word(type) |
               (random.chance(50) ? lowest_bit : 1);  // smallest payload
      default: return sign | (sign_bit(type) - 1);    // largest payload
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

  const TensorCoreInstruction& instruction;
  Random random;
  Batch& batch() { return batch_; }
  int index() const { return index_; }

 private:
  std::size_t position(int rows, int columns, int i, int j) const {
    return element_index(rows, columns, index_, i, j);
  }
  int index_;
  Batch& batch_;
};

}  // namespace guardbit::gpu
