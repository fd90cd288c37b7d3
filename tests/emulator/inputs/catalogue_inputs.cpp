#include "tests/emulator/inputs/catalogue_inputs.hpp"

#include <algorithm>
#include <array>

#include "formats/codec.hpp"

namespace guardbit::tests {

namespace {

/// The families of floating operands, then the one that only integers have. The seed of a case
/// depends on the place in this list.
constexpr std::array families_in_order = {InputFamily::raw_bits,
                                          InputFamily::finite_bits,
                                          InputFamily::narrow_exponents,
                                          InputFamily::wide_exponents,
                                          InputFamily::sum_cancellation,
                                          InputFamily::subnormal_operands,
                                          InputFamily::near_overflow,
                                          InputFamily::sparse_zeros,
                                          InputFamily::dominant_term,
                                          InputFamily::many_specials,
                                          InputFamily::one_special,
                                          InputFamily::infinity_times_zero,
                                          InputFamily::infinity_minus_infinity,
                                          InputFamily::huge_products,
                                          InputFamily::tiny_terms,
                                          InputFamily::exact_zeros,
                                          InputFamily::extreme_integers};

/// Draws the operands of one execution: lines of A, columns of B, C. Places that matter are shared
/// by all lines, so that every output of a batch sees them.
class Execution {
 public:
  Execution(const Types& types, InputFamily family, const Shape& shape, std::uint64_t seed)
      : t_(types),
        family_(family),
        shape_(shape),
        random_(seed),
        ranges_(ranges_of(types, family, random_)),
        tail_(tail_of(types, family, random_)) {
    const bool dense = t_.sparsity.group_elements == 0;
    stored_ = dense ? shape.k : shape.k / t_.sparsity.group_elements * t_.sparsity.stored_per_group;
    const auto slots = static_cast<std::uint64_t>(std::max(1, stored_));
    first_ = static_cast<int>(random_.below(slots));
    second_ = static_cast<int>(random_.below(slots));
    dominance_ = random_.between(1, 40);
    first_negative_ = random_.one_in(2);
    in_b_ = random_.one_in(2);
    draw_scales();
    draw_positions();
    for (int m = 0; m < shape.m; ++m) {
      for (int s = 0; s < stored_; ++s)
        a.push_back(operand(t_.a, ranges_.a_low, ranges_.a_high, s, false));
    }
    for (int k = 0; k < shape.k; ++k) {
      for (int n = 0; n < shape.n; ++n)
        b.push_back(operand(t_.b, ranges_.b_low, ranges_.b_high, slot_of(k), true));
    }
    place_single_special();
    for (int m = 0; m < shape.m; ++m) {
      for (int n = 0; n < shape.n; ++n) c.push_back(addend(m, n));
    }
  }

  std::vector<std::uint64_t> a, b, c, e, a_scale, b_scale;

 private:
  /// The stored element that the k stands by: in a sparse instruction, its group's share.
  int slot_of(int k) const {
    return stored_ == shape_.k ? k : static_cast<int>(std::int64_t{k} * stored_ / shape_.k);
  }

  std::uint64_t operand(const Format& f, int low, int high, int slot, bool is_b) {
    if (!is_floating(f)) return integer_operand(f);
    const bool at_first = slot == first_;
    const bool at_second = slot == second_;
    switch (family_) {
      case InputFamily::raw_bits: return random_code(f, random_);
      case InputFamily::finite_bits: return finite_code(f, random_);
      case InputFamily::subnormal_operands:
        if (is_b == in_b_ || random_.one_in(3)) return subnormal_code(f, random_);
        return code_between(f, -3, formats::max_exponent(f), random_);
      case InputFamily::sparse_zeros:
        if (random_.below(10) < 7) return zero_code(f, random_.one_in(2));
        break;
      case InputFamily::exact_zeros:
        if (is_b == in_b_) return zero_code(f, random_.one_in(2));
        return random_.one_in(3) ? zero_code(f, random_.one_in(2)) : finite_code(f, random_);
      case InputFamily::dominant_term:
        if (at_first)
          return code_between(f, high + dominance_ / 2, high + (dominance_ + 1) / 2, random_);
        break;
      case InputFamily::many_specials:
        if (random_.one_in(8)) return special_code(f, random_);
        break;
      case InputFamily::infinity_times_zero:
        if (at_first && is_b == in_b_) return zero_code(f, random_.one_in(2));
        if (at_first) return infinity_like(f, random_.one_in(2));
        break;
      case InputFamily::infinity_minus_infinity:
        if (at_first || at_second) return opposite_infinity(f, is_b, at_first);
        break;
      case InputFamily::huge_products:  // two factors of the same size and opposite products
        if (at_first) return code_with_exponent(f, first_negative_, high, 0);
        if (at_second) return code_with_exponent(f, first_negative_ != is_b, high, 0);
        if (random_.one_in(2)) return zero_code(f, random_.one_in(2));
        break;
      case InputFamily::tiny_terms:
        if (has_tiny_tails()) return few_bits(f);
        if (tail_.present) return tail_operand(f, at_first, is_b);
        if (random_.one_in(4)) return zero_code(f, random_.one_in(2));
        break;
      default: break;
    }
    return code_between(f, low, high, random_);
  }

