#include "tests/mutation/directed.hpp"

#include <algorithm>

namespace guardbit::tests {

namespace {

using formats::Format;

/// The parameters of an instruction that a probe is aimed at, read from its first accumulation.
struct Target {
  /// F, or the result's precision where nothing is aligned
  int kept = 0;
  /// fraction bits of the accumulation's result
  int result_bits = 0;
  /// fraction bits of D
  int final_bits = 0;
  /// bits below a large exponent where something is cut or rounded
  std::vector<int> tails;
  int block = 1;
  int zero_exponent = 0;
  int lowest_product = 0, highest_product = 0;
};

Target target_of(const MatrixInstruction& instruction) {
  const emulator::Step& step = *instruction.steps.begin();
  const emulator::AccumulatorSpec& spec = step.spec;
  Target t;
  t.result_bits =
      spec.result_fraction_bits != 0 ? spec.result_fraction_bits : step.result.fraction_bits;
  t.final_bits = instruction.d.fraction_bits;
  t.kept = spec.kept_fraction_bits != 0 ? spec.kept_fraction_bits : t.result_bits + 1;
  t.tails = {t.kept, t.result_bits};
  if (spec.summation == emulator::Summation::two_stage) {
    const int total = spec.total_kept_fraction_bits;
    t.tails = {t.kept, spec.sum_kept_fraction_bits, total != 0 ? total : t.result_bits};
  }
  if (spec.summation == emulator::Summation::two_grids)
    t.tails = {t.kept, spec.addend_kept_fraction_bits, t.result_bits};
  t.block = spec.terms != 0 ? spec.terms : instruction.shape.k;
  t.zero_exponent = spec.min_exponent;
  t.lowest_product = lowest_exponent(instruction.a) + lowest_exponent(instruction.b);
  t.highest_product = formats::max_exponent(instruction.a) + formats::max_exponent(instruction.b);
  if (instruction.scale.count != 0) {
    t.lowest_product += 2 * formats::min_exponent(instruction.scale.format);
    t.highest_product += 2 * formats::max_exponent(instruction.scale.format);
  }
  return t;
}

/// Operands under construction: all zero but the terms placed.
class Draft {
 public:
  Draft(const MatrixInstruction& instruction, std::uint64_t seed)
      : instruction_(instruction), random(seed) {
    const auto k = static_cast<std::size_t>(instruction.shape.k);
    const auto scales = static_cast<std::size_t>(instruction.scale.count);
    x.a.assign(k, 0);
    x.b.assign(k, 0);
    taken_.assign(k, false);
    const std::uint64_t one =
        scales == 0 ? 0 : code_with_exponent(instruction.scale.format, false, 0, 0);
    x.a_scale.assign(scales, one);
    x.b_scale.assign(scales, one);
    scaled_.assign(scales, false);
  }

  /// Powers of two half of the time, else all ones or anything.
  std::uint64_t fraction() {
    switch (random.below(4)) {
      case 0: return random.bits();
      case 1: return ~std::uint64_t{0};
      default: return 0;
    }
  }

  /// A place without a term; with scales every other time in the group of the term before.
  int free_place(int block) {
    for (int attempt = 0; attempt < 64; ++attempt) {
      int k = place(block);
      if (instruction_.scale.count > 1 && last_ >= 0 && random.one_in(2)) {
        k = last_ / 16 * 16 + random.between(0, 15);
      }
      if (taken_[static_cast<std::size_t>(k)]) continue;
      last_ = k;
      return k;
    }
    return random.between(0, instruction_.shape.k - 1);
  }

  /// A product of about 2^exponent at k.
  void product(int k, bool negative, int exponent, std::uint64_t a_fraction,
               std::uint64_t b_fraction) {
    const auto at = static_cast<std::size_t>(k);
    taken_[at] = true;
    if (instruction_.scale.count != 0) exponent -= scale_for(k, exponent);
    const int a_low = lowest_exponent(instruction_.a),
              a_high = formats::max_exponent(instruction_.a);
    const int b_low = lowest_exponent(instruction_.b),
              b_high = formats::max_exponent(instruction_.b);
    const int low = std::clamp(exponent - b_high, a_low, a_high);
    const int high = std::clamp(exponent - b_low, a_low, a_high);
    // The extremes make one factor subnormal.
    const int ea = random.one_in(3) ? (random.one_in(2) ? low : high)
                                    : random.between(std::min(low, high), std::max(low, high));
    const bool minus_b = random.one_in(2);
    x.a[at] = code_with_exponent(instruction_.a, negative != minus_b, ea, a_fraction);
    x.b[at] = code_with_exponent(instruction_.b, minus_b, std::clamp(exponent - ea, b_low, b_high),
                                 b_fraction);
  }

