#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "experiments/scaling/block_scales.hpp"
#include "experiments/training/precision.hpp"
#include "experiments/training/product.hpp"
#include "experiments/training/product_operands.hpp"
#include "experiments/training/training_tensor.hpp"

namespace guardbit::experiments::training {

/// What a tensor is; words of `guardbit trace`.
enum class Role : std::uint8_t { activation, weight, gradient };
constexpr auto words(Role) { return std::array{"act", "weight", "grad_out"}; }

/// Numbers other than zero that were stored, and those of them that became zero or infinite. Stores
/// in narrower formats than FP32 and operands of products count.
struct StoreCounts {
  std::int64_t numbers = 0, underflow = 0, overflow = 0;
};

/// Where a training step happens: the recipe's formats, products and scales. Results do not depend
/// on the number of threads.
class Context {
 public:
  /// `threads` 0: all. formats::Error, beginning with `where`, for plans that cannot be.
  Context(PrecisionRecipe recipe, int threads, std::string_view where);

  const PrecisionRecipe& recipe() const { return recipe_; }
  int threads() const { return threads_; }
  const Product& product_of(Pass pass) const {
    return products_.at(static_cast<std::size_t>(pass));
  }

  /// The format that an operation computes in, by the autocast policy.
  Format format_for(Operation operation, const Format& input) const;
  Format format_for(Operation operation, const Format& first, const Format& second) const;
  /// The tensor in that format: rounded to nearest even, overflow to infinity.
  Tensor cast(Tensor tensor, const Format& format, Role role);
  /// Rounds numbers that an operation left in FP32 into the tensor's format.
  void store(Tensor& tensor, Role role);

  /// The tensor's numbers as operands of products, as a matrix [rows, columns]. `name` keeps the
  /// tensor's delayed scale.
  CodedMatrix encode(const std::string& name, Role role, const Tensor& tensor, std::int64_t rows,
                     std::int64_t columns);
  /// A B in FP32 times the operands' scales, plus a bias [columns], rounded into `format`.
  Tensor multiply(Pass pass, const Operand& a, const Operand& b, Dimensions shape,
                  const Format& format, Role role, const Tensor* bias = nullptr);
  /// Sums over the rows of [rows, columns], in runs (arithmetic.hpp), rounded into `format`.
  Tensor sum_of_rows(const Tensor& tensor, const Format& format, Role role);

  /// What stochastic rounding draws its numbers from until the next step.
  void begin_step(std::uint64_t seed) { step_seed_ = seed; }
  /// The end of a step: delayed scales move on. `StoreCounts` of the step are handed out.
  std::array<StoreCounts, 3> end_step();
  /// What was stored since the step's end does not count.
  void forget_counts() {
    counts_ = {};
    operand_bits_ = 0;
  }
  /// Bytes of the activations and weights that the last step's products took, in their format.
  std::int64_t operand_bytes() const { return last_operand_bits_ / 8; }

  std::map<std::string, DelayedScale>& delayed_scales() { return delayed_; }
  /// `key` as in delayed_scales: a tensor's name and its role.
  void restore_delayed(const std::string& key, std::vector<float> history, float scale);
  /// Fake quantisation's ranges of the layers' inputs, which move with each batch while it
  /// observes, and the grids of the last forward pass. By the layers' names.
  std::map<std::string, RunningRange>& ranges() { return ranges_; }
  std::map<std::string, LayerGrids>& layer_grids() { return layer_grids_; }
  bool observes() const { return observes_; }
  void set_observes(bool observes) { observes_ = observes; }
  /// Is told of tensors that the layers name, while it is set.
  std::function<void(const std::string& name, std::string_view role, const Tensor& tensor)> trace;

  /// body(begin, end) over ranges of indices that do not depend on the threads.
  void for_ranges(std::int64_t count,
                  const std::function<void(std::int64_t begin, std::int64_t end)>& body,
                  std::int64_t grain = std::int64_t{1} << 14) const;

 private:
  DelayedScale& delayed_scale(const std::string& key);
  Encoding encoding_of(const std::string& name, Role role, const Tensor& tensor);

  PrecisionRecipe recipe_;
  int threads_;
  std::array<Product, passes> products_;
  std::array<StoreCounts, 3> counts_{};
  std::int64_t operand_bits_ = 0, last_operand_bits_ = 0;
  std::uint64_t step_seed_ = 0;
  std::map<std::string, DelayedScale> delayed_;
  std::map<std::string, RunningRange> ranges_;
  std::map<std::string, LayerGrids> layer_grids_;
  bool observes_ = true;
};

}  // namespace guardbit::experiments::training
