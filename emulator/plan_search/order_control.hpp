#pragma once

// How strongly a result speaks for the order of a plan. Input: a capture and a plan that gives its
// D. Output: how many outputs would differ if K were taken in a random order instead.

#include <cstdint>
#include <optional>
#include <span>

#include "emulator/capture/product_capture.hpp"
#include "emulator/gemm/plan.hpp"

namespace guardbit::emulator {

/// A control of a plan that gives the result: executed with the elements of K in a random order, it
/// should give another one. If it does not, the result does not show in which order K was added.
struct OrderControl {
  std::int64_t outputs = 0;
  /// outputs that differ from the recorded ones; if there are none, any order fits
  std::int64_t refuting = 0;
};

/// Executes the control on some outputs. Nothing where the order changes no sum (integers), or
/// where K cannot be permuted: structured sparsity, and chains that begin with C.
std::optional<OrderControl> order_control(const GemmCapture& capture, const GemmPlan& plan,
                                          int threads);
/// The same on the given outputs.
std::optional<OrderControl> order_control(const GemmCapture& capture, const GemmPlan& plan,
                                          std::span<const Output> outputs, int threads);

}  // namespace guardbit::emulator
