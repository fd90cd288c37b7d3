#include "emulator/probe/aimed_questions.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <optional>
#include <utility>

#include "emulator/probe/operand_draw.hpp"
#include "formats/codec.hpp"

namespace guardbit::emulator {

namespace {

/// Draws terms at the distances that the fields of an instruction give.
class Aimer {
 public:
  Aimer(const BlackBox& box, const MatrixInstruction& instruction, std::mt19937_64& random)
      : box_(box), draw_(box, random) {
    const Step* const dot =
        std::find_if(instruction.steps.begin(), instruction.steps.end() - 1,
                     [](const Step& s) { return s.operation == Operation::dot; });
    const AccumulatorSpec& spec = dot->spec;
    const int result_bits =
        spec.result_fraction_bits != 0 ? spec.result_fraction_bits : dot->result.fraction_bits;
    result_bits_ = {result_bits, box.d.fraction_bits};
    cut_bits_ = result_bits - dot->result.fraction_bits;
    kept_ = spec.kept_fraction_bits != 0 ? spec.kept_fraction_bits : result_bits + 1;
    tails_ = {kept_, result_bits};
    length_ = static_cast<std::size_t>(spec.terms == 0 ? box.k : std::min(spec.terms, box.k));
    if (spec.summation == Summation::two_stage)
      tails_ = {kept_, spec.sum_kept_fraction_bits,
                spec.total_kept_fraction_bits != 0 ? spec.total_kept_fraction_bits : result_bits};
    if (spec.summation == Summation::two_grids)
      tails_ = {kept_, spec.addend_kept_fraction_bits, result_bits};
    staged_ = spec.summation == Summation::two_stage || spec.summation == Summation::two_grids;
    zero_ = spec.min_exponent;
    least_ = least_power(box.a) + least_power(box.b);
    greatest_ = greatest_power(box.a) + greatest_power(box.b);
    if (box.scale.count != 0) {
      least_ += 2 * least_power(box.scale.format);
      greatest_ += 2 * greatest_power(box.scale.format);
    }
  }

  Question draw() {
    q_ = zero_question(box_);
    scaled_.assign(static_cast<std::size_t>(box_.scale.count), false);
    last_.reset();
    // Half of the questions use one block of products, which is rounded once.
    block_.reset();
    if (length_ < static_cast<std::size_t>(box_.k) && draw_.coin()) block_ = length_;
    first_ = draw_.place() / length_ * length_;
    if (cut_bits_ > 0 && draw_.below(6) == 0) {
      cut();
      return std::move(q_);
    }
    switch (draw_.below(10)) {
      case 9: through_blocks(); break;
      case 8: only_zeros(); break;
      case 7: below_normal(); break;
      case 6: beside_power(); break;
      case 0: below_large(); break;
      case 1: tie(large_exponent()); break;
      case 2: carry(); break;
      case 3: smallest_tie(); break;
      case 4: smallest_grid(); break;
      default: few_terms(); break;
    }
    if (draw_.below(6) == 0) sign_zeros();
    return std::move(q_);
  }

 private:
  /// Bits from a large term to the end of what is kept. In two stages the assumed widths may be far
  /// off, since they are confounded, so any distance is tried at times.
  int tail() {
    if (staged_ && draw_.below(4) == 0) return draw_.between(20, 48);
    return tails_[draw_.below(tails_.size())];
  }
  int least_result() const { return least_power(box_.d); }

  /// An exponent at which terms at the last kept bits are still products; or that of any product.
  int large_exponent() {
    if (draw_.below(4) == 0) return draw_.between(least_, greatest_);
    const int small = draw_.between(least_, greatest_);
    return std::clamp(small + tail() + draw_.between(-2, 2), least_,
                      std::max(greatest_, greatest_power(box_.c)));
  }

  std::size_t slot(std::size_t at) const {
    return at * scaled_.size() / static_cast<std::size_t>(box_.k);
  }

