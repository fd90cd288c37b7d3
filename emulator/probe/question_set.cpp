#include "emulator/probe/question_set.hpp"

#include <algorithm>
#include <array>

#include "emulator/probe/operand_draw.hpp"
#include "formats/codec.hpp"

namespace guardbit::emulator {

namespace {

/// Draws questions to one unit.
class Drawer {
 public:
  Drawer(const BlackBox& box, std::mt19937_64& random)
      : box_(box), random_(random), draw_(box, random) {}

  Question draw(Topic topic) {
    if (formats::is_integer(box_.d)) return integers(topic);
    switch (topic) {
      case Topic::grid:
        switch (draw_.below(5)) {
          case 0: return ladder();
          case 1: return tie();
          case 2: return narrow();
          case 3: return crowd();
          default: return ladder();
        }
      case Topic::tiny: return draw_.below(4) == 0 ? tiny_crowd() : tiny();
      case Topic::specials: return draw_.below(2) == 0 ? special() : overflowing();
      case Topic::raw: break;
    }
    return raw();
  }

 private:
  int least_product() const { return least_power(box_.a) + least_power(box_.b); }
  int greatest_product() const { return greatest_power(box_.a) + greatest_power(box_.b); }

  int scale_spread() { return std::array{0, 3, 9, 22}[draw_.below(4)]; }
  void scales(Question& q, int spread) {
    if (box_.scale.count == 0) return;
    for (std::vector<std::uint64_t>* list : {&q.a_scale, &q.b_scale}) {
      for (std::uint64_t& s : *list) {
        s = draw_.number(box_.scale.format, draw_.between(-spread, spread), false);
      }
    }
  }

  /// An exponent at which products, addends and results are all normal numbers.
  int ordinary_exponent() {
    const int low = std::max({formats::min_exponent(box_.a) + formats::min_exponent(box_.b),
                              formats::min_exponent(box_.c), formats::min_exponent(box_.d)});
    const int high =
        std::min({greatest_product() - 1, greatest_power(box_.c) - 4, greatest_power(box_.d) - 4});
    return draw_.between(std::min(low + 12, high), high);
  }

  /// One or two large terms, which may cancel, and small ones around the last bits kept below them.
  Question ladder() {
    Question q = zero_question(box_);
    const bool by_addend = box_.has_addend && draw_.below(2) == 0;
    int top = ordinary_exponent();
    const int highest = std::min(greatest_power(box_.c), greatest_power(box_.d)) - 4;
    if (by_addend && greatest_product() < highest && draw_.coin())
      top = draw_.between(greatest_product(), highest);
    const bool negative = draw_.coin();
    const int distance = draw_.between(3, 2 + formats::precision(box_.d) + 14);
    const auto small = 1 + draw_.below(6);
    for (std::uint64_t i = 0; i < small; ++i) {
      draw_.set_product(q, {.exact = draw_.coin(),
                            .negative = draw_.coin(),
                            .exponent = top - distance + draw_.between(-3, 3),
                            .at = draw_.place()});
    }
    if (box_.has_addend && !by_addend && draw_.coin())
      draw_.set_addend(q, {.exact = draw_.coin(),
                           .negative = draw_.coin(),
                           .exponent = top - distance + draw_.between(-3, 3)});
    const std::size_t first = draw_.place();
    const bool exact = draw_.below(4) != 0;
    if (by_addend) {
      draw_.set_addend(q, {.exact = exact, .negative = negative, .exponent = top});
    } else {
      draw_.set_product(q, {.exact = exact, .negative = negative, .exponent = top, .at = first});
    }
    const std::size_t second = draw_.place();
    if (draw_.below(3) != 0 && (by_addend || second != first)) {
      draw_.set_product(q, {.exact = exact, .negative = !negative, .exponent = top, .at = second});
    }
    scales(q, scale_spread());
    return q;
  }

  /// Terms around half an ulp of the result.
  Question tie() {
    Question q = zero_question(box_);
    const int top = ordinary_exponent();
    const bool negative = draw_.coin();
    if (box_.has_addend && draw_.coin()) {
      draw_.set_addend(q, {.exact = draw_.coin(), .negative = negative, .exponent = top});
    } else {
      draw_.set_product(
          q, {.exact = draw_.coin(), .negative = negative, .exponent = top, .at = draw_.place()});
    }
    const int bits = draw_.coin() ? box_.d.fraction_bits : std::min(box_.d.fraction_bits, 13);
    const auto small = 1 + draw_.below(3);
    for (std::uint64_t i = 0; i < small; ++i) {
      draw_.set_product(q, {.exact = draw_.below(3) != 0,
                            .negative = draw_.coin(),
                            .exponent = top - bits - draw_.between(-1, 4),
                            .at = draw_.place()});
    }
    scales(q, scale_spread());
    return q;
  }

