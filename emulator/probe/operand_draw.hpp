#pragma once

// Random operands of a question: numbers and products of a given exponent. question_set.cpp and
// aimed_questions.cpp draw with it.

#include <cstddef>
#include <cstdint>
#include <random>

#include "emulator/probe/operand_codes.hpp"

namespace guardbit::emulator {

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

  /// Sets a product between 2^exponent and 2^(exponent + 2): a power of two if `exact`, else of
  /// random significands. Does nothing if the formats do not reach the exponent.
  void set_product(Question& q, std::size_t at, int exponent, bool negative, bool exact);
  void set_addend(Question& q, int exponent, bool negative, bool exact);

 private:
  const BlackBox& box_;
  std::mt19937_64& random_;
};

}  // namespace guardbit::emulator