  /// A term; the first of a slot sets its scales so that it is reached.
  void term(DrawnTerm x) {
    std::size_t at = draw_.place();
    if (block_) at = std::min(at % *block_ + first_, static_cast<std::size_t>(box_.k) - 1);
    if (!scaled_.empty() && last_ && draw_.coin()) {  // among those that share a scale
      const std::size_t each = static_cast<std::size_t>(box_.k) / scaled_.size();
      at = *last_ / each * each + draw_.below(each);
    }
    last_ = at;
    if (!scaled_.empty()) x.exponent -= scale_exponent(at, x.exponent);
    x.at = at;
    draw_.set_product(q_, x);
  }

  int scale_exponent(std::size_t at, int exponent) {
    const Format& f = box_.scale.format;
    const std::size_t s = slot(at);
    if (!scaled_[s]) {
      scaled_[s] = true;
      const int total = exponent - draw_.between(-2, 2);
      const int part = total / 2 + draw_.between(-3, 3);
      q_.a_scale[s] = number_code(f, false, std::clamp(part, least_power(f), greatest_power(f)));
      q_.b_scale[s] =
          number_code(f, false, std::clamp(total - part, least_power(f), greatest_power(f)));
    }
    const auto exponent_of = [&](std::uint64_t code) {
      const formats::Value v = formats::decode(f, code);
      return v.exponent + static_cast<int>(std::bit_width(v.significand)) - 1;
    };
    return exponent_of(q_.a_scale[s]) + exponent_of(q_.b_scale[s]);
  }

  /// Makes the term the addend, if C is still zero and its format reaches the exponent, or a
  /// product; where both would do, at random.
  void either(const DrawnTerm& x) {
    const bool holds = box_.has_addend && q_.c == 0 && x.exponent <= greatest_power(box_.c) &&
                       x.exponent >= least_power(box_.c);
    if (holds && (x.exponent > greatest_ || draw_.coin()))
      draw_.set_addend(q_, x);
    else
      term(x);
  }

  /// One large term, perhaps its negative, and small ones at the last bits kept below it.
  void below_large() {
    const int large = large_exponent();
    const bool negative = draw_.coin(), exact = draw_.coin();
    either({.exact = exact, .negative = negative, .exponent = large});
    if (draw_.coin()) term({.exact = exact, .negative = !negative, .exponent = large});
    const int distance = draw_.coin() ? tail() : draw_.between(1, kept_);
    for (std::uint64_t count = 1 + draw_.below(4); count > 0; --count)
      either({.exact = draw_.coin(),
              .negative = draw_.coin(),
              .exponent = large - distance + draw_.between(-3, 3)});
  }

  /// Half an ulp of a result beside a large term, and terms at the last kept bits.
  void tie(int large) {
    either({.exact = draw_.coin(), .negative = draw_.coin(), .exponent = large});
    const int bits = result_bits_[draw_.below(2)];
    for (std::uint64_t count = 1 + draw_.below(2); count > 0; --count)
      either({.exact = true,
              .negative = draw_.coin(),
              .exponent = large - bits - draw_.between(0, 2)});
    for (std::uint64_t count = draw_.below(4); count > 0; --count)
      either({.exact = draw_.coin(),
              .negative = draw_.coin(),
              .exponent = large - tail() - draw_.between(-2, 3)});
  }

  /// An addend that is a power of two, plus or minus half an ulp of the binade above or below, and
  /// terms at the last kept bits.
  void beside_power() {
    const int large = std::min(large_exponent(), greatest_power(box_.c));
    const bool negative = draw_.coin();
    draw_.set_addend(q_, {.exact = true, .negative = negative, .exponent = large});
    if (draw_.below(4) == 0)
      term({.exact = true, .negative = draw_.coin(), .exponent = large - draw_.between(1, 10)});
    term({.exact = true,
          .negative = draw_.below(4) != 0 ? !negative : negative,
          .exponent = large - result_bits_[draw_.below(2)] - draw_.between(0, 2)});
    for (std::uint64_t count = 1 + draw_.below(2); count > 0; --count)
      term({.exact = true,
            .negative = draw_.coin(),
            .exponent = large - tail() - draw_.between(-2, 2)});
  }

