#pragma once

#include <type_traits>

#include "emulator/functions/unit/special_function_forms.hpp"
#include "formats/rounding.hpp"

// Instructions of PTX as programs: objects without state that take numbers of any type.
namespace guardbit::emulator {

/// A form of the unit as a program.
template <const mufu::SpecialFunctionForm& form>
struct FormProgram {
  /// The unit's NaN is 0x7fffffff.
  static constexpr bool has_one_nan = true;

  template <class Number>
  constexpr Number operator()(Number x) const {
    return evaluate(form, x);
  }
};

/// Instructions that round correctly, in one direction.
template <formats::Rounding rounding>
struct Reciprocal {
  template <class Number>
  constexpr Number operator()(Number x) const {
    return divide(Number(1), x, rounding);
  }
};
template <formats::Rounding rounding>
struct Root {
  template <class Number>
  constexpr Number operator()(Number x) const {
    return square_root(x, rounding);
  }
};
template <formats::Rounding rounding>
struct Quotient {
  template <class Number>
  constexpr Number operator()(Number x, Number y) const {
    return divide(x, y, rounding);
  }
};
/// The same with subnormal operands as zeros, and results that are below the normal range before
/// they are rounded.
template <template <formats::Rounding> class Program, formats::Rounding rounding>
struct Flushed {
  template <class Number>
  requires std::is_invocable_v<Program<rounding>, Number>
  constexpr Number operator()(Number x) const {
    return result(Program<rounding>()(flushed(x)),
                  Program<formats::Rounding::toward_zero>()(flushed(x)));
  }
  template <class Number>
  constexpr Number operator()(Number x, Number y) const {
    return result(Program<rounding>()(flushed(x), flushed(y)),
                  Program<formats::Rounding::toward_zero>()(flushed(x), flushed(y)));
  }

 private:
  template <class Number>
  static constexpr Number result(Number rounded, Number cut) {
    return select(flushed(cut) == 0, flushed(cut), rounded);
  }
};

}  // namespace guardbit::emulator
