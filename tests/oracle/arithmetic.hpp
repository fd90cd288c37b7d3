#pragma once

#include "tests/oracle/round.hpp"

namespace guardbit::oracle {

/// Exact results with the special cases of IEEE 754-2019 sections 6 and 7. A sum that is exactly
/// zero has the common sign of its terms, else +0, or -0 when the rounding is `downward`.
Number exact_sum(const Number& a, const Number& b, const Rounding& rounding = nearest_even);
Number exact_product(const Number& a, const Number& b);

/// Scalar operations: the exact result, rounded once into `format`.
std::uint64_t add(const FormatParameters& format, const Number& a, const Number& b,
                  const Rounding& rounding, const Overflow& overflow = ieee);
std::uint64_t sub(const FormatParameters& format, const Number& a, const Number& b,
                  const Rounding& rounding, const Overflow& overflow = ieee);
std::uint64_t mul(const FormatParameters& format, const Number& a, const Number& b,
                  const Rounding& rounding, const Overflow& overflow = ieee);
std::uint64_t div(const FormatParameters& format, const Number& a, const Number& b,
                  const Rounding& rounding, const Overflow& overflow = ieee);
std::uint64_t sqrt(const FormatParameters& format, const Number& a, const Rounding& rounding,
                   const Overflow& overflow = ieee);
/// a * b + c
std::uint64_t fma(const FormatParameters& format, const Number& a, const Number& b, const Number& c,
                  const Rounding& rounding, const Overflow& overflow = ieee);

}  // namespace guardbit::oracle
