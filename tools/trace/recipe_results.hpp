#pragma once

#include <cstdint>
#include <functional>
#include <iosfwd>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "experiments/scaling/recipe_pass.hpp"
#include "experiments/traces/trace_name.hpp"
#include "formats/files/tensor_file.hpp"

namespace guardbit::tools {

struct ComparedTensor {
  std::string file, name;
  experiments::TraceName meaning;
  experiments::StoredTensor compared;
  /// what the trace states of it
  std::optional<double> loss_scale;

  bool is_finite() const { return compared.signal.finite == compared.signal.elements; }
};

struct RecipeResults {
  std::vector<experiments::Recipe> recipes;
  experiments::Layout layout = experiments::Layout::flat;
  std::vector<ComparedTensor> tensors;
  std::vector<std::string> remarks;

  /// Of the tensors whose numbers are all finite: one that is not would leave no recipe an SQNR.
  experiments::StoredTensor total() const;
  std::vector<const ComparedTensor*> left_out() const;
  /// The same of each step, or of each rank, that tensors name.
  std::map<std::uint64_t, experiments::StoredTensor> by(
      std::optional<std::uint64_t> experiments::TraceName::*field) const;
};

/// What the numbers recommend.
struct RecipeAdvice {
  /// empty where none can be recommended
  std::string recipe;
  /// sentences with the numbers that support it
  std::vector<std::string> sentences;
};
RecipeAdvice advice_of(const RecipeResults& results);

/// Applies the recipes to the floating-point tensors of a trace, of one role if `role` is not
/// empty, step by step. `pause` is called now and then; what it throws ends the pass. Throws
/// Error for what cannot be read.
void compare_recipes(RecipeResults& results, const std::vector<std::string>& words,
                     const std::string& role, const formats::FormatOverrides& overrides,
                     int threads, const std::function<void()>& pause);

/// What a recipe did to tensors of this signal.
nlohmann::ordered_json outcome_to_json(const experiments::Signal& signal,
                                       const experiments::RecipeOutcome& outcome);
nlohmann::ordered_json to_json(const RecipeResults& results);
/// A row per recipe, of all tensors, with its underflow at each step where these are few.
void print_recipes(std::ostream& out, const RecipeResults& results);

}  // namespace guardbit::tools
