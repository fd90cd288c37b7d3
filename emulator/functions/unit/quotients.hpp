#pragma once

#include "emulator/functions/unit/special_function_forms.hpp"

// Quotients by the special function unit's reciprocal: x (1 / y). A y of an extreme exponent is
// scaled, and x alike.
namespace guardbit::emulator::mufu {

/// `div.approx.f32`: 0 for a |y| above 2^126.
template <class Number>
constexpr Number div_approx(Number x, Number y) {
  const Number scale = select(abs(y) < 0x1p-126F, Number(0x1p24F), 1);
  return (x * scale) * rcp_approx_ftz(y * scale);
}
template <class Number>
constexpr Number div_approx_ftz(Number x, Number y) {
  return flushed(flushed(x) * rcp_approx_ftz(flushed(y)));
}

/// `div.full.f32`
template <class Number>
constexpr Number div_full(Number x, Number y) {
  const Number magnitude = abs(y);
  const Number scale =
      select(magnitude > 0x1p126F, 0.25F, select(magnitude < 0x1p-126F, Number(0x1p24F), 1));
  return (x * scale) * rcp_approx_ftz(y * scale);
}
template <class Number>
constexpr Number div_full_ftz(Number x, Number y) {
  const Number scale = select(abs(y) > 0x1p126F, Number(0.25F), 1);
  return flushed(flushed(flushed(x) * scale) * rcp_approx_ftz(flushed(y) * scale));
}

}  // namespace guardbit::emulator::mufu
