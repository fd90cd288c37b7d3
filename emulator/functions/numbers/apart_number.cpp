#include "emulator/functions/numbers/apart_number.hpp"

namespace guardbit::emulator {

template <class Number>
ApartNumber<Number> ApartNumber<Number>::of_integer(Word n) {
  return ApartNumber(Number::of_integer(n));
}
template <class Number>
ApartNumber<Number> ApartNumber<Number>::sum(ApartNumber x, ApartNumber y) {
  return ApartNumber(x.number_ + y.number_);
}
template <class Number>
ApartNumber<Number> ApartNumber<Number>::difference(ApartNumber x, ApartNumber y) {
  return ApartNumber(x.number_ - y.number_);
}
template <class Number>
ApartNumber<Number> ApartNumber<Number>::product(ApartNumber x, ApartNumber y) {
  return ApartNumber(x.number_ * y.number_);
}
template <class Number>
ApartNumber<Number> ApartNumber<Number>::quotient(ApartNumber x, ApartNumber y) {
  return ApartNumber(x.number_ / y.number_);
}
template <class Number>
ApartNumber<Number> ApartNumber<Number>::quotient(ApartNumber x, ApartNumber y,
                                                  formats::Rounding rounding) {
  return ApartNumber(divide(x.number_, y.number_, rounding));
}
template <class Number>
ApartNumber<Number> ApartNumber<Number>::root(ApartNumber x) {
  return ApartNumber(square_root(x.number_));
}
template <class Number>
ApartNumber<Number> ApartNumber<Number>::root(ApartNumber x, formats::Rounding rounding) {
  return ApartNumber(square_root(x.number_, rounding));
}
template <class Number>
ApartNumber<Number> ApartNumber<Number>::fused(ApartNumber x, ApartNumber y, ApartNumber z) {
  return ApartNumber(fma(x.number_, y.number_, z.number_));
}
template <class Number>
ApartNumber<Number> ApartNumber<Number>::fused_down(ApartNumber x, ApartNumber y, ApartNumber z) {
  return ApartNumber(fma_down(x.number_, y.number_, z.number_));
}
template <class Number>
ApartNumber<Number> ApartNumber<Number>::sum_cut(ApartNumber x, ApartNumber y) {
  return ApartNumber(add_toward_zero(x.number_, y.number_));
}
template <class Number>
ApartNumber<Number> ApartNumber<Number>::product_cut(ApartNumber x, ApartNumber y) {
  return ApartNumber(multiply_toward_zero(x.number_, y.number_));
}
template <class Number>
ApartNumber<Number> ApartNumber<Number>::rest(ApartNumber x, ApartNumber y, int exponent) {
  return ApartNumber(truncated_remainder(x.number_, y.number_, exponent));
}
template <class Number>
ApartNumber<Number> ApartNumber<Number>::of_form(const mufu::SpecialFunctionForm& form,
                                                 ApartNumber x) {
  return ApartNumber(evaluate(form, x.number_));
}
template <class Number>
ApartNumber<Number> ApartNumber<Number>::nearest_integer(ApartNumber x) {
  return ApartNumber(rint(x.number_));
}
template <class Number>
ApartNumber<Number> ApartNumber<Number>::cut(ApartNumber x) {
  return ApartNumber(trunc(x.number_));
}
template <class Number>
typename ApartNumber<Number>::Word ApartNumber<Number>::to_integer(ApartNumber x) {
  return integer(x.number_);
}
template <class Number>
ApartNumber<Number> ApartNumber<Number>::turns(std::int64_t n) {
  return ApartNumber(quarter_turns(Number(), n));
}
template <class Number>
typename ApartNumber<Number>::Mask ApartNumber<Number>::equals(ApartNumber x, ApartNumber y) {
  return x.number_ == y.number_;
}
template <class Number>
typename ApartNumber<Number>::Mask ApartNumber<Number>::is_less(ApartNumber x, ApartNumber y) {
  return x.number_ < y.number_;
}
template <class Number>
typename ApartNumber<Number>::Mask ApartNumber<Number>::is_at_most(ApartNumber x, ApartNumber y) {
  return x.number_ <= y.number_;
}

template class ApartNumber<CompiledNumber<HostNumber, CompileMode::ftz>>;
template class ApartNumber<CompiledNumber<HostNumber, CompileMode::fast>>;
template class ApartNumber<CompiledNumber<TracedNumber, CompileMode::ftz>>;
template class ApartNumber<CompiledNumber<TracedNumber, CompileMode::fast>>;

}  // namespace guardbit::emulator
