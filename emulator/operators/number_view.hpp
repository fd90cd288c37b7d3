#pragma once

#include <cstdint>
#include <span>
#include <type_traits>
#include <vector>

#include "emulator/operators/operator_tensor.hpp"

namespace guardbit::emulator::operators {

/// The elements of a tensor as FP32 numbers: the tensor's own memory where it holds such.
class NumberView {
 public:
  explicit NumberView(const Tensor& tensor) : numbers_(stored_numbers(tensor)) {
    if (!numbers_.empty()) {
      owner_ = tensor.owner;
      return;
    }
    copy_ = numbers_of(tensor);
    numbers_ = copy_;
  }
  NumberView(const NumberView&) = delete;
  NumberView& operator=(const NumberView&) = delete;

  float operator[](std::size_t index) const { return numbers_[index]; }
  std::size_t size() const { return numbers_.size(); }
  const float* data() const { return numbers_.data(); }
  std::span<const float> part(std::size_t begin, std::size_t count) const {
    return numbers_.subspan(begin, count);
  }
  std::span<const float> all() const { return numbers_; }

 private:
  std::shared_ptr<const void> owner_;
  std::vector<float> copy_;
  std::span<const float> numbers_;
};

/// The same in FP64.
class DoubleView {
 public:
  explicit DoubleView(const Tensor& tensor) : numbers_(doubles_of(tensor)) {}

  double operator[](std::size_t index) const { return numbers_[index]; }
  std::size_t size() const { return numbers_.size(); }
  const double* data() const { return numbers_.data(); }
  std::span<const double> part(std::size_t begin, std::size_t count) const {
    return all().subspan(begin, count);
  }
  std::span<const double> all() const { return numbers_; }

 private:
  std::vector<double> numbers_;
};

template <class Number>
using ViewOf = std::conditional_t<std::is_same_v<Number, double>, DoubleView, NumberView>;

}  // namespace guardbit::emulator::operators
