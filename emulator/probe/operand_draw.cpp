#include "emulator/probe/operand_draw.hpp"

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

void OperandDraw::set_product(Question& q, const DrawnTerm& x) {
  const int low = std::max(least_power(box_.a), x.exponent - greatest_power(box_.b));
  const int high = std::min(greatest_power(box_.a), x.exponent - least_power(box_.b));
  if (low > high) return;
  const int normal_low = std::max(formats::min_exponent(box_.a), low);
  const int normal_high = std::min(high, x.exponent - formats::min_exponent(box_.b));
  const int a = normal_low <= normal_high && below(4) != 0 ? between(normal_low, normal_high)
                                                           : between(low, high);
  const int b = x.exponent - a;
  const bool a_negative = coin(), b_negative = a_negative != x.negative;
  q.a[x.at] = x.exact ? number_code(box_.a, a_negative, a) : number(box_.a, a, a_negative);
  q.b[x.at] = x.exact ? number_code(box_.b, b_negative, b) : number(box_.b, b, b_negative);
}

void OperandDraw::set_addend(Question& q, const DrawnTerm& x) {
  if (!box_.has_addend || x.exponent > greatest_power(box_.c)) return;
  q.c = x.exact ? number_code(box_.c, x.negative, x.exponent)
                : number(box_.c, x.exponent, x.negative);
}

}  // namespace guardbit::emulator