  /// Terms of one sign that carry, and small ones.
  void carry() {
    const int large = large_exponent();
    const bool negative = draw_.coin();
    for (std::uint64_t count = 2 + draw_.below(5); count > 0; --count)
      either(
          {.exact = draw_.coin(), .negative = negative, .exponent = large - draw_.between(0, 1)});
    for (std::uint64_t count = draw_.below(4); count > 0; --count)
      term({.exact = draw_.coin(),
            .negative = draw_.coin(),
            .exponent = large - tail() + draw_.between(-1, 2)});
  }

  /// The least result or half of it, as one term or as the sum of several, and terms at the last
  /// bits that a zero's exponent leaves; that exponent may differ from the assumed one.
  void smallest_tie() {
    const int zero = draw_.coin() ? zero_ : formats::min_exponent(box_.d) - draw_.between(0, 24);
    const bool negative = draw_.coin();
    if (draw_.coin())
      term(
          {.exact = true, .negative = !negative, .exponent = zero - tail() + draw_.between(-2, 1)});
    const auto doublings = static_cast<int>(draw_.below(5));
    const int each = least_result() - draw_.between(0, 1) - doublings;
    for (int count = 1 << doublings; count > 0; --count)
      term({.exact = true, .negative = negative, .exponent = each});
    for (std::uint64_t count = draw_.below(3); count > 0; --count)
      term({.exact = draw_.coin(),
            .negative = draw_.coin(),
            .exponent = zero - tail() + draw_.between(-2, 2)});
    if (draw_.below(4) == 0) q_.c = formats::sign_mask(box_.c);
  }

  /// A first block whose sum has terms at its last bits, and a later block that subtracts the large
  /// term. A result narrower than the sum would hide those bits otherwise.
  void through_blocks() {
    const std::size_t k = q_.a.size();
    if (length_ >= k) return few_terms();
    const int large = std::min({large_exponent(), greatest_ - 1, greatest_power(box_.c)});
    const bool negative = draw_.coin();
    const bool carries = !box_.has_addend || draw_.coin();
    for (std::uint64_t count = 1 + draw_.below(3); count > 0; --count)
      draw_.set_product(q_, {.exact = draw_.coin(),
                             .negative = draw_.coin(),
                             .exponent = large - tail() + draw_.between(-3, 2),
                             .at = draw_.below(length_)});
    if (carries)
      draw_.set_product(
          q_, {.exact = true, .negative = negative, .exponent = large, .at = draw_.below(length_)});
    if (box_.has_addend)
      draw_.set_addend(q_, {.exact = true, .negative = negative, .exponent = large});
    const bool both = carries && box_.has_addend;
    draw_.set_product(q_, {.exact = true,
                           .negative = !negative,
                           .exponent = large + (both ? 1 : 0),
                           .at = length_ + draw_.below(k - length_)});
  }

  /// Sums just below the least normal result, which may round up to it: flushing before and after
  /// rounding differ there (IEEE 754-2019 7.5).
  void below_normal() {
    const int normal = formats::min_exponent(box_.d);
    const bool negative = draw_.coin();
    either({.exact = true, .negative = negative, .exponent = normal});
    for (std::uint64_t count = 1 + draw_.below(2); count > 0; --count)
      either({.exact = draw_.coin(),
              .negative = !negative,
              .exponent = normal - box_.d.fraction_bits - draw_.between(0, 3)});
  }