  /// The product at k once more, negated.
  void cancel(int from, int to) {
    const auto source = static_cast<std::size_t>(from), at = static_cast<std::size_t>(to);
    taken_[at] = true;
    if (instruction_.scale.count != 0) {
      const std::size_t s = slot(from), t = slot(to);
      x.a_scale[t] = x.a_scale[s];
      x.b_scale[t] = x.b_scale[s];
      scaled_[t] = true;
    }
    x.a[at] = x.a[source] ^ formats::sign_mask(instruction_.a);
    x.b[at] = x.b[source];
  }

  void addend(bool negative, int exponent, std::uint64_t fraction) {
    x.c = code_with_exponent(instruction_.c, negative,
                             std::max(exponent, lowest_exponent(instruction_.c)), fraction);
  }

  void zero_addend() { x.c = random.one_in(2) ? formats::sign_mask(instruction_.c) : 0; }

  /// Products of -0 wherever no term stands, and -0 to add.
  void make_zeros_negative() {
    for (std::size_t k = 0; k < x.a.size(); ++k) {
      if (taken_[k]) continue;
      x.a[k] = formats::sign_mask(instruction_.a);
      x.b[k] = code_with_exponent(instruction_.b, false, 0, 0);
    }
    x.c = formats::sign_mask(instruction_.c);
  }

  /// Zeros of either sign wherever no term stands.
  void sign_the_zeros() {
    for (std::size_t k = 0; k < x.a.size(); ++k) {
      if (taken_[k]) continue;
      const bool zero_in_a = random.one_in(2);
      const Format& zero = zero_in_a ? instruction_.a : instruction_.b;
      const Format& other = zero_in_a ? instruction_.b : instruction_.a;
      const bool signed_zero = formats::has_negative_zero(zero) && random.one_in(2);
      (zero_in_a ? x.a : x.b)[k] = signed_zero ? formats::sign_mask(zero) : 0;
      (zero_in_a ? x.b : x.a)[k] = code_with_exponent(other, random.one_in(2), 0, fraction());
    }
  }

 private:
  std::size_t slot(int k) const {
    return static_cast<std::size_t>(k * instruction_.scale.count / instruction_.shape.k);
  }

  /// Next to a block's border every other time.
  int place(int block) {
    const int k = instruction_.shape.k;
    if (random.one_in(2)) return random.between(0, k - 1);
    const int border = block * random.between(0, std::max(1, k / std::max(1, block)));
    return std::clamp(border - random.between(0, 1), 0, k - 1);
  }

  /// The exponent of the scales at k; the first term of a slot sets them so that it is reached.
  int scale_for(int k, int exponent) {
    const Format& f = instruction_.scale.format;
    const std::size_t s = slot(k);
    if (!scaled_[s]) {
      scaled_[s] = true;
      const int total = exponent - random.between(-2, 2);
      const int part = total / 2 + random.between(-3, 3);
      x.a_scale[s] = code_with_exponent(f, false, part, fraction());
      x.b_scale[s] = code_with_exponent(f, false, total - part, fraction());
    }
    const auto exponent_of = [&](std::uint64_t code) {
      return formats::decode(f, code).exponent + f.fraction_bits;
    };
    return exponent_of(x.a_scale[s]) + exponent_of(x.b_scale[s]);
  }

  const MatrixInstruction& instruction_;
  std::vector<bool> taken_, scaled_;
  /// where the last term stands
  int last_ = -1;

 public:
  Random random;
  DotInputs x;
};

/// Places the terms of one probe.
class Prober {
 public:
  Prober(const MatrixInstruction& instruction, std::uint64_t seed)
      : instruction_(instruction), t_(target_of(instruction)), draft_(instruction, seed) {}