  /// Every term within a few binades, the addend near or far.
  Question narrow() {
    Question q = zero_question(box_);
    const int span = std::array{1, 4, 8, 14}[draw_.below(4)];
    const int top = ordinary_exponent();
    for (std::size_t i = 0; i < q.a.size(); ++i) {
      draw_.set_product(q, {.exact = false,
                            .negative = draw_.coin(),
                            .exponent = top - draw_.between(0, span),
                            .at = i});
    }
    if (draw_.below(3) != 0)
      draw_.set_addend(
          q, {.exact = false, .negative = draw_.coin(), .exponent = top + draw_.between(-span, 3)});
    scales(q, scale_spread());
    return q;
  }

  /// Terms of one sign that carry past the next power of two.
  Question crowd() {
    Question q = zero_question(box_);
    const int top = ordinary_exponent();
    const bool negative = draw_.coin();
    for (std::size_t i = 0; i < q.a.size(); ++i) {
      if (draw_.below(3) != 0)
        draw_.set_product(
            q,
            {.exact = false, .negative = negative, .exponent = top - draw_.between(0, 1), .at = i});
    }
    draw_.set_product(q, {.exact = false,
                          .negative = draw_.coin(),
                          .exponent = top - draw_.between(8, 30),
                          .at = draw_.place()});
    if (draw_.coin())
      draw_.set_addend(
          q, {.exact = false, .negative = negative, .exponent = top + draw_.between(-2, 4)});
    return q;
  }

  int smallest_result() const { return least_power(box_.d); }

  /// A few terms around the smallest results, and around the exponents that zeros contribute.
  Question tiny() {
    Question q = zero_question(box_);
    const int base = std::max(least_product(), smallest_result() - 14);
    const int reach = std::min(greatest_product(), formats::min_exponent(box_.d) + 4);
    const auto count = 1 + draw_.below(4);
    const int around = draw_.between(base, std::max(base, reach));
    const bool negative = draw_.coin();
    for (std::uint64_t i = 0; i < count; ++i) {
      const int e =
          draw_.coin() ? around + draw_.between(-2, 2) : draw_.between(base, std::max(base, reach));
      draw_.set_product(q, {.exact = draw_.coin(),
                            .negative = draw_.below(3) == 0 ? !negative : negative,
                            .exponent = e,
                            .at = draw_.place()});
    }
    if (box_.has_addend) {
      switch (draw_.below(5)) {
        case 0:
          draw_.set_addend(q, {.exact = draw_.coin(),
                               .negative = draw_.coin(),
                               .exponent = draw_.between(least_power(box_.c),
                                                         formats::min_exponent(box_.c) + 2)});
          break;
        case 1: q.c = formats::sign_mask(box_.c); break;
        default: break;
      }
    }
    if (draw_.below(8) == 0) {  // zeros of the other sign wherever nothing stands
      for (std::size_t i = 0; i < q.a.size(); ++i) {
        if (q.a[i] == 0 && formats::has_negative_zero(box_.a)) q.a[i] = formats::sign_mask(box_.a);
      }
    }
    if (draw_.below(4) == 0) {  // one subnormal factor
      const std::size_t at = draw_.place();
      q.a[at] = random_() & formats::fraction_mask(box_.a);
      const bool negative_b = draw_.coin();
      const int exponent_b = draw_.between(formats::min_exponent(box_.b), greatest_power(box_.b));
      q.b[at] = draw_.number(box_.b, exponent_b, negative_b);
      if (draw_.coin() && box_.a == box_.b) std::swap(q.a[at], q.b[at]);
    }
    if (box_.scale.count != 0) {
      const int low = std::max(least_power(box_.scale.format), smallest_result() / 2 - 12);
      for (std::vector<std::uint64_t>* list : {&q.a_scale, &q.b_scale}) {
        for (std::uint64_t& s : *list)
          s = draw_.number(box_.scale.format, draw_.between(low, low + 24), false);
      }
    }
    return q;
  }

  /// Every product tiny.
  Question tiny_crowd() {
    Question q = zero_question(box_);
    const int base = std::max(least_product(), smallest_result() - 14);
    const int top = std::min(greatest_product(), base + draw_.between(4, 30));
    for (std::size_t i = 0; i < q.a.size(); ++i)
      draw_.set_product(q, {.exact = draw_.coin(),
                            .negative = draw_.coin(),
                            .exponent = draw_.between(base, std::max(base, top)),
                            .at = i});
    if (draw_.below(3) == 0)
      draw_.set_addend(
          q, {.exact = draw_.coin(),
              .negative = draw_.coin(),
              .exponent = draw_.between(least_power(box_.c), formats::min_exponent(box_.c) + 4)});
    return q;
  }

