#pragma once

#include <string>
#include <vector>

#include "emulator/capture/product_capture.hpp"
#include "emulator/replay/handler.hpp"

// Products of a recording: computed by the plan book's plans, or explained.
namespace guardbit::emulator::replay {

/// One of the ways to write a call as a product: captures of one call differ in the order of K.
struct ProductCall {
  /// what decides the plan, besides the order of K
  std::string shape;
  std::vector<GemmCapture> captures;
  /// the words for each order of K; empty for the only one
  std::vector<std::string> orders;
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
