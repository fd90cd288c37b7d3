#include "emulator/probe/draw.hpp"

#include <algorithm>

namespace guardbit::emulator {

std::uint64_t OperandDraw::number(const Format& f, int exponent, bool negative) {
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

void OperandDraw::set_product(Question& q, std::size_t at, int exponent, bool negative,
                              bool exact) {
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

void OperandDraw::set_addend(Question& q, int exponent, bool negative, bool exact) {
  if (!box_.has_addend || exponent > greatest_power(box_.c)) return;
  q.c = exact ? number_code(box_.c, negative, exponent) : number(box_.c, exponent, negative);
}

}  // namespace guardbit::emulator
