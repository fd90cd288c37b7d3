#pragma once

#include <cstdint>
#include <functional>
#include <iosfwd>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "experiments/recipes.hpp"
#include "experiments/trace_name.hpp"

namespace guardbit::tools {

/// What every recipe does to one tensor, or to several together.
struct ComparedTensors {
  experiments::Signal signal;
  std::vector<experiments::RecipeOutcome> outcomes;  ///< by recipe

  void add(const ComparedTensors& other);
};

struct ComparedTensor {
  std::string file, name;
  experiments::TraceName meaning;
  ComparedTensors compared;
};

struct RecipeResults {
  std::vector<experiments::Recipe> recipes;
  experiments::Layout layout = experiments::Layout::flat;
  std::vector<ComparedTensor> tensors;
  std::vector<std::string> remarks;

  ComparedTensors total() const;
  /// Of each step that tensors name.
  std::map<std::uint64_t, ComparedTensors> by_step() const;
};

/// Applies the recipes to the floating-point tensors of a trace, of one role if `role` is not
/// empty, step by step. `pause` is called between tensors; what it throws ends the pass. Throws
/// Error for what cannot be read.
void compare_recipes(RecipeResults& results, const std::vector<std::string>& words,
                     const std::string& role, int threads, const std::function<void()>& pause);

nlohmann::ordered_json to_json(const RecipeResults& results);
/// A row per recipe, of all tensors, with its underflow at each step where these are few.
void print_recipes(std::ostream& out, const RecipeResults& results);

}  // namespace guardbit::tools