  std::uint64_t tail_operand(const Format& f, bool at_first, bool is_b) {
    const bool negative = random_.one_in(2);
    const Split& split = at_first ? tail_.head : tail_.tail;
    if (!at_first && random_.one_in(2)) return zero_code(f, negative);
    return code_with_exponent(f, negative, is_b ? split.b : split.a,
                              !at_first && random_.one_in(4) ? random_.bits() : 0);
  }

  std::uint64_t few_bits(const Format& f) {
    const bool negative = random_.one_in(2);
    if (!random_.one_in(3)) return zero_code(f, negative);
    return code_with_exponent(f, negative, random_.between(-1, 1), 0);
  }

  std::uint64_t opposite_infinity(const Format& f, bool is_b, bool at_first) {
    if (is_b != in_b_) return code_with_exponent(f, false, 0, 0);
    return infinity_like(f, at_first == first_negative_);
  }

  std::uint64_t integer_operand(const Format& f) {
    const std::uint64_t largest = formats::magnitude_mask(f);
    switch (family_) {
      case InputFamily::extreme_integers: {
        const std::array<std::uint64_t, 6> codes = {formats::sign_mask(f), largest, largest,
                                                    formats::code_mask(f), 1,       0};
        return codes[random_.one_in(3) ? random_.below(codes.size()) : (first_negative_ ? 0U : 1U)];
      }
      case InputFamily::sparse_zeros: return random_.below(10) < 7 ? 0 : random_code(f, random_);
      default: return random_code(f, random_);
    }
  }

  std::uint64_t addend(int m, int n) {
    if (!is_floating(t_.c)) return integer_addend(m, n);
    switch (family_) {
      case InputFamily::raw_bits:
        return random_.one_in(8) ? zero_code(t_.c, random_.one_in(2)) : random_code(t_.c, random_);
      case InputFamily::finite_bits: return finite_code(t_.c, random_);
      case InputFamily::sum_cancellation: return cancelling(m, n);
      case InputFamily::subnormal_operands:
        return random_.one_in(3) ? zero_code(t_.c, random_.one_in(2))
                                 : subnormal_code(t_.c, random_);
      case InputFamily::many_specials:
        if (random_.one_in(3)) return special_code(t_.c, random_);
        break;
      case InputFamily::one_special:
        if (special_in_c_) return special_code(t_.c, random_);
        break;
      case InputFamily::infinity_minus_infinity:
        if (random_.one_in(2)) return infinity_like(t_.c, random_.one_in(2));
        break;
      case InputFamily::huge_products:
        if (random_.one_in(2))
          return code_between(t_.c, ranges_.c_high - 30, ranges_.c_high, random_);
        return zero_code(t_.c, random_.one_in(2));
      case InputFamily::tiny_terms:
        return random_.one_in(8) ? subnormal_code(t_.c, random_)
                                 : zero_code(t_.c, random_.one_in(2));
      case InputFamily::exact_zeros:
        return random_.one_in(8) ? finite_code(t_.c, random_) : zero_code(t_.c, random_.one_in(2));
      default: break;
    }
    if (random_.one_in(8)) return zero_code(t_.c, random_.one_in(2));
    return code_between(t_.c, ranges_.c_low, ranges_.c_high, random_);
  }

  std::uint64_t integer_addend(int m, int n) {
    switch (family_) {
      case InputFamily::extreme_integers: {
        const std::uint64_t edge = (random_.one_in(2) ? 0x7FFFFFFFU : 0x80000000U);
        const std::uint64_t step =
            random_.one_in(2) ? random_.below(4) : random_.below(std::uint64_t{1} << 22);
        return (edge == 0x7FFFFFFFU ? edge - step : edge + step) & 0xFFFFFFFFU;
      }
      case InputFamily::sum_cancellation: return cancelling(m, n);
      default: return random_.bits() & 0xFFFFFFFFU;
    }
  }