  DotInputs make(Probe kind) {
    const int highest = formats::max_exponent(instruction_.d);
    const int lowest = lowest_exponent(instruction_.d);
    switch (kind) {
      case Probe::ladder:
        large_and_small(large_exponent(t_.kept), t_.kept, -3, 3, draft_.random.below(3) != 0);
        break;
      case Probe::tie: tie(); break;
      case Probe::carry: carry(large_exponent(t_.result_bits)); break;
      case Probe::smallest_grid: {
        draft_.zero_addend();
        if (draft_.random.one_in(2)) {
          tiny_tie(lowest);
          break;
        }
        const int grid = draft_.random.one_in(2) ? t_.zero_exponent : lowest;
        terms(draft_.random.between(1, 6), grid - (draft_.random.one_in(2) ? 6 : 30), grid + 3);
        break;
      }
      case Probe::block_boundary:
        large_and_small(large_exponent(t_.kept), draft_.random.between(1, t_.kept), -1, 1, true);
        break;
      case Probe::addend_alone:
        if (draft_.random.one_in(3))
          draft_.zero_addend();
        else
          addend_between(lowest,
                         draft_.random.one_in(2) ? lowest + instruction_.d.fraction_bits : highest);
        break;
      case Probe::few_terms: {
        const int high = large_exponent(t_.kept);
        terms(draft_.random.between(1, 5), high - 40, high);
        if (draft_.random.one_in(2)) addend_between(high - 40, high);
        break;
      }
      case Probe::crowd: crowd(lowest); break;
      case Probe::overflow:
        terms(draft_.random.between(1, 5), highest - 3, highest + 2);
        if (draft_.random.one_in(2)) addend_between(highest - 2, highest);
        break;
      case Probe::underflow: underflow(); break;
      case Probe::negative_zeros:
        for (int count = draft_.random.between(1, 2); count > 0; --count)
          term(true, lowest - draft_.random.between(1, 8));
        draft_.make_zeros_negative();
        return std::move(draft_.x);
      case Probe::cut: cut(lowest); return std::move(draft_.x);
      case Probe::limits: break;
    }
    if (kind == Probe::addend_alone || draft_.random.one_in(4)) draft_.sign_the_zeros();
    return std::move(draft_.x);
  }

 private:
  bool sign() { return draft_.random.one_in(2); }

  int any_tail() { return t_.tails[draft_.random.below(t_.tails.size())]; }

  /// An exponent for the large term such that terms `below` it are products, or any of a product.
  int large_exponent(int below) {
    if (draft_.random.one_in(3)) {
      return draft_.random.between(t_.lowest_product, t_.highest_product);
    }
    const int small = draft_.random.between(t_.lowest_product, t_.highest_product);
    const int highest = std::max(formats::max_exponent(instruction_.c), t_.highest_product);
    return std::clamp(small + below + draft_.random.between(-2, 2), t_.lowest_product, highest);
  }

  void term(bool negative, int exponent) { term(negative, exponent, draft_.fraction()); }

  void term(bool negative, int exponent, std::uint64_t fraction) {
    draft_.product(draft_.free_place(t_.block), negative, exponent, fraction, fraction);
  }

  void terms(int count, int low, int high) {
    for (int i = 0; i < count; ++i) term(sign(), draft_.random.between(low, high));
  }

  void addend_between(int low, int high) {
    draft_.addend(sign(), draft_.random.between(low, high), draft_.fraction());
  }

  /// One large term at 2^large, perhaps its negative, and small ones about `below` lower. C is
  /// large, small or zero.
  void large_and_small(int large, int below, int from, int to, bool cancels) {
    const bool negative = sign();
    const bool product_reaches = large <= t_.highest_product;
    const bool large_addend =
        large <= formats::max_exponent(instruction_.c) && (!product_reaches || sign());
    if (large_addend) {
      const std::uint64_t fraction = draft_.fraction();
      draft_.addend(negative, large, fraction);
      if (cancels && product_reaches) {
        draft_.product(draft_.free_place(t_.block), !negative, large, fraction >> 1, 0);
      }
    } else {
      const int k = draft_.free_place(t_.block);
      draft_.product(k, negative, large, draft_.fraction(), draft_.fraction());
      if (cancels) draft_.cancel(k, draft_.free_place(t_.block));
      if (sign())
        addend_between(large - below + from, large - below + to);
      else
        draft_.zero_addend();
    }
    const int highest_small = large - below - from;
    if (highest_small >= t_.lowest_product) {
      terms(draft_.random.between(1, 4), large - below - to, highest_small);
    }
  }

  /// Half an ulp of some result beside a large term, and terms at the end of another's bits.
  void tie() {
    const int bits = sign() ? t_.result_bits : t_.final_bits;
    const int large = large_exponent(sign() ? t_.kept : bits);
    const bool negative = sign();
    place_either(negative, large);
    const int halves = draft_.random.between(0, 2);
    for (int i = 0; i < halves; ++i) term(sign(), large - bits - draft_.random.between(-1, 2), 0);
    const int tail = any_tail();
    const int count = draft_.random.between(0, 3);
    for (int i = 0; i < count; ++i) {
      place_either(sign(), large - tail - draft_.random.between(-2, 3));
    }
  }

