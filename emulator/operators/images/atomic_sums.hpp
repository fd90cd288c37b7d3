#pragma once

#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "emulator/operators/images/images.hpp"

namespace guardbit::emulator::operators {

/// Numbers that start at zero and are added to in memory, in no fixed order: known where none gets
/// more than two terms. Each addition rounds to the tensor's type; in FP32 subnormal numbers count
/// as zero, before and after.
template <class Number>
class AtomicSums {
 public:
  AtomicSums(const formats::Format& type, std::size_t count)
      : type_(type), numbers_(count), terms_(count) {}

  /// Is the sum known?
  bool add(std::size_t to, Number term) {
    numbers_[to] = flushed(rounded(type_, numbers_[to] + flushed(term)));
    if (terms_[to] < 3) ++terms_[to];
    return terms_[to] < 3;
  }
  /// An ordinary store.
  void store(std::size_t to, Number number) { numbers_[to] = number; }
  const std::vector<Number>& numbers() const { return numbers_; }

 private:
  Number flushed(Number number) const {
    const bool is_small =
        number > -std::numeric_limits<Number>::min() && number < std::numeric_limits<Number>::min();
    return type_ == formats::fp32 && is_small ? number * 0 : number;
  }

  formats::Format type_;
  std::vector<Number> numbers_;
  std::vector<std::int8_t> terms_;
};

}  // namespace guardbit::emulator::operators