  std::uint64_t special_code(const Format& f) {
    switch (draw_.below(9)) {
      case 0: return 0;
      case 1: return formats::sign_mask(f);
      case 2: return number_code(f, draw_.coin(), 0);
      case 3: return formats::max_finite_code(f) | (draw_.coin() ? formats::sign_mask(f) : 0);
      case 4: return 1;
      case 5:
      case 6:
        if (!formats::has_infinity(f)) return formats::max_finite_code(f);
        return formats::infinity_code(f) | (draw_.coin() ? formats::sign_mask(f) : 0);
      default: break;
    }
    if (!formats::has_nan(f)) return random_() & formats::code_mask(f);
    if (f.specials != formats::Specials::ieee) return formats::quiet_nan_code(f);
    const std::uint64_t payload = random_() & formats::fraction_mask(f);
    return formats::infinity_code(f) | (payload == 0 ? 1U : payload) |
           (draw_.coin() ? formats::sign_mask(f) : 0);
  }
  Question special() {
    Question q = draw_.below(3) == 0 ? narrow() : zero_question(box_);
    const auto count = 1 + draw_.below(3);
    for (std::uint64_t i = 0; i < count; ++i) {
      const std::size_t at = draw_.place();
      q.a[at] = special_code(box_.a) & formats::code_mask(box_.a);
      q.b[at] = special_code(box_.b) & formats::code_mask(box_.b);
    }
    if (box_.has_addend && draw_.coin()) q.c = special_code(box_.c) & formats::code_mask(box_.c);
    if (box_.scale.count != 0 && draw_.below(8) == 0)
      q.a_scale[0] = special_code(box_.scale.format);
    return q;
  }
  /// Terms around the largest result.
  Question overflowing() {
    Question q = zero_question(box_);
    const int top = std::min(greatest_product(), greatest_power(box_.d) + 3);
    const auto count = 1 + draw_.below(5);
    for (std::uint64_t i = 0; i < count; ++i)
      draw_.set_product(q, {.exact = draw_.coin(),
                            .negative = draw_.coin(),
                            .exponent = top - draw_.between(0, 5),
                            .at = draw_.place()});
    if (draw_.below(3) != 0)
      draw_.set_addend(q,
                       {.exact = draw_.coin(),
                        .negative = draw_.coin(),
                        .exponent = std::min(greatest_power(box_.c), top - draw_.between(0, 3))});
    return q;
  }
  Question raw() {
    Question q = zero_question(box_);
    for (std::uint64_t& x : q.a) x = random_() & formats::code_mask(box_.a);
    for (std::uint64_t& x : q.b) x = random_() & formats::code_mask(box_.b);
    if (box_.has_addend && draw_.below(4) != 0) q.c = random_() & formats::code_mask(box_.c);
    for (std::vector<std::uint64_t>* list : {&q.a_scale, &q.b_scale}) {
      for (std::uint64_t& s : *list) s = random_() & formats::code_mask(box_.scale.format);
    }
    return q;
  }

  Question integers(Topic topic) {
    Question q = zero_question(box_);
    const bool extremes = topic == Topic::specials || topic == Topic::tiny;
    const auto extreme = [&](const Format& f) {
      const std::uint64_t top = f.has_sign ? formats::sign_mask(f) : formats::code_mask(f);
      return draw_.coin() ? top : formats::magnitude_mask(f);
    };
    for (std::size_t i = 0; i < q.a.size(); ++i) {
      q.a[i] =
          (extremes && draw_.coin() ? extreme(box_.a) : random_()) & formats::code_mask(box_.a);
      q.b[i] =
          (extremes && draw_.coin() ? extreme(box_.b) : random_()) & formats::code_mask(box_.b);
    }
    if (box_.has_addend) {
      q.c = topic == Topic::grid
                ? random_() & formats::low_bits(12)
                : extreme(box_.c) - (draw_.coin() ? random_() & formats::low_bits(16) : 0);
      q.c &= formats::code_mask(box_.c);
    }
    return q;
  }

  const BlackBox& box_;
  std::mt19937_64& random_;
  OperandDraw draw_;
};

}  // namespace

std::vector<Question> questions(const BlackBox& box, Topic topic, std::size_t count,
                                std::mt19937_64& random) {
  Drawer drawer(box, random);
  std::vector<Question> list;
  for (std::size_t i = 0; i < count; ++i) list.push_back(drawer.draw(topic));
  return list;
}

}  // namespace guardbit::emulator
