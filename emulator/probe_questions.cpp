#include "emulator/probe_questions.hpp"

#include <algorithm>
#include <array>

#include "formats/codec.hpp"

namespace guardbit::emulator {

using formats::Kind;
using formats::Value;

std::uint64_t number_code(const Format& f, bool negative, int exponent, std::uint64_t significand) {
  const Value v{Kind::finite, negative, exponent, significand};
  return formats::encode(f, v, Rounding::toward_zero, formats::overflow_saturate);
}

int least_power(const Format& f) {
  return formats::min_exponent(f) - (f.has_subnormals ? f.fraction_bits : 0);
}
int greatest_power(const Format& f) { return formats::max_exponent(f); }

std::optional<std::pair<std::uint64_t, std::uint64_t>> product_codes(const BlackBox& box,
                                                                     int exponent) {
  const auto split = [&](int lowest_a, int lowest_b) -> std::optional<int> {
    const int low = std::max(lowest_a, exponent - greatest_power(box.b));
    const int high = std::min(greatest_power(box.a), exponent - lowest_b);
    if (low > high) return {};
    return std::clamp(exponent / 2, low, high);
  };
  std::optional<int> x = split(formats::min_exponent(box.a), formats::min_exponent(box.b));
  if (!x) x = split(least_power(box.a), least_power(box.b));
  if (!x) return {};
  return std::pair{number_code(box.a, false, *x), number_code(box.b, false, exponent - *x)};
}

Question zero_question(const BlackBox& box) {
  const auto k = static_cast<std::size_t>(box.k);
  Question q{std::vector<std::uint64_t>(k), std::vector<std::uint64_t>(k), 0, {}, {}};
  if (box.scale.count != 0) {
    q.a_scale.assign(static_cast<std::size_t>(box.scale.count),
                     number_code(box.scale.format, false, 0));
    q.b_scale = q.a_scale;
  }
  return q;
}

namespace {

/// Draws questions of one box.
class Drawer {
 public:
  Drawer(const BlackBox& box, std::mt19937_64& random) : box_(box), random_(random) {}

  Question draw(Topic topic) {
    if (formats::is_integer(box_.d)) return integers(topic);
    switch (topic) {
      case Topic::grid:
        switch (below(5)) {
          case 0: return ladder();
          case 1: return tie();
          case 2: return narrow();
          case 3: return crowd();
          default: return ladder();
        }
      case Topic::tiny: return below(4) == 0 ? tiny_crowd() : tiny();
      case Topic::specials: return below(2) == 0 ? special() : overflowing();
      case Topic::raw: break;
    }
    return raw();
  }

 private:
  std::uint64_t below(std::uint64_t n) { return random_() % n; }
  int between(int low, int high) {
    return low >= high ? low
                       : low + static_cast<int>(below(static_cast<std::uint64_t>(high - low) + 1));
  }
  bool coin() { return (random_() & 1U) != 0; }
  std::size_t place() { return below(static_cast<std::uint64_t>(box_.k)); }

  int least_product() const { return least_power(box_.a) + least_power(box_.b); }
  int greatest_product() const { return greatest_power(box_.a) + greatest_power(box_.b); }

  /// A random number of the given leading exponent.
  std::uint64_t number(const Format& f, int exponent, bool negative) {
    const int width = f.fraction_bits;
    std::uint64_t significand = std::uint64_t{1} << width;
    // Full, sparse and dense significands.
    switch (below(4)) {
      case 0: break;
      case 1: significand |= random_() & formats::low_bits(width); break;
      case 2: significand |= random_() & random_() & random_() & formats::low_bits(width); break;
      default: significand |= (random_() | random_()) & formats::low_bits(width); break;
    }
    return number_code(f, negative && f.has_sign, exponent - width, significand);
  }

  /// Product of about 2^exponent; a power of two, or with random significands.
  void set_product(Question& q, std::size_t at, int exponent, bool negative, bool exact) {
    const int low = std::max(least_power(box_.a), exponent - greatest_power(box_.b));
    const int high = std::min(greatest_power(box_.a), exponent - least_power(box_.b));
    if (low > high) return;
    const int normal_low = std::max(formats::min_exponent(box_.a), low);
    const int normal_high = std::min(high, exponent - formats::min_exponent(box_.b));
    const int x = normal_low <= normal_high && below(4) != 0 ? between(normal_low, normal_high)
                                                             : between(low, high);
    const bool a_negative = coin();
    q.a[at] = exact ? number_code(box_.a, a_negative, x) : number(box_.a, x, a_negative);
    const bool b_negative = a_negative != negative;
    q.b[at] = exact ? number_code(box_.b, b_negative, exponent - x)
                    : number(box_.b, exponent - x, b_negative);
  }
  void set_addend(Question& q, int exponent, bool negative, bool exact) {
    if (!box_.has_addend || exponent > greatest_power(box_.c)) return;
    q.c = exact ? number_code(box_.c, negative, exponent) : number(box_.c, exponent, negative);
  }
  int scale_spread() { return std::array{0, 3, 9, 22}[below(4)]; }
  void scales(Question& q, int spread) {
    if (box_.scale.count == 0) return;
    for (std::vector<std::uint64_t>* list : {&q.a_scale, &q.b_scale}) {
      for (std::uint64_t& s : *list) {
        s = number(box_.scale.format, between(-spread, spread), false);
      }
    }
  }