  /// Equal terms that reach the smallest result only together, and a few at the end of a zero's
  /// grid: what scaled operands of few exponents need.
  void crowd(int lowest) {
    const int count = 1 << draft_.random.between(1, 4);
    const bool negative = sign();
    const int each = lowest - static_cast<int>(draft_.random.below(3)) - (count > 4 ? 4 : 1);
    const int tail = t_.zero_exponent - any_tail() + draft_.random.between(-2, 1);
    draft_.zero_addend();
    // The smallest first: it sets the scales.
    term(!negative, tail, 0);
    for (int i = 0; i < count; ++i) term(negative, each, 0);
  }

  /// A term as the addend, when that is still free and holds it, or as a product.
  void place_either(bool negative, int exponent) {
    place_either(negative, exponent, draft_.fraction());
  }

  void place_either(bool negative, int exponent, std::uint64_t fraction) {
    const bool holds = exponent <= formats::max_exponent(instruction_.c) &&
                       exponent >= lowest_exponent(instruction_.c);
    if (holds && draft_.x.c == 0 && (sign() || exponent > t_.highest_product)) {
      draft_.addend(negative, exponent, fraction);
    } else {
      term(negative, exponent, fraction);
    }
  }

  /// About half of the smallest result, or one of it, and terms at the end of a zero's grid.
  void tiny_tie(int lowest) {
    term(sign(), lowest - draft_.random.between(0, 1), 0);
    const int grid = t_.zero_exponent - any_tail();
    const int count = draft_.random.between(1, 3);
    for (int i = 0; i < count; ++i) term(sign(), grid + draft_.random.between(-2, 2), 0);
  }

  void cut(int lowest) {
    const bool negative = sign();
    const int half = lowest - (t_.result_bits - t_.final_bits) - 1;
    const int first = draft_.random.between(0, instruction_.shape.k / t_.block - 1) * t_.block;
    const int shift = draft_.random.between(0, t_.block - 1);
    const int stride = sign() ? 1 : 3;
    const auto place = [&](int i) { return first + (i * stride + shift) % t_.block; };
    draft_.zero_addend();
    draft_.product(place(0), negative, lowest, 0, 0);
    const auto bit = static_cast<unsigned>(draft_.random.between(0, instruction_.a.fraction_bits));
    draft_.product(place(1), !negative, half, std::uint64_t{1} << bit, 0);
    if (t_.block < 4) return;
    draft_.product(place(2), !negative, t_.zero_exponent - any_tail(), 0, 0);
    draft_.product(place(3), negative, t_.zero_exponent - any_tail() - draft_.random.between(-1, 1),
                   0, 0);
  }

  void underflow() {
    const bool negative = sign();
    place_either(negative, formats::min_exponent(instruction_.d), 0);
    for (int count = draft_.random.between(1, 2); count > 0; --count)
      term(!negative, lowest_exponent(instruction_.d) - draft_.random.between(0, 3));
  }

  void carry(int large) {
    const bool negative = sign();
    const int count = draft_.random.between(2, std::min(6, std::max(2, t_.block)));
    for (int i = 0; i < count; ++i) term(negative, large - draft_.random.between(0, 1));
    if (sign()) draft_.addend(negative, large, draft_.fraction());
    const int below = sign() ? t_.kept : t_.result_bits;
    terms(draft_.random.between(0, 3), large - below - 1, large - below + 2);
  }

  const MatrixInstruction& instruction_;
  const Target t_;
  Draft draft_;
};

DotInputs integers(const MatrixInstruction& instruction, std::uint64_t seed) {
  Random random(seed);
  const auto extreme = [&random](const Format& f) {
    const std::array<std::uint64_t, 5> codes = {0, 1, formats::code_mask(f), formats::sign_mask(f),
                                                formats::magnitude_mask(f)};
    return codes[random.below(codes.size())];
  };
  DotInputs x;
  const std::array<std::uint64_t, 2> favourites = {extreme(instruction.a), extreme(instruction.b)};
  for (int k = 0; k < instruction.shape.k; ++k) {
    x.a.push_back(random.one_in(3) ? extreme(instruction.a) : favourites[0]);
    x.b.push_back(random.one_in(3) ? extreme(instruction.b) : favourites[1]);
  }
  const std::uint64_t aside = random.below(random.one_in(2) ? 4 : 1 << 20);
  x.c = (random.one_in(2) ? 0x7FFFFFFF - aside : 0x80000000 + aside) & 0xFFFFFFFF;
  return x;
}

}  // namespace

TestVector probe(const MatrixInstruction& instruction, Probe kind, std::uint64_t seed) {
  TestVector v;
  v.purpose = probe_names.at(static_cast<std::size_t>(kind));
  if (kind == Probe::limits)
    v.x = integers(instruction, seed);
  else
    v.x = Prober(instruction, seed).make(kind);
  return v;
}

}  // namespace guardbit::tests
