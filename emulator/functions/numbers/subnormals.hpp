#pragma once

// Numbers whose steps take subnormal operands as zeros (compiled_number.hpp), and others.
namespace guardbit::emulator {

template <class Number>
constexpr bool flushes_subnormals() {
  if constexpr (requires { Number::is_flushing; }) {
    return Number::is_flushing;
  } else {
    return false;
  }
}

/// A number as a step takes it.
template <class Number>
constexpr Number taken(Number x) {
  if constexpr (flushes_subnormals<Number>()) {
    return flushed(x);
  } else {
    return x;
  }
}

}  // namespace guardbit::emulator