  /// Zeros of either sign, often all negative: the sign of the result shows with which zero a sum
  /// begins.
  void only_zeros() {
    const bool alike = draw_.coin();
    for (std::size_t i = 0; i < q_.a.size(); ++i) {
      const bool negative = alike || draw_.coin();
      if (negative && formats::has_negative_zero(box_.a)) q_.a[i] = formats::sign_mask(box_.a);
      q_.b[i] = number_code(box_.b, false, 0);
    }
    if (box_.has_addend && draw_.coin()) q_.c = formats::sign_mask(box_.c);
  }

  /// A result that is the upper part of a wider number: the least one less half of the last bit of
  /// that number, and terms at the last bits that a zero's exponent leaves, in one block.
  void cut() {
    const bool negative = draw_.coin();
    const std::size_t shift = draw_.below(length_), stride = draw_.coin() ? 1 : length_ - 1;
    const auto place = [&](std::size_t i) { return first_ + (i * stride + shift) % length_; };
    if (length_ < 2 || first_ + length_ > q_.a.size()) return few_terms();
    if (draw_.coin()) q_.c = formats::sign_mask(box_.c);
    draw_.set_product(
        q_, {.exact = true, .negative = negative, .exponent = least_result(), .at = place(0)});
    draw_.set_product(q_, {.exact = draw_.coin(),
                           .negative = !negative,
                           .exponent = least_result() - cut_bits_ - 1,
                           .at = place(1)});
    for (std::size_t i = 2; i < std::min<std::size_t>(length_, 4); ++i)
      draw_.set_product(q_, {.exact = true,
                             .negative = draw_.coin(),
                             .exponent = zero_ - tail() + draw_.between(-1, 1),
                             .at = place(i)});
  }

  void smallest_grid() {
    const int grid = draw_.coin() ? zero_ : least_result();
    const int depth = draw_.coin() ? 6 : 30;
    for (std::uint64_t count = 1 + draw_.below(6); count > 0; --count)
      term({.exact = draw_.coin(),
            .negative = draw_.coin(),
            .exponent = draw_.between(grid - depth, grid + 3)});
  }

  void few_terms() {
    const int high = large_exponent();
    for (std::uint64_t count = 1 + draw_.below(5); count > 0; --count)
      term({.exact = draw_.coin(),
            .negative = draw_.coin(),
            .exponent = draw_.between(high - 40, high)});
    if (draw_.coin())
      draw_.set_addend(
          q_,
          {.exact = true, .negative = draw_.coin(), .exponent = draw_.between(high - 40, high)});
  }

  /// Zeros of either sign wherever no term stands.
  void sign_zeros() {
    for (std::size_t i = 0; i < q_.a.size(); ++i) {
      if (q_.a[i] != 0) continue;
      if (formats::has_negative_zero(box_.a) && draw_.coin()) q_.a[i] = formats::sign_mask(box_.a);
      q_.b[i] = number_code(box_.b, draw_.coin(), 0);
    }
  }

  const BlackBox& box_;
  OperandDraw draw_;
  Question q_;
  /// slots whose scales are set
  std::vector<bool> scaled_;
  /// where the last term stands
  std::optional<std::size_t> last_;
  /// length of the block to which terms are confined
  std::optional<std::size_t> block_;
  std::size_t length_ = 1, first_ = 0;
  std::array<int, 2> result_bits_{};
  /// bits of a wider number that its result lacks
  int cut_bits_ = 0;
  /// bits below a large exponent where something is cut or rounded
  std::vector<int> tails_;
  bool staged_ = false;
  int kept_ = 0, zero_ = 0;
  /// exponents of products
  int least_ = 0, greatest_ = 0;
};

}  // namespace

std::vector<Question> aimed_questions(const BlackBox& box, const MatrixInstruction& instruction,
                                      std::size_t count, std::mt19937_64& random) {
  std::vector<Question> list;
  list.reserve(count);
  Aimer aimer(box, instruction, random);
  for (std::size_t i = 0; i < count; ++i) list.push_back(aimer.draw());
  return list;
}

}  // namespace guardbit::emulator
