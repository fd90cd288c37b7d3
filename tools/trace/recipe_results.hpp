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

namespace guardbit::tools {

struct ComparedTensor {
  std::string file, name;
  experiments::TraceName meaning;
  experiments::StoredTensor compared;
};

struct RecipeResults {
  std::vector<experiments::Recipe> recipes;
  experiments::Layout layout = experiments::Layout::flat;
  std::vector<ComparedTensor> tensors;
  std::vector<std::string> remarks;

  experiments::StoredTensor total() const;
  /// Of each step that tensors name.
  std::map<std::uint64_t, experiments::StoredTensor> by_step() const;
};

/// Applies the recipes to the floating-point tensors of a trace, of one role if `role` is not
/// empty, step by step. `pause` is called now and then; what it throws ends the pass. Throws
/// Error for what cannot be read.
void compare_recipes(RecipeResults& results, const std::vector<std::string>& words,
                     const std::string& role, int threads, const std::function<void()>& pause);

/// What a recipe did to tensors of this signal.
nlohmann::ordered_json outcome_to_json(const experiments::Signal& signal,
                                       const experiments::RecipeOutcome& outcome);
nlohmann::ordered_json to_json(const RecipeResults& results);
/// A row per recipe, of all tensors, with its underflow at each step where these are few.
void print_recipes(std::ostream& out, const RecipeResults& results);

}  // namespace guardbit::tools
