#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "emulator/capture/product_capture.hpp"
#include "emulator/gemm/atlas/product_call.hpp"
#include "emulator/replay/handler.hpp"

// Products of a recording: computed by the plan book's plans, or explained.
namespace guardbit::emulator::replay {

/// A call as a product with K in one of its orders.
struct OrderOfK {
  /// the order of K; empty for the usual one
  std::string words;
  /// The product with K in that order. Made only when it is asked for: it may copy its operands.
  std::function<GemmCapture()> capture;
  /// D in the order of the result's elements; nothing: it is in that order.
  std::function<CodeMatrix(const CodeMatrix&)> raise = {};
};

/// What calls of a kind usually get: the name of the order of K, and the plan's words. A guess.
struct UsualPlan {
  std::string order, plan;
  /// as in atlas::Answer
  int agree = 0;
};

/// What the atlas is asked of a product.
struct Asked {
  /// nothing: the atlas does not know such calls
  std::optional<atlas::ProductCall> call = {};
  /// It is not the product's own call but one that few recorded calls show to get the same kernel:
  /// a guess.
  bool is_another = false;
};

/// A call that is a product; its ways differ in the order of K.
struct ProductCall {
  /// what decides the plan, besides the order of K
  std::string shape;
  /// likely ones first
  std::vector<OrderOfK> orders;
  Asked asked = {};
  /// of a running program whose book has no plan
  std::optional<UsualPlan> usual = {};
  /// Nothing else is guessed.
  bool is_usual_alone = false;
};

/// Whether the recorded result is that of a plan, and how that is known. Where there is a recorded
/// result its bits are not returned: where a plan gives them they are the recorded ones.
struct ProductVerdict {
  Status status = Status::unmodelled;
  std::string plan;
  bool is_predicted = false;
  /// of what was predicted wrong
  std::int64_t mismatches = 0;
  /// Of a program that runs: D, row by row in the order of the result's elements.
  std::optional<CodeMatrix> computed = {};
  /// as in Answer
  int agree = sure;
};

/// Of a recording.
ProductVerdict judge_product(const ProductCall& call, Context& context);

/// The answer to a call whose only result, or one of whose results, was judged. `form`: the
/// recorded result, or a tensor of its type and shape.
Answer answer_of(const ProductVerdict& verdict, const Tensor& form);
/// The result itself; nothing where no plan gives it.
std::optional<Tensor> result_of(const ProductVerdict& verdict, const Tensor& form);

/// What the plan book calls the product with K in that order.
std::string key_of(const ProductCall& call, const OrderOfK& order);
/// A plan and the order of K, in words.
std::string words_of(const OrderOfK& order, const GemmPlan& plan);

/// A matrix of a tensor of two or three dimensions.
CodeMatrix matrix_of(const Tensor& tensor);

}  // namespace guardbit::emulator::replay
