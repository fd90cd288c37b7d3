#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "experiments/accuracy/exact_sum.hpp"
#include "experiments/scaling/block_scales.hpp"
#include "formats/format.hpp"

namespace guardbit::experiments {

/// How a recipe scales a group of elements.
enum class Scaling : std::uint8_t {
  /// by 2^exponent, the product rounded to FP32
  fixed,
  /// te_current_scale
  te_current,
  /// the same, a power of two
  te_current_power,
  /// torchao_scale
  torchao,
  /// the same, a power of two
  torchao_power,
  /// DelayedScale, from the steps before
  te_delayed,
  /// mx_scale
  mx,
  /// Nvfp4Scales
  nvfp4,
  /// deepgemm_scale
  deepgemm,
  /// the same, a power of two
  deepgemm_power,
};

/// Elements that share a scale.
struct Grouping {
  /// 0 columns: the whole tensor; 1 row: a run of elements
  int rows = 0, columns = 0;

  friend bool operator==(const Grouping&, const Grouping&) = default;
};

/// A way to store a tensor: data.
struct Recipe {
  std::string name;
  formats::Format element;
  Scaling scaling = Scaling::fixed;
  Grouping grouping;
  /// Scaling::fixed
  int exponent = 0;
  /// numbers past the largest are clamped, else infinite or NaN
  bool saturates = true;
  MxMode mx_mode = MxMode::rceil;
  Nvfp4Rule nvfp4_rule = Nvfp4Rule::transformer_engine;
  /// of a group's amax, Scaling::deepgemm
  float floor = 0;
  DelayedRules delayed;
  /// of each group's scale
  int scale_bytes = 0;
  /// once for the tensor
  int tensor_bytes = 0;
};

/// What some recipes are there for several of.
struct RecipeVariants {
  /// of FP16's loss scales 2^k
  std::vector<int> exponents = {0, 8, 16, 24};
  /// lengths of delayed scaling's windows
  std::vector<std::size_t> histories = {1024};
  /// of delayed scaling
  float margin = 0;
};

/// All recipes that are known.
std::vector<Recipe> known_recipes(const RecipeVariants& variants);

/// How runs of elements (groups of one row) lie.
enum class Layout : std::uint8_t {
  /// along the flattened tensor, the last one padded with zeros
  flat,
  /// along the last dimension, padded at the end of each row
  rows,
};
constexpr auto words(Layout) { return std::array{"flat", "rows"}; }

/// A tensor as FP32 numbers; `columns` is its last dimension, 1 for a scalar.
struct TensorValues {
  std::span<const float> values;
  std::size_t columns = 1;
};

/// What a recipe does to the finite elements. Sums are exact, so they add up in any order.
struct RecipeOutcome {
  /// numbers other than zero that come back as zero
  std::uint64_t underflow = 0;
  /// past the largest number after scaling
  std::uint64_t saturated = 0;
  /// come back as infinity or NaN
  std::uint64_t nonfinite = 0;
  /// that have a scale
  std::uint64_t groups = 0;
  /// that what is stored takes, scales included
  std::uint64_t bytes = 0;
  /// of (x - what comes back)^2, the difference rounded to FP64
  ExactSum noise{lowest_square};

  void add(const RecipeOutcome& other);
  friend bool operator==(const RecipeOutcome&, const RecipeOutcome&) = default;
};

/// What a tensor of that many elements takes: codes back to back, and the scales of its groups.
std::uint64_t stored_bytes(const Recipe& recipe, std::uint64_t elements, std::uint64_t groups);

/// Scales that recipes keep of each tensor from step to step.
class RecipeState {
 public:
  DelayedScale& delayed(const Recipe& recipe);

 private:
  std::map<std::string, DelayedScale> delayed_;
};

/// Stores and reads back one tensor. `state` is the tensor's, and moves on by a step.
RecipeOutcome apply(const Recipe& recipe, const TensorValues& tensor, Layout layout,
                    RecipeState& state);

/// Of the finite elements: how many are not zero, and the sum of their squares.
struct Signal {
  std::uint64_t elements = 0, finite = 0, nonzero = 0;
  ExactSum squares{lowest_square};

  void add(const Signal& other);
  friend bool operator==(const Signal&, const Signal&) = default;
};
Signal signal_of(std::span<const float> values);

/// 10 log10(signal/noise); nothing where either is zero or something came back as no number.
std::optional<double> sqnr_db(const Signal& signal, const RecipeOutcome& outcome);

}  // namespace guardbit::experiments
