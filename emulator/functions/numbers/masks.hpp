#pragma once

#include <type_traits>

// What comparisons of numbers give: truth values, or masks of vectors.
namespace guardbit::emulator {

template <class Mask>
constexpr Mask both(Mask a, Mask b) {
  if constexpr (std::is_same_v<Mask, bool>) {
    return a && b;
  } else {
    return a & b;
  }
}
template <class Mask>
constexpr Mask either(Mask a, Mask b) {
  if constexpr (std::is_same_v<Mask, bool>) {
    return a || b;
  } else {
    return a | b;
  }
}

}  // namespace guardbit::emulator
