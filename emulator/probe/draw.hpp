#pragma once

#include <cstddef>
#include <cstdint>
#include <random>

#include "emulator/probe/question_set.hpp"

namespace guardbit::emulator {

/// Draws operands of a box's questions.
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

  /// Product of about 2^exponent; a power of two, or with random significands.
  void set_product(Question& q, std::size_t at, int exponent, bool negative, bool exact);
  void set_addend(Question& q, int exponent, bool negative, bool exact);

 private:
  const BlackBox& box_;
  std::mt19937_64& random_;
};

}  // namespace guardbit::emulator
