#include "emulator/functions/numbers/traced_number.hpp"

namespace guardbit::emulator {

TracedNumber TracedNumber::of_integer(Word n) {
  return TracedNumber(ReferenceNumber::of_integer(n));
}

TracedNumber operator+(TracedNumber x, TracedNumber y) {
  return TracedNumber::traced("+", x.number_ + y.number_, {x, y});
}
TracedNumber operator-(TracedNumber x, TracedNumber y) {
  return TracedNumber::traced("-", x.number_ - y.number_, {x, y});
}
TracedNumber operator*(TracedNumber x, TracedNumber y) {
  return TracedNumber::traced("*", x.number_ * y.number_, {x, y});
}
TracedNumber operator/(TracedNumber x, TracedNumber y) {
  return TracedNumber::traced("/", x.number_ / y.number_, {x, y});
}
TracedNumber square_root(TracedNumber x) {
  return TracedNumber::traced("square_root", square_root(x.number_), {x});
}
TracedNumber divide(TracedNumber x, TracedNumber y, formats::Rounding rounding) {
  return TracedNumber::traced("/", divide(x.number_, y.number_, rounding), {x, y});
}
TracedNumber square_root(TracedNumber x, formats::Rounding rounding) {
  return TracedNumber::traced("square_root", square_root(x.number_, rounding), {x});
}
TracedNumber fma(TracedNumber x, TracedNumber y, TracedNumber z) {
  return TracedNumber::traced("fma", fma(x.number_, y.number_, z.number_), {x, y, z});
}
TracedNumber fma_down(TracedNumber x, TracedNumber y, TracedNumber z) {
  return TracedNumber::traced("fma_down", fma_down(x.number_, y.number_, z.number_), {x, y, z});
}
TracedNumber add_toward_zero(TracedNumber x, TracedNumber y) {
  return TracedNumber::traced("add_toward_zero", add_toward_zero(x.number_, y.number_), {x, y});
}
TracedNumber multiply_toward_zero(TracedNumber x, TracedNumber y) {
  return TracedNumber::traced("multiply_toward_zero", multiply_toward_zero(x.number_, y.number_),
                              {x, y});
}
TracedNumber truncated_remainder(TracedNumber x, TracedNumber y, int exponent) {
  return TracedNumber::traced(exponent == 0 ? "remainder" : "remainder, doubled",
                              truncated_remainder(x.number_, y.number_, exponent), {x, y});
}
TracedNumber evaluate(const mufu::SpecialFunctionForm& form, TracedNumber x) {
  return TracedNumber::traced(form.name, mufu::evaluate(form, x.number_), {x});
}
TracedNumber rint(TracedNumber x) { return TracedNumber::traced("rint", rint(x.number_), {x}); }
TracedNumber trunc(TracedNumber x) { return TracedNumber::traced("trunc", trunc(x.number_), {x}); }
TracedNumber::Word integer(TracedNumber x) { return integer(x.number_); }
TracedNumber quarter_turns(TracedNumber, std::int64_t n) {
  return TracedNumber(quarter_turns(ReferenceNumber(), n));
}
TracedNumber::Mask operator==(TracedNumber x, TracedNumber y) { return x.number_ == y.number_; }
TracedNumber::Mask operator<(TracedNumber x, TracedNumber y) { return x.number_ < y.number_; }
TracedNumber::Mask operator<=(TracedNumber x, TracedNumber y) { return x.number_ <= y.number_; }

TracedNumber TracedNumber::traced(std::string_view operation, ReferenceNumber result,
                                  std::initializer_list<TracedNumber> operands) {
  ProgramStep step = {operation, static_cast<int>(operands.size()), {}, bits(result)};
  std::size_t i = 0;
  for (const TracedNumber x : operands) step.arguments.at(i++) = bits(x);
  if (traced_steps != nullptr) traced_steps->push_back(step);
  return TracedNumber(result);
}

}  // namespace guardbit::emulator
