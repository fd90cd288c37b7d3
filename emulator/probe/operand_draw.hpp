#pragma once

// Random operands of a question: numbers and products of a given exponent. question_set.cpp and
// aimed_questions.cpp draw with it.

#include <cstddef>
#include <cstdint>
#include <random>

#include "emulator/probe/operand_codes.hpp"

namespace guardbit::emulator {

/// A term of a question: a product between 2^exponent and 2^(exponent + 2), or an addend of that
/// exponent; a power of two if `exact`, else of random significands. Braces evaluate in the order
/// of the members, as a call's arguments do not: so a seed draws the same questions by every
/// compiler.
struct DrawnTerm {
  bool exact = false, negative = false;
  int exponent = 0;
  /// which product; an addend has none
  std::size_t at = 0;
};

/// Draws operands for questions to `box`. Keeps references to both arguments.
class OperandDraw {
 public:
  OperandDraw(const BlackBox& box, std::mt19937_64& random) : box_(box), random_(random) {}

  std::uint64_t below(std::uint64_t n) { return random_() % n; }
  int between(int low, int high) {
    return low >= high ? low
                       : low + static_cast<int>(below(static_cast<std::uint64_t>(high - low) + 1));
  }
  bool coin() { return (random_() & 1U) != 0; }
  std::size_t place() { return below(static_cast<std::uint64_t>(box_.k)); }

  /// A random number of the given leading exponent.
  std::uint64_t number(const Format& f, int exponent, bool negative);

  /// Does nothing if the formats do not reach the exponent.
  void set_product(Question& q, const DrawnTerm& x);
  void set_addend(Question& q, const DrawnTerm& x);

 private:
  const BlackBox& box_;
  std::mt19937_64& random_;
};

}  // namespace guardbit::emulator