  /// A window of exponents where products, addends and results are all normal.
  int ordinary_exponent() {
    const int low = std::max({formats::min_exponent(box_.a) + formats::min_exponent(box_.b),
                              formats::min_exponent(box_.c), formats::min_exponent(box_.d)});
    const int high =
        std::min({greatest_product() - 1, greatest_power(box_.c) - 4, greatest_power(box_.d) - 4});
    return between(std::min(low + 12, high), high);
  }

  /// One or two large terms, which may cancel, and small ones near what is still kept below them.
  Question ladder() {
    Question q = zero_question(box_);
    const bool by_addend = box_.has_addend && below(2) == 0;
    int top = ordinary_exponent();
    const int highest = std::min(greatest_power(box_.c), greatest_power(box_.d)) - 4;
    if (by_addend && greatest_product() < highest && coin())
      top = between(greatest_product(), highest);
    const bool negative = coin();
    const int distance = between(3, 2 + formats::precision(box_.d) + 14);
    const auto small = 1 + below(6);
    for (std::uint64_t i = 0; i < small; ++i) {
      set_product(q, place(), top - distance + between(-3, 3), coin(), coin());
    }
    if (box_.has_addend && !by_addend && coin())
      set_addend(q, top - distance + between(-3, 3), coin(), coin());
    const std::size_t first = place();
    const bool exact = below(4) != 0;
    if (by_addend) {
      set_addend(q, top, negative, exact);
    } else {
      set_product(q, first, top, negative, exact);
    }
    const std::size_t second = place();
    if (below(3) != 0 && (by_addend || second != first)) {
      set_product(q, second, top, !negative, exact);
    }
    scales(q, scale_spread());
    return q;
  }

  /// Terms around half an ulp of the result.
  Question tie() {
    Question q = zero_question(box_);
    const int top = ordinary_exponent();
    const bool negative = coin();
    if (box_.has_addend && coin()) {
      set_addend(q, top, negative, coin());
    } else {
      set_product(q, place(), top, negative, coin());
    }
    const int bits = coin() ? box_.d.fraction_bits : std::min(box_.d.fraction_bits, 13);
    const auto small = 1 + below(3);
    for (std::uint64_t i = 0; i < small; ++i) {
      set_product(q, place(), top - bits - between(-1, 4), coin(), below(3) != 0);
    }
    scales(q, scale_spread());
    return q;
  }

  /// Every term within a few binades, the addend near or far.
  Question narrow() {
    Question q = zero_question(box_);
    const int span = std::array{1, 4, 8, 14}[below(4)];
    const int top = ordinary_exponent();
    for (std::size_t i = 0; i < q.a.size(); ++i) {
      set_product(q, i, top - between(0, span), coin(), false);
    }
    if (below(3) != 0) set_addend(q, top + between(-span, 3), coin(), false);
    scales(q, scale_spread());
    return q;
  }

  /// Terms of one sign that carry past the next power of two.
  Question crowd() {
    Question q = zero_question(box_);
    const int top = ordinary_exponent();
    const bool negative = coin();
    for (std::size_t i = 0; i < q.a.size(); ++i) {
      if (below(3) != 0) set_product(q, i, top - between(0, 1), negative, false);
    }
    set_product(q, place(), top - between(8, 30), coin(), false);
    if (coin()) set_addend(q, top + between(-2, 4), negative, false);
    return q;
  }

  int smallest_result() const { return least_power(box_.d); }

