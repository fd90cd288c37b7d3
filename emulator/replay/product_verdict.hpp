#pragma once

#include <functional>
#include <string>
#include <vector>

#include "emulator/capture/product_capture.hpp"
#include "emulator/replay/handler.hpp"

// Products of a recording: computed by the plan book's plans, or explained.
namespace guardbit::emulator::replay {

/// A call as a product with K in one of its orders.
struct OrderOfK {
  /// the order of K; empty for the usual one
  std::string words;
  /// The product with K in that order. Made only when it is asked for: it may copy its operands.
  std::function<GemmCapture()> capture;
};

/// A call that is a product; its ways differ in the order of K.
struct ProductCall {
  /// what decides the plan, besides the order of K
  std::string shape;
  /// likely ones first
  std::vector<OrderOfK> orders;
};

/// Whether the recorded result is that of a plan, and how that is known. The result's bits are not
/// returned: where a plan gives them they are the recorded ones.
struct ProductVerdict {
  Status status = Status::unmodelled;
  std::string plan;
  bool is_predicted = false;
  /// of what was predicted wrong
  std::int64_t mismatches = 0;
};

ProductVerdict judge_product(const ProductCall& call, Context& context);

/// A matrix of a tensor of two or three dimensions.
CodeMatrix matrix_of(const Tensor& tensor);

}  // namespace guardbit::emulator::replay
