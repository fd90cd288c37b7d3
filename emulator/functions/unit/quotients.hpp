#pragma once

#include "emulator/functions/unit/special_function_forms.hpp"

// Quotients by the special function unit's reciprocal: x (1 / y). A y of an extreme exponent is
// scaled, and x alike.
namespace guardbit::emulator::mufu {

/// The unit's reciprocal; a device has its tables elsewhere.
struct UnitReciprocal {
  template <class Number>
  constexpr Number operator()(Number x) const {
    return rcp_approx_ftz(x);
  }
};

/// `div.approx.f32`: 0 for a |y| above 2^126.
template <class Number, class Reciprocal = UnitReciprocal>
constexpr Number div_approx(Number x, Number y, const Reciprocal& reciprocal = {}) {
  const Number scale = select(abs(y) < 0x1p-126F, Number(0x1p24F), 1);
  return (x * scale) * reciprocal(y * scale);
}
template <class Number, class Reciprocal = UnitReciprocal>
constexpr Number div_approx_ftz(Number x, Number y, const Reciprocal& reciprocal = {}) {
  return flushed(flushed(x) * reciprocal(flushed(y)));
}

/// `div.full.f32`
template <class Number, class Reciprocal = UnitReciprocal>
constexpr Number div_full(Number x, Number y, const Reciprocal& reciprocal = {}) {
  const Number magnitude = abs(y);
  const Number scale =
      select(magnitude > 0x1p126F, 0.25F, select(magnitude < 0x1p-126F, Number(0x1p24F), 1));
  return (x * scale) * reciprocal(y * scale);
}
template <class Number, class Reciprocal = UnitReciprocal>
constexpr Number div_full_ftz(Number x, Number y, const Reciprocal& reciprocal = {}) {
  const Number scale = select(abs(y) > 0x1p126F, Number(0.25F), 1);
  return flushed(flushed(flushed(x) * scale) * reciprocal(flushed(y) * scale));
}

}  // namespace guardbit::emulator::mufu