  /// A few terms around the smallest results and the exponents below which a zero decides.
  Question tiny() {
    Question q = zero_question(box_);
    const int base = std::max(least_product(), smallest_result() - 14);
    const int reach = std::min(greatest_product(), formats::min_exponent(box_.d) + 4);
    const auto count = 1 + below(4);
    const int around = between(base, std::max(base, reach));
    const bool negative = coin();
    for (std::uint64_t i = 0; i < count; ++i) {
      const int e = coin() ? around + between(-2, 2) : between(base, std::max(base, reach));
      set_product(q, place(), e, below(3) == 0 ? !negative : negative, coin());
    }
    if (box_.has_addend) {
      switch (below(5)) {
        case 0:
          set_addend(q, between(least_power(box_.c), formats::min_exponent(box_.c) + 2), coin(),
                     coin());
          break;
        case 1: q.c = formats::sign_mask(box_.c); break;
        default: break;
      }
    }
    if (below(8) == 0) {  // zeros of the other sign wherever nothing stands
      for (std::size_t i = 0; i < q.a.size(); ++i) {
        if (q.a[i] == 0 && formats::has_negative_zero(box_.a)) q.a[i] = formats::sign_mask(box_.a);
      }
    }
    if (below(4) == 0) {  // one subnormal factor
      const std::size_t at = place();
      q.a[at] = random_() & formats::fraction_mask(box_.a);
      q.b[at] =
          number(box_.b, between(formats::min_exponent(box_.b), greatest_power(box_.b)), coin());
      if (coin() && box_.a == box_.b) std::swap(q.a[at], q.b[at]);
    }
    if (box_.scale.count != 0) {
      const int low = std::max(least_power(box_.scale.format), smallest_result() / 2 - 12);
      for (std::vector<std::uint64_t>* list : {&q.a_scale, &q.b_scale}) {
        for (std::uint64_t& s : *list) s = number(box_.scale.format, between(low, low + 24), false);
      }
    }
    return q;
  }

  /// Every product tiny.
  Question tiny_crowd() {
    Question q = zero_question(box_);
    const int base = std::max(least_product(), smallest_result() - 14);
    const int top = std::min(greatest_product(), base + between(4, 30));
    for (std::size_t i = 0; i < q.a.size(); ++i)
      set_product(q, i, between(base, std::max(base, top)), coin(), coin());
    if (below(3) == 0)
      set_addend(q, between(least_power(box_.c), formats::min_exponent(box_.c) + 4), coin(),
                 coin());
    return q;
  }

  std::uint64_t special_code(const Format& f) {
    switch (below(9)) {
      case 0: return 0;
      case 1: return formats::sign_mask(f);
      case 2: return number_code(f, coin(), 0);
      case 3: return formats::max_finite_code(f) | (coin() ? formats::sign_mask(f) : 0);
      case 4: return 1;
      case 5:
      case 6:
        if (!formats::has_infinity(f)) return formats::max_finite_code(f);
        return formats::infinity_code(f) | (coin() ? formats::sign_mask(f) : 0);
      default: break;
    }
    if (!formats::has_nan(f)) return random_() & formats::code_mask(f);
    if (f.specials != formats::Specials::ieee) return formats::quiet_nan_code(f);
    const std::uint64_t payload = random_() & formats::fraction_mask(f);
    return formats::infinity_code(f) | (payload == 0 ? 1U : payload) |
           (coin() ? formats::sign_mask(f) : 0);
  }
  Question special() {
    Question q = below(3) == 0 ? narrow() : zero_question(box_);
    const auto count = 1 + below(3);
    for (std::uint64_t i = 0; i < count; ++i) {
      const std::size_t at = place();
      q.a[at] = special_code(box_.a) & formats::code_mask(box_.a);
      q.b[at] = special_code(box_.b) & formats::code_mask(box_.b);
    }
    if (box_.has_addend && coin()) q.c = special_code(box_.c) & formats::code_mask(box_.c);
    if (box_.scale.count != 0 && below(8) == 0) q.a_scale[0] = special_code(box_.scale.format);
    return q;
  }
  /// Terms around the largest result.
  Question overflowing() {
    Question q = zero_question(box_);
    const int top = std::min(greatest_product(), greatest_power(box_.d) + 3);
    const auto count = 1 + below(5);
    for (std::uint64_t i = 0; i < count; ++i)
      set_product(q, place(), top - between(0, 5), coin(), coin());
    if (below(3) != 0)
      set_addend(q, std::min(greatest_power(box_.c), top - between(0, 3)), coin(), coin());
    return q;
  }
  Question raw() {
    Question q = zero_question(box_);
    for (std::uint64_t& x : q.a) x = random_() & formats::code_mask(box_.a);
    for (std::uint64_t& x : q.b) x = random_() & formats::code_mask(box_.b);
    if (box_.has_addend && below(4) != 0) q.c = random_() & formats::code_mask(box_.c);
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
      return coin() ? top : formats::magnitude_mask(f);
    };
    for (std::size_t i = 0; i < q.a.size(); ++i) {
      q.a[i] = (extremes && coin() ? extreme(box_.a) : random_()) & formats::code_mask(box_.a);
      q.b[i] = (extremes && coin() ? extreme(box_.b) : random_()) & formats::code_mask(box_.b);
    }
    if (box_.has_addend) {
      q.c = topic == Topic::grid
                ? random_() & formats::low_bits(12)
                : extreme(box_.c) - (coin() ? random_() & formats::low_bits(16) : 0);
      q.c &= formats::code_mask(box_.c);
    }
    return q;
  }

  const BlackBox& box_;
  std::mt19937_64& random_;
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
