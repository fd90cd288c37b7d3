#pragma once

// How strongly a result speaks for the order of a plan. Input: a capture and a plan that gives its
// D. Output: how many outputs would differ if K were taken in a random order instead.

#include <cstdint>
#include <optional>
#include <span>

#include "emulator/capture/product_capture.hpp"
#include "emulator/gemm/plan.hpp"

namespace guardbit::emulator {

/// The plan was executed on some outputs with the elements of K in a random order.
struct OrderControl {
  std::int64_t outputs = 0;
  /// those that came out otherwise than recorded; where none did, any order fits
  std::int64_t refuting = 0;
};

/// Nothing where sums have no order that could be told (integers), or where K cannot be permuted:
/// structured sparsity, and chains that begin with C.
std::optional<OrderControl> order_control(const GemmCapture& capture, const GemmPlan& plan,
                                          int threads);
/// Of these outputs.
std::optional<OrderControl> order_control(const GemmCapture& capture, const GemmPlan& plan,
                                          std::span<const Output> outputs, int threads);

}  // namespace guardbit::emulator