  /// -(a line * b column), then a few codes aside.
  std::uint64_t cancelling(int m, int n) {
    double sum = 0;
    for (int s = 0; s < stored_; ++s) {
      const auto at = static_cast<std::size_t>(m * stored_ + s);
      const int k = t_.sparsity.group_elements == 0
                        ? s
                        : emulator::dense_k(t_.sparsity, s, static_cast<int>(e[at]));
      double product =
          value_of(t_.a, a[at]) * value_of(t_.b, b[static_cast<std::size_t>(k * shape_.n + n)]);
      for (const bool is_b : {false, true}) {
        if (t_.scale.count == 0) break;
        const int scale = s * t_.scale.count / stored_;
        product *= is_b ? value_of(t_.scale.format,
                                   b_scale[static_cast<std::size_t>(scale * shape_.n + n)])
                        : value_of(t_.scale.format,
                                   a_scale[static_cast<std::size_t>(m * t_.scale.count + scale)]);
      }
      sum += product;
    }
    const std::uint64_t code = nearest_code(t_.c, -sum);
    if (!is_floating(t_.c)) return (code + random_.below(7) - 3) & formats::code_mask(t_.c);
    const std::uint64_t magnitude = code & formats::magnitude_mask(t_.c);
    const std::uint64_t aside = random_.below(4);
    const bool up = random_.one_in(2) || magnitude < aside;
    const std::uint64_t moved = up ? magnitude + aside : magnitude - aside;
    return (code & formats::sign_mask(t_.c)) | std::min(moved, formats::max_finite_code(t_.c));
  }

  /// Puts the one special in a line of A or a column of B; C looks after itself.
  void place_single_special() {
    if (family_ != InputFamily::one_special) return;
    const std::uint64_t where = random_.below(3);
    special_in_c_ = where == 2;
    if (where == 0 && !a.empty()) a[random_.below(a.size())] = special_code(t_.a, random_);
    if (where == 1 && !b.empty()) b[random_.below(b.size())] = special_code(t_.b, random_);
  }

  std::uint64_t scale_code() {
    const Format& f = t_.scale.format;
    if (tail_.present) return code_with_exponent(f, false, tail_.scale, 0);
    switch (family_) {
      case InputFamily::raw_bits: return random_code(f, random_);
      case InputFamily::finite_bits: return finite_code(f, random_);
      case InputFamily::many_specials:
        if (random_.one_in(4)) return random_.one_in(2) ? formats::quiet_nan_code(f) : 0;
        break;
      case InputFamily::one_special:
        if (random_.one_in(8)) return formats::quiet_nan_code(f);
        break;
      case InputFamily::sparse_zeros:
      case InputFamily::exact_zeros:
        if (random_.one_in(3)) return random_.one_in(2) ? 0 : formats::max_finite_code(f);
        break;
      case InputFamily::subnormal_operands: return random_.below(8);
      case InputFamily::wide_exponents: return code_between(f, -40, 40, random_);
      default: break;
    }
    return code_between(f, ranges_.scale - 2, ranges_.scale + 2, random_);
  }

  /// Several powers of two along K: sums near the result's smallest numbers in one group, tails
  /// around the last bit that the unit keeps there in the others.
  bool has_tiny_tails() const {
    return family_ == InputFamily::tiny_terms && t_.scale.count > 1 &&
           t_.scale.format.encoding == formats::Encoding::power_of_two;
  }

  void draw_scales() {
    if (has_tiny_tails()) return draw_tiny_scales();
    for (int i = 0; i < shape_.m * t_.scale.count; ++i) a_scale.push_back(scale_code());
    for (int i = 0; i < shape_.n * t_.scale.count; ++i) b_scale.push_back(scale_code());
  }

  void draw_tiny_scales() {
    const int lowest = lowest_exponent(t_.d);
    const int first = static_cast<int>(std::int64_t{first_} * t_.scale.count / stored_);
    std::vector<int> exponents;
    for (int i = 0; i < t_.scale.count; ++i) {
      exponents.push_back(i == first ? lowest + random_.between(0, 2)
                                     : lowest - random_.between(20, 30));
    }
    const auto code = [this](int exponent) {
      return code_with_exponent(t_.scale.format, false, exponent, 0);
    };
    for (int m = 0; m < shape_.m; ++m) {
      for (const int x : exponents) a_scale.push_back(code(x / 2));
    }
    for (const int x : exponents) {
      for (int n = 0; n < shape_.n; ++n) b_scale.push_back(code(x - x / 2));
    }
  }

  /// Increasing positions inside each group, one per chunk of stored values.
  void draw_positions() {
    const emulator::Sparsity& sparsity = t_.sparsity;
    if (sparsity.group_elements == 0) return;
    const int positions = emulator::positions(sparsity);
    const int chunks = sparsity.stored_per_group / sparsity.chunk;
    for (int line = 0; line < shape_.m; ++line) {
      for (int group = 0; group < stored_ / sparsity.stored_per_group; ++group) {
        int position = -1;
        for (int chunk = 0; chunk < chunks; ++chunk) {
          position = random_.between(position + 1, positions - (chunks - chunk));
          for (int i = 0; i < sparsity.chunk; ++i)
            e.push_back(static_cast<std::uint64_t>(position));
        }
      }
    }
  }

