#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "tools/trace/recipe_results.hpp"

// Recipes applied to the tensors of a trace.
namespace guardbit::tools {

/// As the options of `recipe compare` say it.
struct RecipeSettings {
  std::string recipes = "*";
  std::string scales = "0:24:8";
  std::string layout = "flat";
  std::string role, from;
  std::vector<std::size_t> histories = {1024};
  float margin = 0;
  /// 0: all
  int threads = 0;
};

/// What each recipe does to the tensors of files, folders and patterns. `pause` is called now and
/// then; what it throws ends the pass. formats::Error for what cannot be read or has no finite
/// tensor.
RecipeResults compared_recipes(const std::vector<std::string>& words,
                               const RecipeSettings& settings, const std::function<void()>& pause);

}  // namespace guardbit::tools