  const Types& t_;
  InputFamily family_;
  Shape shape_;
  Random random_;
  Ranges ranges_;
  Tail tail_;
  int stored_ = 0;
  /// stored elements where something happens
  int first_ = 0, second_ = 0;
  int dominance_ = 0;
  bool first_negative_ = false, in_b_ = false, special_in_c_ = false;
};

Types types_of(const MatrixInstruction& instruction) {
  return {instruction.a, instruction.b,     instruction.c,
          instruction.d, instruction.scale, instruction.sparsity};
}

std::uint64_t seed_of(InputFamily family, std::uint64_t seed, std::uint64_t index) {
  const auto place = std::find(families_in_order.begin(), families_in_order.end(), family);
  Random mix(seed * 64 + static_cast<std::uint64_t>(place - families_in_order.begin()));
  return mix.bits() + index * 0xD1342543DE82EF95U;
}

/// Bits of the container below the code (TF32) are noise, which units must ignore.
void store(const Format& f, const std::vector<std::uint64_t>& codes,
           std::vector<std::byte>& bytes) {
  const auto width = static_cast<std::size_t>(formats::container_bits(f) / 8);
  const int shift = formats::container_shift(f);
  const std::size_t begin = bytes.size();
  bytes.resize(begin + codes.size() * width);
  const emulator::Codes out = emulator::codes_of(f, bytes.data() + begin);
  Random noise(begin);
  for (std::size_t i = 0; i < codes.size(); ++i) {
    out.set(static_cast<std::int64_t>(i),
            (codes[i] << shift) | (noise.bits() & formats::low_bits(shift)));
  }
}

}  // namespace

std::vector<InputFamily> input_families(const MatrixInstruction& instruction) {
  const bool integers = formats::is_integer(instruction.a);
  std::vector<InputFamily> families;
  for (const InputFamily family : families_in_order) {
    const bool meets_zero = family == InputFamily::infinity_times_zero;
    const bool has_infinity =
        formats::has_infinity(instruction.a) || formats::has_infinity(instruction.b);
    const emulator::inputs::InputKinds kinds = emulator::inputs::entry_of(family).kinds;
    if (integers ? kinds.integer : kinds.floating && (has_infinity || !meets_zero))
      families.push_back(family);
  }
  return families;
}

DotInputs dot_inputs(const MatrixInstruction& instruction, InputFamily family, std::uint64_t seed,
                     std::uint64_t index, int products) {
  Types types = types_of(instruction);
  types.sparsity = {};
  const int k = products != 0 ? products : emulator::stored_k(instruction, instruction.shape.k);
  Execution x(types, family, {1, 1, k}, seed_of(family, seed, index));
  return {std::move(x.a), std::move(x.b), std::move(x.a_scale), std::move(x.b_scale), x.c.front()};
}

emulator::MatrixBatch BatchInputs::batch(const MatrixInstruction& instruction, std::byte* d) const {
  const auto codes = [this](const Format& f, const std::vector<std::byte>& bytes) {
    return emulator::codes_of(f, bytes.data() + misalignment);
  };
  emulator::MatrixBatch x;
  x.count = count;
  x.shape = shape;
  x.a = codes(instruction.a, a);
  x.b = codes(instruction.b, b);
  x.c = codes(instruction.c, c);
  if (instruction.sparsity.group_elements != 0) x.e = codes(formats::uint8, e);
  if (instruction.scale.count != 0) {
    x.a_scale = codes(instruction.scale.format, a_scale);
    x.b_scale = codes(instruction.scale.format, b_scale);
  }
  x.d = emulator::codes_of(instruction.d, d);
  return x;
}

BatchInputs batch_inputs(const MatrixInstruction& instruction, InputFamily family,
                         std::uint64_t seed, const Shape& shape, std::int64_t count,
                         std::ptrdiff_t misalignment) {
  const Types types = types_of(instruction);
  BatchInputs result;
  result.misalignment = misalignment;
  result.count = count;
  result.shape = shape;
  for (std::vector<std::byte>* bytes :
       {&result.a, &result.b, &result.c, &result.e, &result.a_scale, &result.b_scale}) {
    bytes->resize(static_cast<std::size_t>(misalignment));
  }
  for (std::int64_t t = 0; t < count; ++t) {
    const Execution x(types, family, shape, seed_of(family, seed, static_cast<std::uint64_t>(t)));
    store(instruction.a, x.a, result.a);
    store(instruction.b, x.b, result.b);
    store(instruction.c, x.c, result.c);
    store(formats::uint8, x.e, result.e);
    store(instruction.scale.format, x.a_scale, result.a_scale);
    store(instruction.scale.format, x.b_scale, result.b_scale);
  }
  return result;
}

}  // namespace guardbit::tests
